// SPDX-License-Identifier: Apache-2.0
#include "store/extent_writer.hpp"

#include "base/try.hpp"

namespace belay::store {

EncodedExtent encode_extent(codec::Chooser& chooser, os::Clock& clock, const RawExtent& raw,
                            codec::Workspace& workspace, os::PagedVector<std::byte> room) {
  const codec::Codec& codec = chooser.choose(raw.variable, raw.elements, raw.bytes, workspace);
  EncodedExtent encoded{CodecId::raw, std::move(room)};
  encoded.bytes.clear();
  if (codec.id() == CodecId::raw) {
    chooser.learn(raw.variable, raw.bytes.size(), raw.bytes.size(), 0);
    return encoded;
  }
  encoded.bytes.resize(raw.bytes.size() - 1);
  const std::uint64_t start = clock.thread_ns();
  const auto bytes = codec.encode(raw.elements, raw.bytes, encoded.bytes, workspace);
  encoded.bytes.resize(bytes.value_or(0));
  if (bytes) encoded.codec = codec.id();
  chooser.learn(raw.variable, raw.bytes.size(), bytes.value_or(raw.bytes.size()),
                clock.thread_ns() - start);
  return encoded;
}

Result<void> ExtentWriter::append(FileWriter& file, const RawExtent& raw) {
  return append(file, raw, encode_extent(*chooser_, *clock_, raw, workspace_));
}

Result<void> ExtentWriter::append(FileWriter& file, const RawExtent& raw,
                                  const EncodedExtent& encoded) {
  const auto bytes =
      encoded.codec == CodecId::raw ? raw.bytes : std::span<const std::byte>(encoded.bytes);
  extents_.push_back({.offset = file.offset(),
                      .encoded_bytes = bytes.size(),
                      .raw_bytes = raw.bytes.size(),
                      .first_entry = entries_,
                      .entries = raw.blocks,
                      .codec = encoded.codec});
  entries_ += raw.blocks;
  encoded_bytes_ += bytes.size();
  const std::uint64_t start = clock_->now_ns();
  auto written = file.append(bytes);
  write_ns_ += clock_->now_ns() - start;
  return written;
}

std::optional<double> bandwidth_of(std::uint64_t bytes, std::uint64_t write_ns) {
  constexpr std::uint64_t kTelling = std::uint64_t{16} << 20;
  if (bytes < kTelling || write_ns == 0) return {};
  return static_cast<double>(bytes) * 1e9 / static_cast<double>(write_ns);
}

}  // namespace belay::store
