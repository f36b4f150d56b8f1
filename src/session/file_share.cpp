// SPDX-License-Identifier: Apache-2.0
#include "aggregate/bundle_plan.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "os/paged_vector.hpp"
#include "session/drain_share.hpp"
#include "store/bundle.hpp"
#include "store/manifest_table.hpp"
#include "store/places.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>

namespace belay::session {
namespace {

/// More than a segment of a usual program has: beyond, blocks are of no region.
constexpr std::size_t kMostRuns = 4096;
constexpr std::uint64_t kLeastWindow = 64;
/// Of a segment, compared at a time with what the tier has of it.
constexpr std::uint64_t kComparedBlocks = 1024;

/// A segment, while it is found out what is needed of it.
struct Candidate {
  const DrainTask* task = nullptr;
  std::shared_ptr<store::SegmentTable> table;
  std::vector<bool> needed;
  std::vector<RegionRun> runs;
};

/// What blocks of this segment have as their holder; unset: none has.
std::optional<std::uint8_t> holder_of(const Manifest& head, const SegmentId& id) {
  for (std::size_t holder = 0; holder < head.holding_segments(); ++holder)
    if (head.segments[holder].id == id) return static_cast<std::uint8_t>(holder);
  return {};
}

bool any_needed(const Candidate& candidate) {
  return std::find(candidate.needed.begin(), candidate.needed.end(), true) !=
         candidate.needed.end();
}

/// Goes through the entries of a segment, and knows some of those that come next.
class Ahead {
 public:
  Ahead(const store::SegmentTable& table, std::uint64_t most) : table_(table), most_(most) {}

  /// The first of these that is such a block; it and those before have passed then.
  Result<std::optional<std::uint64_t>> find(const Fingerprint& fingerprint, std::uint32_t length,
                                            store::PageReader& reader) {
    for (std::uint64_t i = next_; i - next_ < most_; ++i) {
      if (i == end()) BELAY_TRY(read_more(reader));
      if (i == end()) return std::optional<std::uint64_t>();
      const format::IndexEntry& entry = known_[i - first_];
      if (entry.fingerprint != fingerprint || entry.length != length) continue;
      next_ = i + 1;
      return std::optional(i);
    }
    return leap(fingerprint, length, reader);
  }

 private:
  Result<void> read_more(store::PageReader& reader) {
    known_.erase(known_.begin(), known_.begin() + static_cast<std::ptrdiff_t>(next_ - first_));
    first_ = next_;
    const std::uint64_t count = std::min(2 * most_ - known_.size(), table_.entries() - end());
    if (count == 0) return {};
    return table_.read(end(), count, reader, [&](const store::StoredBlock& block, bool) {
      known_.push_back({block.fingerprint, block.length});
    });
  }

  /// Of what is far ahead, since nothing in between is needed any more. In vain only a few times.
  Result<std::optional<std::uint64_t>> leap(const Fingerprint& fingerprint, std::uint32_t length,
                                            store::PageReader& reader) {
    std::optional<std::uint64_t> found;
    for (std::uint64_t at = end(); leaps_ > 0 && !found && at < table_.entries(); at += most_) {
      std::uint64_t number = at;
      BELAY_TRY(table_.read(at, std::min(most_, table_.entries() - at), reader,
                            [&](const store::StoredBlock& block, bool) {
                              if (!found && block.fingerprint == fingerprint &&
                                  block.length == length)
                                found = number;
                              ++number;
                            }));
    }
    if (found) {
      known_.clear();
      first_ = next_ = *found + 1;
    } else if (leaps_ > 0) {
      --leaps_;
    }
    return found;
  }

  std::uint64_t end() const { return first_ + known_.size(); }

  const store::SegmentTable& table_;
  const std::uint64_t most_;
  int leaps_ = 8;
  std::vector<format::IndexEntry> known_;
  std::uint64_t first_ = 0;  ///< of those
  std::uint64_t next_ = 0;   ///< that has not passed
};

/// Finds out what a manifest needs of segments, and for which regions. Blocks lie in segments in
/// the order of manifests, with others in between that are not needed any more: most are found by
/// going through all of them once. Those that are not, since their content is there twice or
/// something has changed its place, are searched for together, as many as there is memory for.
class Liveness {
 public:
  Liveness(const store::ManifestTable& manifest, std::vector<Candidate>& candidates,
           std::uint64_t memory_bytes, store::PageReader& reader)
      : manifest_(manifest),
        candidates_(candidates),
        reader_(reader),
        most_(std::max(memory_bytes / 4 / kRowBytes, kLeastWindow)) {
    candidate_of_holder_.fill(kNone);
    const std::uint64_t all =
        2 * sizeof(format::IndexEntry) * std::max<std::uint64_t>(candidates.size(), 1);
    const std::uint64_t ahead = std::clamp(memory_bytes / 4 / all, kLeastWindow, kMostAhead);
    for (std::uint32_t i = 0; i < candidates.size(); ++i) {
      candidates[i].needed.assign(candidates[i].table->entries(), candidates[i].task->whole);
      ahead_.emplace_back(*candidates[i].table, ahead);
      if (const auto holder = holder_of(manifest.head(), candidates[i].task->id))
        candidate_of_holder_[*holder] = i;
    }
  }

