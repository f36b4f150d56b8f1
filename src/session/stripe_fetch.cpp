// SPDX-License-Identifier: Apache-2.0
#include "session/stripe_fetch.hpp"

#include "base/try.hpp"
#include "format/segment.hpp"
#include "os/memory.hpp"
#include "session/range_rebuild.hpp"
#include "session/range_server.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace belay::session {
namespace {

constexpr std::uint64_t kBatchBytes = std::uint64_t{64} << 20;  // of blocks rebuilt at a time

/// A segment that cannot be read, and its index as far as the stripe gave it back.
struct LostSegment {
  const Stripe* stripe = nullptr;
  std::uint32_t seat = 0;
  std::vector<std::byte> header = std::vector<std::byte>(format::kSegmentHeaderBytes);
  std::vector<std::byte> footer_bytes = std::vector<std::byte>(format::kSegmentFooterBytes);
  std::vector<std::byte> index_bytes = {};
  format::SegmentFooter footer = {};
  /// Where in the member each block begins.
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint32_t>, std::uint64_t> offsets = {};

  const StripeMember& member() const { return stripe->members[seat]; }
};

auto key_of(const Fingerprint& fingerprint, std::uint32_t length) {
  return std::tuple(fingerprint.low, fingerprint.high, length);
}

/// One rank's search.
class StripeFetch {
 public:
  StripeFetch(Equipment& equipment, ranks::Group& group, const catalog::Whereabouts& whereabouts,
              const Manifest& manifest, RangeServer& server)
      : equipment_(equipment),
        whereabouts_(whereabouts),
        manifest_(manifest),
        group_(group),
        rebuild_(group, whereabouts, server) {}

  Result<std::vector<LostBlock>> run(std::vector<LostBlock> lost) {
    for (const LostBlock& block : lost) add_candidates(block.id);
    BELAY_TRY(fetch_ends());
    BELAY_TRY(fetch_indexes());
    std::uint64_t batches = (bytes_of(lost) + kBatchBytes - 1) / kBatchBytes;
    BELAY_TRY(group_.reduce({&batches, 1}, ranks::Reduction::max));
    std::vector<LostBlock> left;
    for (std::size_t next = 0; batches > 0; --batches)
      BELAY_TRY(fetch_batch(lost, next, batches == 1, left));
    return left;
  }

 private:
  static std::uint64_t bytes_of(const std::vector<LostBlock>& blocks) {
    std::uint64_t bytes = 0;
    for (const LostBlock& block : blocks) bytes += block.wanted.length;
    return bytes;
  }

  void add_candidates(const SegmentId& id);
  Result<void> fetch_ends();
  Result<void> fetch_indexes();
  Result<void> fetch_batch(std::vector<LostBlock>& lost, std::size_t& next, bool last,
                           std::vector<LostBlock>& left);
  const std::uint64_t* find(const LostBlock& block, const LostSegment*& segment) const;

