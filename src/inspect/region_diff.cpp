// SPDX-License-Identifier: Apache-2.0
#include "inspect/region_diff.hpp"

#include "base/try.hpp"
#include "inspect/region_change.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace belay::inspect {
namespace {

constexpr std::uint64_t kWindowBytes = std::uint64_t{4} << 20;

class RegionDiffer {
 public:
  RegionDiffer(PartReader& first, const RegionRecord& first_region, PartReader& second,
               const RegionRecord& second_region)
      : first_(first),
        a_(first_region),
        second_(second),
        b_(second_region),
        common_(std::min(a_.bytes, b_.bytes)) {
    diff_.blocks = second_.manifest().blocks_of(b_);
    if (a_.type != b_.type || a_.type.bytes != numeric_bytes(a_.type.kind)) return;
    element_ = a_.type.bytes;
    common_ -= common_ % element_;
    meter_.emplace(a_.type.kind, common_ / element_);
  }

  Result<RegionDiff> run(const std::function<void(std::uint64_t)>& advance) {
    const bool by_fingerprint = comparable(first_.manifest(), second_.manifest());
    for (std::uint64_t block = 0; block < diff_.blocks;) {
      const std::uint64_t begin = block * second_.manifest().block_bytes;
      const std::uint64_t from = block;
      // Blocks that are worth reading, up to a window full.
      while (block < diff_.blocks && !(by_fingerprint && same_fingerprint(block)) &&
             (block == from || end_of(block) - begin <= kWindowBytes))
        ++block;
      if (block > from) BELAY_TRY(compare(from, block, by_fingerprint));
      if (block == from) ++block;
      advance(end_of(block - 1) - begin);
    }
    if (meter_ && common_ > 0) diff_.difference = meter_->finish();
    return diff_;
  }

 private:
  std::uint64_t end_of(std::uint64_t block) const {
    return block * second_.manifest().block_bytes + second_.manifest().length_of(b_, block);
  }

  bool same_fingerprint(std::uint64_t block) const {
    const Manifest& m = first_.manifest();
    const Manifest& n = second_.manifest();
    return block < m.blocks_of(a_) && m.length_of(a_, block) == n.length_of(b_, block) &&
           m.fingerprints[a_.first_block + block] == n.fingerprints[b_.first_block + block];
  }

  Result<void> compare(std::uint64_t first, std::uint64_t last, bool known_to_differ) {
    // Elements may lie across the borders of blocks; none is looked at twice.
    const std::uint64_t begin = first * second_.manifest().block_bytes;
    const std::uint64_t end = end_of(last - 1);
    const std::uint64_t from = std::max(done_, begin / element_ * element_);
    const std::uint64_t until = std::min((end + element_ - 1) / element_ * element_, b_.bytes);
    const std::uint64_t low = std::min(from, begin);
    left_.resize(low < a_.bytes ? std::min(until, a_.bytes) - low : 0);
    right_.resize(until - low);
    BELAY_TRY(first_.read(a_, low, left_));
    BELAY_TRY(second_.read(b_, low, right_));
    for (std::uint64_t block = first; block < last; ++block)
      if (known_to_differ || differs(block, low)) count(block);
    const std::uint64_t numbers_end = std::min(until, common_);
    if (meter_ && from < numbers_end)
      meter_->add(std::span(left_).subspan(from - low, numbers_end - from),
                  std::span(right_).subspan(from - low, numbers_end - from), from / element_);
    done_ = std::max(done_, until);
    return {};
  }

  bool differs(std::uint64_t block, std::uint64_t low) const {
    const std::uint64_t begin = block * second_.manifest().block_bytes - low;
    const std::uint64_t end = end_of(block) - low;
    return end > left_.size() ||
           std::memcmp(left_.data() + begin, right_.data() + begin, end - begin) != 0;
  }

  void count(std::uint64_t block) {
    ++diff_.changed_blocks;
    diff_.changed_bytes += second_.manifest().length_of(b_, block);
  }

  PartReader& first_;
  const RegionRecord& a_;
  PartReader& second_;
  const RegionRecord& b_;
  std::uint64_t common_;       ///< bytes that both have; of numbers, whole ones only
  std::uint64_t element_ = 1;  ///< bytes of one number
  std::uint64_t done_ = 0;
  std::optional<DifferenceMeter> meter_;
  std::vector<std::byte> left_;
  std::vector<std::byte> right_;
  RegionDiff diff_;
};

}  // namespace

Result<RegionDiff> diff_region(PartReader& first, const RegionRecord& first_region,
                               PartReader& second, const RegionRecord& second_region,
                               const std::function<void(std::uint64_t)>& advance) {
  return RegionDiffer(first, first_region, second, second_region).run(advance);
}

}  // namespace belay::inspect