  Result<void> find() {
    const Manifest& head = manifest_.head();
    std::uint32_t region = 0;
    Result<void> found;
    BELAY_TRY(manifest_.each_block(
        reader_, [&](std::uint64_t block, const Fingerprint& fingerprint, std::uint8_t holder) {
          while (block >= head.regions[region].first_block + head.blocks_of(head.regions[region]))
            ++region;
          const std::uint32_t candidate = candidate_of_holder_[holder];
          if (candidate == kNone || !found) return;
          const RegionRecord& record = head.regions[region];
          found = find({fingerprint, head.length_of(record, block - record.first_block), candidate},
                       region);
        }));
    BELAY_TRY(found);
    return search();
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint64_t kMostAhead = 1024;

  struct Row {
    Fingerprint fingerprint;
    std::uint32_t length = 0;
    std::uint32_t candidate = 0;

    auto key() const { return std::tie(candidate, fingerprint.low, fingerprint.high, length); }
  };
  /// With bits that say whether a block may be one of those that are searched for.
  static constexpr std::uint64_t kBitsPerRow = 16;
  static constexpr std::uint64_t kRowBytes = sizeof(Row) + kBitsPerRow / 8;

  Result<void> find(const Row& live, std::uint32_t region) {
    BELAY_ASSIGN(const auto found,
                 ahead_[live.candidate].find(live.fingerprint, live.length, reader_of_segments_));
    if (!found) {
      missed_.push_back(live);
      return missed_.size() < most_ ? Result<void>{} : search();
    }
    Candidate& candidate = candidates_[live.candidate];
    candidate.needed[*found] = true;
    auto& runs = candidate.runs;
    if (runs.size() < kMostRuns && (runs.empty() || runs.back().region != region))
      runs.push_back({*found, runs.size() + 1 < kMostRuns ? region : aggregate::kNoRegion});
    return {};
  }

  /// All that were missed so far.
  Result<void> search() {
    if (missed_.empty()) return {};
    const auto in_order = [](const Row& a, const Row& b) { return a.key() < b.key(); };
    std::sort(missed_.begin(), missed_.end(), in_order);
    bits_.assign(missed_.size() * kBitsPerRow, false);
    for (const Row& row : missed_) bits_[bit_of(row.fingerprint)] = true;
    for (std::uint32_t i = 0; i < candidates_.size(); ++i) {
      std::uint64_t number = 0;
      BELAY_TRY(candidates_[i].table->read(
          0, candidates_[i].table->entries(), reader_of_segments_,
          [&](const store::StoredBlock& block, bool) {
            if (bits_[bit_of(block.fingerprint)] &&
                std::binary_search(missed_.begin(), missed_.end(),
                                   Row{block.fingerprint, block.length, i}, in_order))
              candidates_[i].needed[number] = true;
            ++number;
          }));
    }
    missed_.clear();
    return {};
  }

  /// Fingerprints are as good as random.
  std::size_t bit_of(const Fingerprint& fingerprint) const {
    return fingerprint.low % bits_.size();
  }

  const store::ManifestTable& manifest_;
  std::vector<Candidate>& candidates_;
  store::PageReader& reader_;
  store::PageReader reader_of_segments_;
  const std::uint64_t most_;  ///< rows
  std::array<std::uint32_t, 256> candidate_of_holder_;
  std::vector<Ahead> ahead_;  ///< by candidate
  os::PagedVector<Row> missed_;
  std::vector<bool> bits_;  ///< by bit_of()
};

/// Blocks of a segment as the tier tells of them, in the order of the segment; those that it has
/// are not needed any more, once all of it has turned out to be true.
class Elsewhere {
 public:
  Elsewhere(Candidate& candidate, store::PageReader& reader)
      : candidate_(candidate), reader_(reader), there_(candidate.needed.size(), false) {}

  /// The next one; `is_there`: the tier has it.
  Result<void> add(const Fingerprint& fingerprint, std::uint32_t length, bool is_there) {
    told_.push_back({{fingerprint, length, 0}, is_there});
    return told_.size() < kComparedBlocks ? Result<void>{} : compare();
  }
  Result<void> finish() {
    BELAY_TRY(compare());
    for (std::size_t i = 0; i < there_.size(); ++i)
      if (there_[i]) candidate_.needed[i] = false;
    return {};
  }

 private:
  Result<void> compare() {
    if (first_ + told_.size() > there_.size())
      return fail(Code::corruption, "{} has fewer blocks than a copy of it",
                  format::segment_name(candidate_.task->id));
    std::size_t i = 0;
    BELAY_TRY(candidate_.table->read(first_, told_.size(), reader_, [&](const auto& block, bool) {
      const auto& [told, is_there] = told_[i];
      there_[first_ + i++] =
          is_there && told.fingerprint == block.fingerprint && told.length == block.length;
    }));
    first_ += told_.size();
    told_.clear();
    return {};
  }