  Equipment& equipment_;
  const catalog::Whereabouts& whereabouts_;
  const Manifest& manifest_;
  ranks::Group& group_;
  RangeRebuild rebuild_;
  std::map<SegmentId, LostSegment> segments_;
};

/// The segment itself, and those of the same version that this manifest counts on.
void StripeFetch::add_candidates(const SegmentId& wanted) {
  std::vector<SegmentId> ids{wanted};
  for (const SegmentRef& other : manifest_.segments)
    if (other.id.key == wanted.key) ids.push_back(other.id);
  for (const SegmentId& id : ids) {
    const Stripe* const stripe = whereabouts_.stripe_of(id);
    if (stripe == nullptr || segments_.contains(id)) continue;
    for (std::uint32_t seat = 0; seat < stripe->seats(); ++seat)
      if (stripe->members[seat].rank == id.rank)
        segments_.emplace(id, LostSegment{.stripe = stripe, .seat = seat});
  }
}

Result<void> StripeFetch::fetch_ends() {
  std::vector<WantedRange> wanted;
  for (auto& [id, segment] : segments_) {
    wanted.push_back({segment.stripe, segment.seat, 0, segment.header});
    wanted.push_back({segment.stripe, segment.seat,
                      segment.member().bytes() - format::kSegmentFooterBytes,
                      segment.footer_bytes});
  }
  BELAY_TRY(rebuild_.run(wanted));
  auto range = wanted.begin();
  std::erase_if(segments_, [&](const auto& entry) {
    const bool lost = range[0].lost || range[1].lost;
    range += 2;
    (void)entry;
    return lost;
  });
  return {};
}

Result<void> StripeFetch::fetch_indexes() {
  std::vector<WantedRange> wanted;
  for (auto entry = segments_.begin(); entry != segments_.end();) {
    LostSegment& segment = entry->second;
    const StripeMember& member = segment.member();
    const auto footer = format::decode_segment_footer(segment.footer_bytes, member.file_bytes);
    if (!footer || footer->index_offset < member.gap_begin + member.gap_bytes) {
      entry = segments_.erase(entry);
      continue;
    }
    segment.footer = *footer;
    segment.index_bytes.resize(member.file_bytes - format::kSegmentFooterBytes -
                               footer->index_offset);
    wanted.push_back({segment.stripe, segment.seat, footer->index_offset - member.gap_bytes,
                      segment.index_bytes});
    ++entry;
  }
  BELAY_TRY(rebuild_.run(wanted));
  auto range = wanted.begin();
  for (auto& [id, segment] : segments_) {
    if ((range++)->lost) continue;
    const auto header = format::decode_segment_header(segment.header);
    if (!header) continue;
    const auto index = format::decode_segment_index(segment.index_bytes, segment.footer, *header);
    if (!index) continue;
    std::uint64_t offset = format::kSegmentHeaderBytes;
    for (const format::IndexEntry& entry : index->entries) {
      if (offset >= segment.member().gap_begin) break;  // natural blocks are elsewhere
      segment.offsets.try_emplace(key_of(entry.fingerprint, entry.length), offset);
      offset += entry.length;
    }
    segment.index_bytes = {};
  }
  return {};
}

const std::uint64_t* StripeFetch::find(const LostBlock& block, const LostSegment*& found) const {
  const auto key = key_of(block.wanted.fingerprint, block.wanted.length);
  for (auto entry = segments_.lower_bound({block.id.key, 0});
       entry != segments_.end() && entry->first.key == block.id.key; ++entry)
    if (const auto offset = entry->second.offsets.find(key);
        offset != entry->second.offsets.end()) {
      found = &entry->second;
      return &offset->second;
    }
  return nullptr;
}

Result<void> StripeFetch::fetch_batch(std::vector<LostBlock>& lost, std::size_t& next, bool last,
                                      std::vector<LostBlock>& left) {
  std::vector<std::vector<std::byte>> scratch;
  std::vector<WantedRange> wanted;
  std::vector<LostBlock*> blocks;
  std::uint64_t bytes = 0;
  for (; next < lost.size() && (bytes < kBatchBytes || last); ++next) {
    LostBlock& block = lost[next];
    const LostSegment* segment = nullptr;
    const std::uint64_t* const offset = find(block, segment);
    bytes += block.wanted.length;
    if (offset == nullptr) {
      left.push_back(block);
      continue;
    }
    scratch.emplace_back(block.wanted.length);
    wanted.push_back({segment->stripe, segment->seat, *offset, scratch.back()});
    blocks.push_back(&block);
  }
  BELAY_TRY(rebuild_.run(wanted));
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const WantedBlock& block = blocks[i]->wanted;
    if (wanted[i].lost || equipment_.hasher.hash(scratch[i]) != block.fingerprint)
      left.push_back(*blocks[i]);
    else
      os::copy_past_cache(block.to, scratch[i].data(), block.fits);
  }
  return {};
}

}  // namespace

Result<Fetched> rebuild_blocks(Equipment& equipment, ranks::Group& group,
                               const catalog::Whereabouts& whereabouts, const Manifest& manifest,
                               std::vector<LostBlock> lost) {
  std::uint64_t any = whereabouts.stripes().empty() || lost.empty() ? 0 : 1;
  BELAY_TRY(group.reduce({&any, 1}, ranks::Reduction::max));
  if (any == 0) return Fetched{std::move(lost), {}};
  RangeServer server(equipment.tier, whereabouts, manifest.origin.store, equipment.log);
  Fetched fetched;
  BELAY_ASSIGN(fetched.left,
               StripeFetch(equipment, group, whereabouts, manifest, server).run(std::move(lost)));
  for (const StoredFile& file : server.damaged())
    fetched.damaged.push_back({file.id, file.kind, file.place});
  return fetched;
}

}  // namespace belay::session
