// SPDX-License-Identifier: Apache-2.0
#include "session/liveness.hpp"

#include "aggregate/bundle_plan.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "os/paged_vector.hpp"

#include <algorithm>
#include <array>
#include <tuple>

namespace belay::session {
namespace {

/// More than a segment of a usual program has: beyond, blocks are of no region.
constexpr std::size_t kMostRuns = 4096;
constexpr std::uint64_t kMostAhead = 1024;
/// However little memory there is.
constexpr std::uint64_t kLeastAhead = 64;
constexpr std::uint64_t kLeastRows = 64;
/// Looks at all of a segment that is left, in vain, one after the other.
constexpr int kMostLeaps = 8;

struct Content {
  Fingerprint fingerprint;
  std::uint32_t length = 0;
  bool operator==(const Content&) const = default;
};

/// Goes through the entries of a segment, and knows some of those that come next.
class Ahead {
 public:
  Ahead(const store::SegmentTable& table, std::uint64_t most) : table_(table), most_(most) {}

  /// The next that has this content; it and those before have passed then.
  Result<std::optional<std::uint64_t>> find(const Content& wanted, store::PageReader& reader) {
    if (missed_ == wanted) return std::optional<std::uint64_t>();
    if (end() < next_ + most_) BELAY_TRY(read_more(reader));
    auto found = find_known(wanted, next_, std::min(end(), next_ + most_));
    if (!found) {
      BELAY_ASSIGN(found, leap(wanted, reader));
    }
    if (!found) {
      missed_ = wanted;
      return found;
    }
    next_ = *found + 1;
    if (next_ > end()) {
      known_.clear();
      first_ = next_;
    }
    return found;
  }

 private:
  std::uint64_t end() const { return first_ + known_.size(); }

  std::optional<std::uint64_t> find_known(const Content& wanted, std::uint64_t from,
                                          std::uint64_t to) const {
    for (std::uint64_t i = from; i < to; ++i)
      if (known_[i - first_] == wanted) return i;
    return {};
  }

  Result<void> read_more(store::PageReader& reader) {
    known_.erase(known_.begin(), known_.begin() + static_cast<std::ptrdiff_t>(next_ - first_));
    first_ = next_;
    const std::uint64_t count = std::min(2 * most_ - known_.size(), table_.entries() - end());
    return table_.read(end(), count, reader, [&](const store::StoredBlock& block, bool) {
      known_.push_back({block.fingerprint, block.length});
    });
  }

  /// Of what is far ahead, since nothing in between is needed any more.
  Result<std::optional<std::uint64_t>> leap(const Content& wanted, store::PageReader& reader) {
    auto found = find_known(wanted, std::min(end(), next_ + most_), end());
    for (std::uint64_t at = end(); leaps_ > 0 && !found && at < table_.entries();) {
      const std::uint64_t count = std::min(most_, table_.entries() - at);
      BELAY_TRY(table_.read(at, count, reader, [&](const store::StoredBlock& block, bool) {
        if (!found && wanted == Content{block.fingerprint, block.length}) found = at;
        ++at;
      }));
    }
    leaps_ = found ? kMostLeaps : std::max(leaps_ - 1, 0);
    return found;
  }

  const store::SegmentTable& table_;
  const std::uint64_t most_;
  int leaps_ = kMostLeaps;
  std::vector<Content> known_;
  std::uint64_t first_ = 0;        ///< of those
  std::uint64_t next_ = 0;         ///< that has not passed
  std::optional<Content> missed_;  ///< the last: blocks of zeros come in crowds
};

/// Blocks lie in segments in the order of manifests, with others in between that are not needed any
/// more: most are found by going through all of them once. Those that are not, since their content
/// is there twice or something has changed its place, are searched for together, as many as there
/// is memory for.
class Liveness {
 public:
  Liveness(const store::ManifestTable& manifest, std::vector<LiveSegment>& segments,
           std::uint64_t memory_bytes)
      : manifest_(manifest),
        segments_(segments),
        most_(std::max(memory_bytes / 4 / kRowBytes, kLeastRows)) {
    segment_of_holder_.fill(kNone);
    const std::uint64_t each = 2 * sizeof(Content) * std::max<std::size_t>(segments.size(), 1);
    const std::uint64_t ahead = std::clamp(memory_bytes / 4 / each, kLeastAhead, kMostAhead);
    for (std::uint32_t i = 0; i < segments.size(); ++i) {
      ahead_.emplace_back(*segments[i].table, ahead);
      if (const auto holder = holder_of(manifest.head(), segments[i].id))
        segment_of_holder_[*holder] = i;
    }
  }

