// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/try.hpp"
#include "format/manifest.hpp"
#include "session/drain_share.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace belay::session {
namespace {

/// Keeps a range of all that is appended: what is encoded again and again need never be in memory
/// as a whole.
class RangeSink final : public ByteSink {
 public:
  RangeSink(std::uint64_t begin, std::span<std::byte> into) : begin_(begin), into_(into) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    const std::uint64_t first = std::max(offset_, begin_);
    const std::uint64_t end = std::min(offset_ + bytes.size(), begin_ + into_.size());
    if (first < end)
      std::memcpy(into_.data() + (first - begin_), bytes.data() + (first - offset_), end - first);
    offset_ += bytes.size();
    return {};
  }
  std::uint64_t offset() const override { return offset_; }

 private:
  const std::uint64_t begin_;
  const std::span<std::byte> into_;
  std::uint64_t offset_ = 0;
};

/// Blocks that lie in memory as if they were one after the other in a file.
class HeldBlocks {
 public:
  HeldBlocks(const Manifest& manifest, std::vector<UnsafeBlock> blocks)
      : manifest_(manifest), blocks_(std::move(blocks)) {
    offsets_.reserve(blocks_.size());
    std::uint64_t offset = 0;
    for (const UnsafeBlock& block : blocks_) {
      offsets_.push_back(offset);
      offset += block.bytes.size();
    }
  }

  void tell(std::uint64_t first, std::uint64_t count, const store::SegmentTable::Take& take) const {
    for (std::uint64_t i = first; i < first + count; ++i)
      take({manifest_.fingerprints[blocks_[i].block],
            static_cast<std::uint32_t>(blocks_[i].bytes.size()), offsets_[i]},
           true);
  }

  Result<void> read(std::uint64_t begin, std::span<std::byte> into) const {
    const auto after = std::upper_bound(offsets_.begin(), offsets_.end(), begin);
    auto i = static_cast<std::size_t>(after - offsets_.begin()) - 1;
    for (; !into.empty(); ++i) {
      if (i >= blocks_.size() || begin - offsets_[i] >= blocks_[i].bytes.size())
        return fail(Code::invalid_argument, "nothing is held of byte {}", begin);
      const auto rest = blocks_[i].bytes.subspan(begin - offsets_[i]);
      const std::size_t bytes = std::min(rest.size(), into.size());
      std::memcpy(into.data(), rest.data(), bytes);
      into = into.subspan(bytes);
      begin += bytes;
    }
    return {};
  }

  std::vector<RegionRun> runs() const {
    std::vector<RegionRun> runs;
    for (std::size_t i = 0; i < blocks_.size(); ++i)
      if (runs.empty() || runs.back().region != blocks_[i].region)
        runs.push_back({i, blocks_[i].region});
    return runs;
  }

 private:
  const Manifest& manifest_;
  const std::vector<UnsafeBlock> blocks_;
  std::vector<std::uint64_t> offsets_;
};

}  // namespace

Result<OwnShare> hold_share(const Manifest& manifest, std::vector<UnsafeBlock> blocks) {
  RangeSink none(0, {});
  BELAY_TRY(format::encode_manifest(manifest, none));
  const auto read_manifest = [&manifest](std::uint64_t begin, std::span<std::byte> into,
                                         store::PageReader&) {
    RangeSink sink(begin, into);
    return format::encode_manifest(manifest, sink);
  };
  std::vector<OwnShare::Segment> segments;
  if (const std::size_t count = blocks.size(); count > 0) {
    const SegmentId id{manifest.origin.key, manifest.origin.rank};
    const auto held = std::make_shared<const HeldBlocks>(manifest, std::move(blocks));
    OwnShare::Segment segment;
    segment.head = {id, 0, manifest.block_bytes, count};  // no file that could be damaged
    segment.needed.assign(count, true);
    segment.runs = held->runs();
    segment.tell = [held](std::uint64_t first, std::uint64_t blocks_told, store::PageReader&,
                          const store::SegmentTable::Take& take) -> Result<void> {
      held->tell(first, blocks_told, take);
      return {};
    };
    segment.read = [held](std::uint64_t begin, std::span<std::byte> into, store::PageReader&) {
      return held->read(begin, into);
    };
    segments.push_back(std::move(segment));
  }
  return OwnShare(none.offset(), read_manifest, std::move(segments));
}

}  // namespace belay::session
