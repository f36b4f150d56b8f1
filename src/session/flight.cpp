// SPDX-License-Identifier: Apache-2.0
#include "session/flight.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "format/segment.hpp"
#include "os/files.hpp"
#include "vote/holdings.hpp"
#include "vote/publish.hpp"

#include <algorithm>
#include <cstring>

namespace belay::session {
namespace {

format::SegmentHeader header_of(const Manifest& manifest) {
  return {manifest.origin, manifest.hash, manifest.block_bytes};
}

/// Walks the blocks of the segment in the order in which they were written.
class IndexWalk {
 public:
  IndexWalk(const Manifest& manifest, const std::vector<bool>& written,
            const std::vector<bool>& natural)
      : manifest_(manifest), written_(written), natural_(natural) {}

  format::IndexEntry next() {
    while (block_ < written_.size() && !is_next(block_)) ++block_;
    if (block_ == written_.size()) start_again();
    while (block_ >=
           manifest_.regions[region_].first_block + manifest_.blocks_of(manifest_.regions[region_]))
      ++region_;
    const RegionRecord& region = manifest_.regions[region_];
    const format::IndexEntry entry{manifest_.fingerprints[block_],
                                   manifest_.length_of(region, block_ - region.first_block)};
    ++block_;
    return entry;
  }

 private:
  bool is_next(std::uint64_t block) const {
    return written_[block] && (natural_.empty() ? !last_ : natural_[block] == last_);
  }
  /// For the natural ones.
  void start_again() {
    last_ = true;
    region_ = 0;
    for (block_ = 0; !is_next(block_);) ++block_;
  }

  const Manifest& manifest_;
  const std::vector<bool>& written_;
  const std::vector<bool>& natural_;
  bool last_ = false;  ///< natural ones are being walked
  std::uint64_t block_ = 0;
  std::size_t region_ = 0;
};

}  // namespace

Flight::Flight(Equipment& equipment, Manifest header, std::uint64_t start_ns)
    : manifest(std::make_shared<Manifest>(std::move(header))),
      equipment_(equipment),
      start_ns_(start_ns) {}

SegmentId Flight::segment_id() const { return {manifest->origin.key, manifest->origin.rank}; }

void Flight::encode() {
  encoding_ = std::make_unique<SegmentEncoding>(*equipment_.chooser, equipment_.clock);
}

format::SegmentHeader Flight::header() const {
  format::SegmentHeader header = header_of(*manifest);
  header.encoded = encodes();
  return header;
}

void Flight::start_segment(capture::StagingBuffer& buffer) {
  const auto bytes = format::encode_segment_header(header());
  std::memcpy(buffer.memory.bytes().data(), bytes.data(), bytes.size());
  buffer.used = bytes.size();
}

void Flight::abandon(Error error) {
  if (!error_) error_ = std::move(error);
  failed_.store(true, std::memory_order_release);
}

Result<void> Flight::verify(const capture::StagingBuffer& buffer) {
  std::vector<fingerprint::Block> blocks(buffer.blocks.size());
  std::vector<Fingerprint> found(buffer.blocks.size());
  const auto memory = buffer.memory.bytes();
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = memory.subspan(buffer.blocks[i].offset, buffer.blocks[i].length);
  equipment_.hasher.hash(blocks, found);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (found[i] != buffer.blocks[i].fingerprint) {
      changed_region_ = buffer.blocks[i].region;
      return fail(Code::invalid_argument, "a region changed");
    }
  return {};
}

void Flight::name_changed_region() {
  if (!changed_region_) return;
  error_ = Error(Code::invalid_argument,
                 fmt::format("region '{}' changed during checkpoint(); nobody may write protected "
                             "memory between its entry and return",
                             manifest->regions[*changed_region_].name));
}

Result<void> Flight::create_segment() {
  if (segment_) return {};
  BELAY_ASSIGN(auto created, store::FileWriter::create_large(equipment_.tier,
                                                             format::segment_name(segment_id())));
  segment_.emplace(std::move(created));
  return {};
}

Result<void> Flight::write_pages(capture::StagingBuffer& buffer, std::size_t bytes) {
  BELAY_TRY(verify(buffer));
  BELAY_TRY(create_segment());
  return segment_->append_aligned(buffer.memory.bytes().first(bytes));
}

Result<void> Flight::write_encoded(const capture::StagingBuffer& buffer) {
  BELAY_TRY(verify(buffer));
  if (!segment_) {
    BELAY_TRY(create_segment());
    BELAY_TRY(encoding_->lend_to(*segment_));
    BELAY_TRY(segment_->append(format::encode_segment_header(header())));
  }
  return encoding_->write(*segment_, buffer);
}

void Flight::write(capture::StagingBuffer* buffer) {
  if (!failed()) {
    const std::size_t pages = buffer->used / os::kDirectAlignment * os::kDirectAlignment;
    auto done = within_memory(
        [&] { return encodes() ? write_encoded(*buffer) : write_pages(*buffer, pages); });
    if (!done) abandon(std::move(done).error());
  }
  equipment_.staging.release(buffer);
}

Result<void> Flight::verify(std::span<const UnsafeBlock> blocks) {
  std::vector<fingerprint::Block> bytes(blocks.size());
  std::vector<Fingerprint> found(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) bytes[i] = blocks[i].bytes;
  equipment_.hasher.hash(bytes, found);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    if (found[i] != manifest->fingerprints[blocks[i].block]) {
      changed_region_ = blocks[i].region;
      return fail(Code::invalid_argument, "a region changed");
    }
  return {};
}

Result<void> Flight::append_held(std::span<const UnsafeBlock> blocks) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{8} << 20;
  while (!blocks.empty()) {
    // As many as lie one behind the other: what was left out makes gaps.
    std::size_t count = 1;
    std::size_t bytes = blocks[0].bytes.size();
    while (count < blocks.size() && bytes < kMostBytes &&
           blocks[count].bytes.data() == blocks[0].bytes.data() + bytes)
      bytes += blocks[count++].bytes.size();
    BELAY_TRY(verify(blocks.first(count)));
    BELAY_TRY(segment_->append_in_place({blocks[0].bytes.data(), bytes}));
    blocks = blocks.subspan(count);
  }
  return {};
}