  Result<void> mark(std::optional<std::size_t>& failed) {
    const Manifest& head = manifest_.head();
    std::uint32_t region = 0;
    Result<void> found;
    store::PageReader reader;
    BELAY_TRY(manifest_.each_block(
        reader, [&](std::uint64_t block, const Fingerprint& fingerprint, std::uint8_t holder) {
          while (block >= head.regions[region].first_block + head.blocks_of(head.regions[region]))
            ++region;
          const std::uint32_t segment = segment_of_holder_[holder];
          if (segment == kNone || !found) return;
          const RegionRecord& record = head.regions[region];
          found = find({fingerprint, head.length_of(record, block - record.first_block)}, segment,
                       region);
        }));
    if (found) found = search();
    if (!found) failed = busy_;
    return found;
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Row {
    std::uint32_t segment = 0;
    Content content;

    auto key() const {
      return std::tie(segment, content.fingerprint.low, content.fingerprint.high, content.length);
    }
    bool operator<(const Row& other) const { return key() < other.key(); }
    bool operator==(const Row&) const = default;
  };
  /// With bits that say whether a block may be one of those that are searched for, and whether one
  /// was found.
  static constexpr std::uint64_t kBitsPerRow = 16;
  static constexpr std::uint64_t kRowBytes = sizeof(Row) + kBitsPerRow / 8 + 1;

  Result<void> find(const Content& content, std::uint32_t segment, std::uint32_t region) {
    busy_ = segment;
    BELAY_ASSIGN(const auto found, ahead_[segment].find(content, reader_));
    if (!found) return miss({segment, content});
    LiveSegment& live = segments_[segment];
    live.needed[*found] = true;
    auto& runs = live.runs;
    if (runs.size() < kMostRuns && (runs.empty() || runs.back().region != region))
      runs.push_back({*found, runs.size() + 1 < kMostRuns ? region : aggregate::kNoRegion});
    return {};
  }

  Result<void> miss(const Row& row) {
    if (!missed_.empty() && missed_.back() == row) return {};
    if (missed_.empty()) missed_.reserve(std::min(most_, manifest_.blocks()));
    missed_.push_back(row);
    if (missed_.size() < most_) return {};
    sort_missed();
    return missed_.size() < most_ / 2 ? Result<void>{} : search();
  }

  void sort_missed() {
    std::sort(missed_.begin(), missed_.end());
    missed_.erase(std::unique(missed_.begin(), missed_.end()), missed_.end());
  }

  /// For all that were missed so far.
  Result<void> search() {
    if (missed_.empty()) return {};
    sort_missed();
    may_be_.assign(missed_.size() * kBitsPerRow, false);
    for (const Row& row : missed_) may_be_[bit_of(row.content)] = true;
    std::vector<bool> found(missed_.size());
    for (auto first = missed_.begin(); first != missed_.end();) {
      busy_ = first->segment;
      const auto last =
          std::find_if(first, missed_.end(), [&](const Row& row) { return row.segment != busy_; });
      BELAY_TRY(search(first, last, found));
      first = last;
    }
    for (std::size_t i = 0; i < missed_.size(); ++i)
      if (!found[i]) {
        busy_ = missed_[i].segment;
        return fail(Code::corruption, "{}: a block that the manifest counts on is not in it",
                    format::segment_name(segments_[busy_].id));
      }
    missed_.clear();
    return {};
  }

  using Rows = os::PagedVector<Row>;
  Result<void> search(Rows::iterator first, Rows::iterator last, std::vector<bool>& found) {
    LiveSegment& live = segments_[busy_];
    std::uint64_t number = 0;
    return live.table->read(0, live.table->entries(), reader_,
                            [&](const store::StoredBlock& block, bool) {
                              const std::uint64_t i = number++;
                              const Row row{busy_, {block.fingerprint, block.length}};
                              if (!may_be_[bit_of(row.content)]) return;
                              const auto place = std::lower_bound(first, last, row);
                              if (place == last || *place != row) return;
                              live.needed[i] = true;
                              found[static_cast<std::size_t>(place - missed_.begin())] = true;
                            });
  }

  /// Fingerprints are as good as random.
  std::size_t bit_of(const Content& content) const {
    return content.fingerprint.low % may_be_.size();
  }

  const store::ManifestTable& manifest_;
  std::vector<LiveSegment>& segments_;
  const std::uint64_t most_;  ///< rows
  store::PageReader reader_;  ///< of segments
  std::array<std::uint32_t, 256> segment_of_holder_;
  std::vector<Ahead> ahead_;  ///< by segment
  Rows missed_;
  std::vector<bool> may_be_;  ///< by bit_of()
  std::uint32_t busy_ = 0;    ///< the segment that is looked at
};

}  // namespace

std::optional<std::uint8_t> holder_of(const Manifest& head, const SegmentId& id) {
  for (std::size_t holder = 0; holder < head.holding_segments(); ++holder)
    if (head.segments[holder].id == id) return static_cast<std::uint8_t>(holder);
  return {};
}

Result<void> mark_live(const store::ManifestTable& manifest, std::vector<LiveSegment>& segments,
                       std::uint64_t memory_bytes, std::optional<std::size_t>& failed) {
  if (segments.empty()) return {};
  return Liveness(manifest, segments, memory_bytes).mark(failed);
}

}  // namespace belay::session
