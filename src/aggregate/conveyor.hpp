// SPDX-License-Identifier: Apache-2.0
// Extents on their way into a bundle: while one is fetched, others are encoded and written, on
// threads of their own, and never more of them than memory was given for.
#pragma once

#include <belay/result.hpp>

#include "os/paged_vector.hpp"
#include "store/extent_writer.hpp"

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace belay::aggregate {

using Bytes = os::PagedVector<std::byte>;

/// An extent that was fetched.
struct Parcel {
  std::string variable;
  codec::Elements elements;
  Bytes raw;
  std::uint32_t blocks = 0;

  store::RawExtent extent() const { return {variable, elements, raw, blocks}; }
};

/// put() and finish() are called by one thread.
class Conveyor {
 public:
  /// Encodes one parcel, into `room` if that is of use; any of the threads.
  using Encode =
      std::function<store::EncodedExtent(const store::RawExtent&, codec::Workspace&, Bytes room)>;
  /// Writes one, in the order of put(); one thread at a time.
  using Write = std::function<Result<void>(const store::RawExtent&, const store::EncodedExtent&)>;

  /// At most `most` parcels are in memory at a time, the one that is being fetched included.
  /// Without encoders all is done by whoever puts.
  Conveyor(unsigned encoders, std::size_t most, Encode encode, Write write);
  ~Conveyor();  ///< what was put and not finished is dropped

  /// Memory of what was written, for what comes next; perhaps none.
  Bytes spare();
  /// Waits for room. An error is that of a parcel before.
  Result<void> put(Parcel parcel);
  Result<void> finish();

 private:
  struct Item {
    Parcel parcel;
    std::optional<store::EncodedExtent> encoded;
    bool taken = false;
  };

  void keep_spare(Bytes bytes);  ///< REQUIRES: the lock
  void run_encoder();
  void run_writer();
  void fail_with(const Error& error);
  void stop();

  const std::size_t most_;
  Encode encode_;
  Write write_;
  codec::Workspace workspace_;
  std::mutex mutex_;  ///< of what follows
  std::condition_variable changed_;
  std::map<std::uint64_t, Item> items_;
  std::vector<Bytes> spares_;
  std::uint64_t next_put_ = 0;
  std::uint64_t next_written_ = 0;
  bool ended_ = false;
  std::optional<Error> error_;
  std::vector<std::thread> threads_;
};

}  // namespace belay::aggregate