void Flight::write_held(const std::vector<UnsafeBlock>& blocks, capture::StagingBuffer& scratch) {
  if (blocks.empty() || failed()) return;
  auto done = within_memory([&]() -> Result<void> {
    BELAY_TRY(create_segment());
    segment_->lend(scratch.memory.bytes());
    BELAY_TRY(segment_->append(format::encode_segment_header(header())));
    return append_held(blocks);
  });
  if (!done) abandon(std::move(done).error());
}

void Flight::keep(const std::vector<KeptCopies::Arrival>& arrivals, std::atomic<bool>& done) {
  auto kept = within_memory([&]() -> Result<void> {
    for (const KeptCopies::Arrival& arrival : arrivals)
      if (!failed()) BELAY_TRY(kept_->write(arrival));
    return {};
  });
  if (!kept) abandon(std::move(kept).error());
  done.store(true, std::memory_order_release);
}

void Flight::keep(const std::vector<KeptShards::Piece>& pieces, std::atomic<bool>& done) {
  auto kept = within_memory([&]() -> Result<void> {
    for (const KeptShards::Piece& piece : pieces)
      if (!failed()) BELAY_TRY(shards_->write(piece));
    return {};
  });
  if (!kept) abandon(std::move(kept).error());
  done.store(true, std::memory_order_release);
}

vote::Kept Flight::kept() const {
  vote::Kept kept = kept_ ? kept_->kept() : vote::Kept{};
  kept.shards = shards_ ? shards_->ids() : landed_shards_;
  kept.bundles = bundles_;
  return kept;
}

