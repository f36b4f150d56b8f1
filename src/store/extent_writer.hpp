// SPDX-License-Identifier: Apache-2.0
// Writes blocks as extents, each with the codec that fits its variable.
#pragma once

#include <belay/result.hpp>

#include "codec/choice.hpp"
#include "codec/workspace.hpp"
#include "format/segment.hpp"
#include "os/clock.hpp"
#include "os/paged_vector.hpp"
#include "store/file_writer.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

/// More than this does not get smaller, and who wants one block decodes all of the extent.
inline constexpr std::uint64_t kExtentBytes = std::uint64_t{8} << 20;
static_assert(kExtentBytes >= kMaxBlockBytes && kExtentBytes <= format::kMaxEncodedExtentBytes);

/// Blocks of one variable, one behind the other in memory.
struct RawExtent {
  std::string_view variable;
  codec::Elements elements;
  std::span<const std::byte> bytes;
  std::uint32_t blocks = 0;
};

/// What an extent became.
struct EncodedExtent {
  CodecId codec = CodecId::raw;
  os::PagedVector<std::byte> bytes;  ///< raw: empty, its bytes are as they were
};

/// Encodes with the chooser's codec, which learns from it; raw if that is not smaller. `room` is
/// memory for the bytes that may be used again.
EncodedExtent encode_extent(codec::Chooser& chooser, os::Clock& clock, const RawExtent& raw,
                            codec::Workspace& workspace, os::PagedVector<std::byte> room = {});

/// How fast writing was, if enough was written to tell: bytes per second.
std::optional<double> bandwidth_of(std::uint64_t bytes, std::uint64_t write_ns);

/// One thread.
class ExtentWriter {
 public:
  /// Both must outlive it.
  ExtentWriter(codec::Chooser& chooser, os::Clock& clock) : chooser_(&chooser), clock_(&clock) {}

  Result<void> append(FileWriter& file, const RawExtent& raw);
  /// The same for one that is encoded already.
  Result<void> append(FileWriter& file, const RawExtent& raw, const EncodedExtent& encoded);
  /// So many will come.
  void reserve(std::size_t extents) { extents_.reserve(extents); }
  const std::vector<format::Extent>& extents() const { return extents_; }
  std::uint64_t encoded_bytes() const { return encoded_bytes_; }
  /// Of these bytes: in writing alone.
  std::uint64_t write_ns() const { return write_ns_; }

 private:
  codec::Chooser* chooser_;
  os::Clock* clock_;
  codec::Workspace workspace_;
  std::vector<format::Extent> extents_;
  std::uint64_t entries_ = 0;
  std::uint64_t encoded_bytes_ = 0;
  std::uint64_t write_ns_ = 0;
};

}  // namespace belay::store
