// SPDX-License-Identifier: Apache-2.0
// A file with encoded extents, read as if they were raw: one behind the other, zeros around them.
#pragma once

#include <belay/result.hpp>

#include "codec/workspace.hpp"
#include "format/segment.hpp"
#include "os/files.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace belay::store {

/// Only read() and size() may be called. An extent that cannot be read or decoded gives zeros:
/// whoever reads blocks verifies them, and so finds out which of them were damaged.
class DecodedFile final : public os::File {
 public:
  /// `extents` are those of `file`, none of them absent.
  DecodedFile(std::shared_ptr<os::File> file, std::span<const format::Extent> extents);

  /// Where the raw bytes of an extent begin here.
  std::uint64_t begin_of(std::size_t extent) const { return extents_[extent].begin; }

  /// Gives back memory that only makes further reads faster.
  void release();

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override;
  Result<std::uint64_t> size() override { return end_; }

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Result<void> sync() override;
  Result<void> reserve(std::uint64_t bytes) override;
  Result<void> truncate(std::uint64_t bytes) override;
  Result<void> close() override { return file_->close(); }
  bool decodes() const override { return true; }

 private:
  struct Placed {
    std::uint64_t begin = 0;
    format::Extent extent;

    std::uint64_t end() const { return begin + extent.raw_bytes; }
  };
  /// Decoded by whoever comes first; others wait for it.
  struct Decoded {
    std::size_t extent = 0;
    std::once_flag once;
    Result<void> done;
    std::vector<std::byte> bytes;
  };

  /// Bytes [from, from + into.size()) of the extent.
  Result<void> read_part(std::size_t extent, std::uint64_t from, std::span<std::byte> into);
  Result<void> decode(const format::Extent& extent, std::span<std::byte> raw);
  /// Kept for a while, since a next read will want the rest of it.
  Result<std::shared_ptr<const Decoded>> decoded(std::size_t extent);
  std::shared_ptr<Decoded> slot_of(std::size_t extent);
  std::unique_ptr<codec::Workspace> take_workspace();
  void give_back(std::unique_ptr<codec::Workspace> workspace);

  std::shared_ptr<os::File> file_;
  std::vector<Placed> extents_;
  std::uint64_t end_ = 0;
  std::mutex mutex_;                              ///< of what follows
  std::vector<std::shared_ptr<Decoded>> recent_;  ///< the latest last
  std::vector<std::unique_ptr<codec::Workspace>> workspaces_;
};

}  // namespace belay::store