Result<void> Flight::write_last(capture::StagingBuffer& last) {
  if (last.used == 0 && segment_ && segment_->is_lent()) return {};  // blocks that were held
  if (encodes()) return write_encoded(last);
  const std::size_t pages = last.used / os::kDirectAlignment * os::kDirectAlignment;
  BELAY_TRY(write_pages(last, pages));
  // What is left of the buffer moves out of the way, so that its memory can take the index.
  const auto rest = last.memory.bytes().subspan(pages, last.used - pages);
  const std::vector<std::byte> tail(rest.begin(), rest.end());
  segment_->lend(last.memory.bytes());
  return segment_->append(tail);
}

std::vector<format::Extent> Flight::extents(std::uint64_t entries) const {
  if (encodes()) return encoding_->extents();
  return {{.offset = format::kSegmentHeaderBytes,
           .encoded_bytes = manifest->ledger.written_bytes,
           .raw_bytes = manifest->ledger.written_bytes,
           .first_entry = 0,
           .entries = static_cast<std::uint32_t>(entries)}};
}

Result<void> Flight::write_segment_end(capture::StagingBuffer& last) {
  BELAY_TRY(write_last(last));
  std::uint64_t entries = 0;
  for (const bool in_segment : written) entries += in_segment ? 1 : 0;
  IndexWalk walk(*manifest, written, natural);
  BELAY_TRY(format::encode_segment_end(*segment_, header(), extents(entries), entries,
                                       [&walk] { return walk.next(); }));
  if (encodes()) {
    manifest->ledger.encoded_bytes = encoding_->encoded_bytes();
    const auto measured = encoding_->bandwidth();
    if (measured && !equipment_.settings.bandwidth) equipment_.chooser->set_bandwidth(*measured);
  }
  file_bytes_ += segment_->offset();
  for (SegmentRef& segment : manifest->segments)
    if (segment.id == segment_id()) segment.file_bytes = segment_->offset();
  return {};
}

Result<void> Flight::publish_manifest(capture::StagingBuffer& scratch, store::FileWriter* segment) {
  manifest->ledger.file_bytes = file_bytes_;
  BELAY_ASSIGN(const std::uint64_t bytes, vote::publish(equipment_.tier, *manifest, segment,
                                                        scratch.memory.bytes(), visible_));
  file_bytes_ += bytes;
  manifest->ledger.file_bytes = file_bytes_;
  return {};
}

Result<void> Flight::publish_with_own_scratch() {
  BELAY_ASSIGN(auto* scratch, equipment_.staging.try_acquire());
  if (scratch == nullptr) return fail(Code::no_space, "no staging memory is free");
  auto published = within_memory([&] { return publish_manifest(*scratch, nullptr); });
  equipment_.staging.release(scratch);
  return published;
}

Result<void> Flight::vote(capture::StagingBuffer* last) {
  if (last == nullptr) return publish_with_own_scratch();
  BELAY_TRY(write_segment_end(*last));
  if (planted(Mistake::vote_early)) {
    BELAY_TRY(publish_with_own_scratch());
    return segment_->finish();
  }
  BELAY_TRY(segment_->complete());
  return publish_manifest(*last, &*segment_);
}

void Flight::finish(capture::StagingBuffer* last) {
  if (!failed()) {
    const auto done = within_memory([&] {
      info_ = vote::info_of(*manifest);  // now: after the vote a lack of memory must change nothing
      auto kept = kept_ ? kept_->finish() : Result<void>{};
      if (kept && shards_) kept = shards_->finish();
      return kept ? vote(last) : kept;
    });
    if (!done)
      abandon(done.error());
    else
      voted_ = true;
  }
  if (last != nullptr) equipment_.staging.release(last);
  segment_.reset();
  durable_ns_ = equipment_.clock.now_ns() - start_ns_;
  written = {};
  if (voted_) info_.ledger.durable_ns = manifest->ledger.durable_ns = durable_ns_;
  if (voted_) info_.ledger.file_bytes = manifest->ledger.file_bytes;
  if (voted_) info_.ledger.encoded_bytes = manifest->ledger.encoded_bytes;
  end();
}