  Candidate& candidate_;
  store::PageReader& reader_;
  std::vector<bool> there_;
  std::vector<std::pair<store::StoredBlock, bool>> told_;
  std::uint64_t first_ = 0;  ///< of what was told last
};

Result<void> leave_out_bundle(store::Bundle& bundle, Candidate& candidate,
                              store::PageReader& reader) {
  const auto number = bundle.rider().find(candidate.task->id);
  if (!number || bundle.rider().segments[*number].blocks != candidate.needed.size()) return {};
  Elsewhere elsewhere(candidate, reader);
  Result<void> compared;
  BELAY_TRY(bundle.each_block_of(*number, [&](const format::BundledBlock& block) {
    if (compared)
      compared =
          elsewhere.add(block.fingerprint, block.length, block.entry != format::kNotInBundle);
  }));
  BELAY_TRY(compared);
  return elsewhere.finish();
}

Result<void> leave_out_copy(store::Tier& place, const StoreId& store, Candidate& candidate,
                            store::PageReader& reader) {
  store::PageReader of_copy;
  BELAY_ASSIGN(auto copy,
               store::SegmentTable::open(place, candidate.task->id, store, FileKind::copy));
  Elsewhere elsewhere(candidate, reader);
  Result<void> compared;
  BELAY_TRY(
      copy.read(0, copy.entries(), of_copy, [&](const store::StoredBlock& block, bool present) {
        if (compared) compared = elsewhere.add(block.fingerprint, block.length, present);
      }));
  BELAY_TRY(compared);
  return elsewhere.finish();
}

/// Of blocks that are needed, those that the tier has are not any more. What bundles have is told
/// by their riders; a copy put together from them would take several times as much memory.
void leave_out_copied(const DrainSources& from, const StoreId& store, Candidate& candidate,
                      store::PageReader& reader) {
  const auto warn = [&](const Error& error) {
    from.log.warn("global tier: {}; it is written again", error.message());
  };
  for (const std::string& directory : candidate.task->copied) {
    if (!any_needed(candidate)) return;
    auto& place = store::place_in(from.sight, directory);
    const auto bundles = place.bundles_with(candidate.task->id);
    for (const auto& bundle : bundles)
      if (const auto left_out = leave_out_bundle(*bundle, candidate, reader); !left_out)
        warn(left_out.error());
    if (!bundles.empty()) continue;
    if (const auto left_out = leave_out_copy(place, store, candidate, reader); !left_out)
      warn(left_out.error());
  }
}

OwnShare::Segment share_of(Candidate candidate) {
  const auto& table = candidate.table;
  OwnShare::Segment segment;
  segment.head = {candidate.task->id, candidate.task->place, table->header().block_bytes,
                  table->entries()};
  segment.needed = std::move(candidate.needed);
  segment.runs = std::move(candidate.runs);
  segment.tell = [table](std::uint64_t first, std::uint64_t count, store::PageReader& reader,
                         const store::SegmentTable::Take& take) {
    return table->read(first, count, reader, take);
  };
  segment.read = [table](std::uint64_t begin, std::span<std::byte> into,
                         store::PageReader& reader) {
    return reader.read(table->file(), begin, into);
  };
  return segment;
}

}  // namespace

Result<OwnShare> open_share(const DrainSources& from, const Origin& origin,
                            const std::vector<DrainTask>& tasks, std::vector<LostFile>& damaged) {
  store::PageReader reader;
  // The block table in memory is overwritten by the next capture: the file is read instead.
  const std::string name = format::manifest_name(origin.key, origin.rank);
  BELAY_ASSIGN(auto opened, store::ManifestTable::open(from.nodes, name, reader));
  const auto manifest = std::make_shared<store::ManifestTable>(std::move(opened));
  const Manifest& head = manifest->head();
  if (head.origin != origin)
    return fail(Code::corruption, "{}/{}: its content is another file's", from.nodes.place(), name);
  std::vector<Candidate> candidates;
  for (const DrainTask& task : tasks) {
    if (task.keeper != origin.rank) continue;
    const auto holder = holder_of(head, task.id);
    if (!task.whole && !(holder && manifest->is_used(*holder))) continue;
    auto table = store::SegmentTable::open(store::place_in(from.nodes, task.directory), task.id,
                                           origin.store);
    if (!table) {
      damaged.push_back({task.id, FileKind::segment, task.place});
      return Unexpected(table.error());
    }
    candidates.push_back({&task, std::make_shared<store::SegmentTable>(*std::move(table)), {}, {}});
  }
  BELAY_TRY(Liveness(*manifest, candidates, from.memory_bytes, reader).find());
  std::sort(candidates.begin(), candidates.end(),
            [](const Candidate& a, const Candidate& b) { return a.task->id < b.task->id; });
  std::vector<OwnShare::Segment> segments;
  for (Candidate& candidate : candidates) {
    leave_out_copied(from, origin.store, candidate, reader);
    if (any_needed(candidate)) segments.push_back(share_of(std::move(candidate)));
  }
  return OwnShare(
      manifest->file_bytes(),
      [manifest](std::uint64_t begin, std::span<std::byte> into, store::PageReader& pages) {
        return manifest->read(begin, into, pages);
      },
      std::move(segments));
}

}  // namespace belay::session
