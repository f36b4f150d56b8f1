// SPDX-License-Identifier: Apache-2.0
#include "base/bytes.hpp"
#include "base/try.hpp"
#include "format/manifest_stream.hpp"
#include "session/drain_share.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace belay::session {
namespace {

/// Keeps a range of all that is appended.
class RangeSink final : public ByteSink {
 public:
  RangeSink(std::uint64_t begin, std::span<std::byte> into) : begin_(begin), into_(into) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    copy_overlap(offset_, bytes, begin_, into_);
    offset_ += bytes.size();
    return {};
  }
  std::uint64_t offset() const override { return offset_; }

  /// `bytes` lie at `at`: those of them that are wanted.
  static void copy_overlap(std::uint64_t at, std::span<const std::byte> bytes, std::uint64_t begin,
                           std::span<std::byte> into) {
    const std::uint64_t first = std::max(at, begin);
    const std::uint64_t end = std::min(at + bytes.size(), begin + into.size());
    if (first < end)
      std::memcpy(into.data() + (first - begin), bytes.data() + (first - at), end - first);
  }

 private:
  const std::uint64_t begin_;
  const std::span<std::byte> into_;
  std::uint64_t offset_ = 0;
};

/// A manifest as it would lie in a file: of its tables there is no second copy.
class HeldManifest {
 public:
  static Result<HeldManifest> of(const Manifest& manifest) {
    HeldManifest held(manifest);
    RangeSink size(0, {});
    BELAY_TRY(format::encode_manifest(manifest, size));
    held.bytes_ = size.offset();
    const std::uint64_t blocks = manifest.fingerprints.size();
    held.front_.resize(held.bytes_ - blocks * (sizeof(Fingerprint) + 1));
    RangeSink front(0, held.front_);
    BELAY_TRY(format::encode_manifest(manifest, front));
    BELAY_ASSIGN(held.places_, format::decode_manifest_head(held.front_, held.bytes_));
    held.back_.resize(held.bytes_ - held.places_.holder_offset(blocks));
    RangeSink back(held.bytes_ - held.back_.size(), held.back_);
    BELAY_TRY(format::encode_manifest(manifest, back));
    return held;
  }

  std::uint64_t bytes() const { return bytes_; }
  void read(std::uint64_t begin, std::span<std::byte> into) const {
    const auto copy = [&](std::uint64_t at, std::span<const std::byte> bytes) {
      RangeSink::copy_overlap(at, bytes, begin, into);
    };
    copy(0, std::span(front_).first(places_.fingerprints_offset));
    copy(places_.fingerprints_offset, std::as_bytes(std::span(manifest_.fingerprints)));
    copy(places_.holder_offset(0), std::as_bytes(std::span(manifest_.holders)));
    copy(bytes_ - back_.size(), back_);
  }

 private:
  explicit HeldManifest(const Manifest& manifest) : manifest_(manifest) {}

  const Manifest& manifest_;
  std::uint64_t bytes_ = 0;
  format::ManifestHead places_;
  std::vector<std::byte> front_;  ///< what comes before the tables, and a little more
  std::vector<std::byte> back_;   ///< what comes behind them
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
  BELAY_ASSIGN(auto encoded, HeldManifest::of(manifest));
  const auto shared = std::make_shared<const HeldManifest>(std::move(encoded));
  const auto read_manifest = [shared](std::uint64_t begin, std::span<std::byte> into,
                                      store::PageReader&) -> Result<void> {
    shared->read(begin, into);
    return {};
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
  return OwnShare(shared->bytes(), read_manifest, std::move(segments));
}

}  // namespace belay::session