Result<void> Flight::check_held(std::span<const UnsafeBlock> blocks) {
  constexpr std::size_t kBatch = 512;
  while (!blocks.empty()) {
    const std::size_t count = std::min(kBatch, blocks.size());
    auto same = verify(blocks.first(count));
    name_changed_region();
    if (!same) return Unexpected(error_ ? *error_ : same.error());
    blocks = blocks.subspan(count);
  }
  return {};
}

void Flight::land_in_bundles(const Result<void>& outcome, std::vector<vote::KeptBundle> bundles,
                             std::uint64_t file_bytes) {
  bundles_ = std::move(bundles);
  visible_ = true;  // perhaps: what is under its name by now goes when all know that it failed
  const auto landed = within_memory([&]() -> Result<void> {
    BELAY_TRY(outcome);
    manifest->ledger.file_bytes = file_bytes_ = file_bytes;
    info_ = vote::info_of(*manifest);
    return {};
  });
  voted_ = landed.has_value();
  if (!landed) abandon(landed.error());
  durable_ns_ = equipment_.clock.now_ns() - start_ns_;
  info_.ledger.durable_ns = manifest->ledger.durable_ns = durable_ns_;
  written = {};
  end();
}

void Flight::land(Outcome outcome) {
  const auto landed = within_memory([&]() -> Result<void> {
    if (!outcome.voted)
      return Unexpected(outcome.error ? *outcome.error : Error(Code::io, "nobody says why"));
    // Not all of it: the origin may be looked at meanwhile.
    manifest->holders = std::move(outcome.manifest.holders);
    manifest->segments = std::move(outcome.manifest.segments);
    manifest->ledger = outcome.manifest.ledger;
    info_ = vote::info_of(*manifest);
    expect_copies(KeptCopies::kept_before(equipment_, header_of(*manifest), outcome.kept));
    landed_shards_ = std::move(outcome.kept.shards);
    sent_bytes = outcome.sent_bytes;
    kept_bytes = outcome.kept_bytes;
    shares = std::move(outcome.shares);
    keepers = std::move(outcome.keepers);
    voted_ = true;
    return {};
  });
  visible_ = true;  // perhaps: what that process has written is not this one's to remove
  if (!landed) abandon(landed.error());
  durable_ns_ = manifest->ledger.durable_ns;
  file_bytes_ = manifest->ledger.file_bytes;
  written = {};
  end();
}

Outcome Flight::outcome() const {
  Outcome outcome;
  outcome.voted = voted_;
  outcome.error = error_;
  if (!voted_) return outcome;
  return {true, {}, *manifest, shares, keepers, kept(), sent_bytes, kept_bytes};
}

void Flight::end() {
  for (capture::StagingBuffer* buffer : held_) equipment_.staging.release(buffer);
  held_.clear();
  // Files that this version did not need the pages of. What cannot go does so with the next.
  vote::drop_retired(equipment_.tier, equipment_.log);
  // Without an index the next version makes one; what was not removed goes with the retired files.
  (void)within_memory([&] { return voted_ ? index_blocks() : clear_away(); });
  finished_.store(true, std::memory_order_release);
}

Result<void> Flight::index_blocks() {
  if (!wants_index_ || !equipment_.settings.dedups()) return {};
  index_.index(*manifest);
  indexed_ = true;
  return {};
}

Result<void> Flight::clear_away() {
  name_changed_region();
  // Nobody can have seen this version: give the space back at once.
  if (visible_) return {};
  if (kept_) kept_->clear_away();
  if (shards_) shards_->clear_away();
  (void)equipment_.tier.remove(format::segment_name(segment_id()));
  const std::string name = format::manifest_name(manifest->origin.key, manifest->origin.rank);
  (void)equipment_.tier.remove(format::temporary_name(name));
  return {};
}

std::vector<std::uint64_t> Flight::live_bytes() const {
  if (indexed_) return index_.live_bytes();
  std::vector<std::uint64_t> live(manifest->segments.size(), 0);
  for (const RegionRecord& region : manifest->regions)
    for (std::uint64_t i = 0; i < manifest->blocks_of(region); ++i)
      live[manifest->holders[region.first_block + i]] += manifest->length_of(region, i);
  return live;
}

}  // namespace belay::session
