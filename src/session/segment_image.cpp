// SPDX-License-Identifier: Apache-2.0
#include "session/segment_image.hpp"

#include "base/try.hpp"

#include <algorithm>

namespace belay::session {
namespace {

/// Keeps the end of a file whose front somebody else writes.
class EndSink final : public ByteSink {
 public:
  EndSink(std::uint64_t begin, std::vector<std::byte>& bytes) : begin_(begin), bytes_(bytes) {}

  Result<void> append(std::span<const std::byte> more) override {
    bytes_.insert(bytes_.end(), more.begin(), more.end());
    return {};
  }
  std::uint64_t offset() const override { return begin_ + bytes_.size(); }

 private:
  std::uint64_t begin_;
  std::vector<std::byte>& bytes_;
};

}  // namespace

Result<SegmentImage> SegmentImage::make(const format::SegmentHeader& header,
                                        const VersionPlan& plan,
                                        std::span<const BroughtBlock> brought) {
  SegmentImage image;
  const auto front = format::encode_segment_header(header);
  image.header_.assign(front.begin(), front.end());
  image.add(image.header_);
  const auto order = plan.in_order();
  const std::size_t natural = order.size() - plan.blocks.natural().size();
  std::uint64_t payload = 0;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const BroughtBlock& block = brought[order[i]];
    payload += block.block.length;
    if (i < natural) image.add(block.bytes);
  }
  const format::Extent extent{.offset = format::kSegmentHeaderBytes,
                              .encoded_bytes = payload,
                              .raw_bytes = payload,
                              .first_entry = 0,
                              .entries = static_cast<std::uint32_t>(order.size())};
  EndSink sink(format::kSegmentHeaderBytes + payload, image.end_);
  auto next = order.begin();
  BELAY_TRY(format::encode_segment_end(sink, header, {&extent, 1}, order.size(), [&] {
    const dedup::Block& block = brought[*next++].block;
    return format::IndexEntry{block.fingerprint, block.length};
  }));
  image.add(image.end_);
  return image;
}

void SegmentImage::add(std::span<const std::byte> part) {
  parts_.push_back(part);
  ends_.push_back((ends_.empty() ? 0 : ends_.back()) + part.size());
}

std::vector<std::span<const std::byte>> SegmentImage::pieces(std::uint64_t offset,
                                                             std::uint64_t length) const {
  std::vector<std::span<const std::byte>> found;
  auto part = static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), offset) -
                                       ends_.begin());
  while (length > 0) {
    const std::uint64_t begin = ends_[part] - parts_[part].size();
    const std::uint64_t taken = std::min(length, ends_[part] - offset);
    found.push_back(parts_[part].subspan(offset - begin, taken));
    offset += taken;
    length -= taken;
    ++part;
  }
  return found;
}

}  // namespace belay::session
