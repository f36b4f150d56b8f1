// SPDX-License-Identifier: Apache-2.0
#include "session/version_capture.hpp"

#include "base/try.hpp"
#include "format/segment.hpp"
#include "os/files.hpp"
#include "os/memory.hpp"

#include <algorithm>
#include <cstring>

namespace belay::session {
namespace {

// A window is hashed by all threads, then decided by one. Large enough that waking threads does not
// show, small enough that its blocks are still in the cache when they are copied.
constexpr std::uint64_t kWindowBytes = std::uint64_t{8} << 20;
constexpr std::size_t kWindowBlocks = 8192;
constexpr std::uint64_t kPieceBytes = std::uint64_t{256} << 10;
// Copied, verified and written before the next: so much stays in the cache of a core meanwhile.
constexpr std::size_t kCachedBytes = std::size_t{256} << 10;
constexpr std::size_t kEarlyBytes = std::size_t{1} << 20;
constexpr std::uint16_t kUnmapped = 0xffff;

std::size_t pieces_of(std::size_t items, std::uint64_t bytes) {
  return std::clamp<std::size_t>(bytes / kPieceBytes, 1, std::max<std::size_t>(items, 1));
}

/// Comparable only if cut and named in the same way.
bool comparable(const Manifest& a, const Manifest& b) {
  return a.block_bytes == b.block_bytes && a.hash == b.hash && a.origin.seed == b.origin.seed;
}

}  // namespace

VersionCapture::VersionCapture(Equipment& equipment, std::shared_ptr<Flight> flight,
                               catalog::Catalog& catalog, dedup::LocalDedup* dedup,
                               SegmentDoubts doubts, bool together)
    : equipment_(equipment),
      flight_(std::move(flight)),
      manifest_(*flight_->manifest),
      older_(catalog.manifest()),
      catalog_(catalog),
      dedup_(dedup),
      doubts_(std::move(doubts)),
      avoided_(doubts_.missing.size()),
      new_segments_(doubts_.missing.size(), kUnmapped),
      own_segment_(kUnmapped),
      together_(together) {
  for (std::size_t i = 0; i < avoided_.size(); ++i)
    avoided_[i] = doubts_.missing[i] || doubts_.carry[i] > 0;
}

void VersionCapture::expect(std::size_t regions, std::uint64_t bytes) {
  const std::size_t blocks = bytes / manifest_.block_bytes + regions;  // one may be short in each
  in_place_ = comparable(manifest_, older_) && !older_.fingerprints.empty();
  if (in_place_) static_cast<BlockTable&>(manifest_) = catalog_.lend();
  manifest_.regions.reserve(regions);
  manifest_.fingerprints.reserve(blocks);
  manifest_.holders.reserve(blocks);
  flight_->written.reserve(blocks);
  if (dedup_ != nullptr) dedup_->start(manifest_, blocks, in_place_);
}

const BlockTable& VersionCapture::older_blocks() const { return in_place_ ? manifest_ : older_; }

bool VersionCapture::stays_in_place(const RegionRecord& record) const {
  const std::size_t index = manifest_.regions.size();
  if (index >= older_.regions.size()) return true;
  const RegionRecord& old = older_.regions[index];
  return record.name == old.name &&
         (record.bytes == old.bytes || index + 1 == older_.regions.size());
}

Result<void> VersionCapture::leave_place() {
  BELAY_TRY(flush());
  BlockTable mine;
  mine.fingerprints.reserve(manifest_.fingerprints.capacity());
  mine.holders.reserve(manifest_.holders.capacity());
  const auto passed = static_cast<std::ptrdiff_t>(next_block_);
  mine.fingerprints.assign(manifest_.fingerprints.begin(), manifest_.fingerprints.begin() + passed);
  mine.holders.assign(manifest_.holders.begin(), manifest_.holders.begin() + passed);
  catalog_.give_back(std::exchange(static_cast<BlockTable&>(manifest_), std::move(mine)),
                     next_block_ == 0);
  in_place_ = false;
  if (dedup_ != nullptr) dedup_->separate();
  return {};
}

Result<void> VersionCapture::add(const std::string& name, RegionAccess& access,
                                 const std::vector<bool>* dirty) {
  BELAY_ASSIGN(const auto bytes, within("region '" + name + "'", access.view()));
  RegionRecord record{name, access.type(), access.shape(), bytes.size(), next_block_};
  const std::uint64_t blocks = manifest_.blocks_of(record);
  if (next_block_ + blocks > dedup::kMaxBlocks)
    return fail(Code::invalid_argument,
                "region '{}': more than {} blocks in one rank; use a larger `block`", name,
                dedup::kMaxBlocks);
  if (in_place_ && !stays_in_place(record)) BELAY_TRY(leave_place());
  const auto region = static_cast<std::uint32_t>(manifest_.regions.size());
  next_block_ += blocks;
  if (manifest_.fingerprints.size() < next_block_) {
    manifest_.fingerprints.resize(next_block_);
    manifest_.holders.resize(next_block_);
  }
  flight_->written.resize(next_block_);
  manifest_.regions.push_back(record);
  manifest_.ledger.protected_bytes += bytes.size();

  const RegionRecord* old = comparable(manifest_, older_) ? catalog_.region(name) : nullptr;
  const std::uint64_t old_blocks = old == nullptr ? 0 : older_.blocks_of(*old);
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint32_t length = manifest_.length_of(record, i);
    const bool same_place = i < old_blocks && older_.length_of(*old, i) == length;
    const std::uint64_t previous = same_place ? old->first_block + i : kNoBlock;
    Candidate candidate{{}, record.first_block + i, previous, region};
    if (dirty != nullptr && !(*dirty)[i] && is_untouched(previous)) {
      manifest_.ledger.untouched_bytes += length;
    } else {
      candidate.bytes = bytes.subspan(i * manifest_.block_bytes, length);
      window_bytes_ += length;
    }
    window_.push_back(candidate);
    if (window_bytes_ >= kWindowBytes || window_.size() >= kWindowBlocks) BELAY_TRY(flush());
  }
  return {};
}

bool VersionCapture::is_untouched(std::uint64_t previous) const {
  return previous != kNoBlock && !avoided_[older_blocks().holders[previous]];
}

std::uint8_t VersionCapture::kept_segment(std::uint8_t old_holder) {
  std::uint16_t& mapped = new_segments_[old_holder];
  if (mapped == kUnmapped) {
    mapped = static_cast<std::uint16_t>(manifest_.segments.size());
    manifest_.segments.push_back(older_.segments[old_holder]);
  }
  return static_cast<std::uint8_t>(mapped);
}

std::uint8_t VersionCapture::own_segment() {
  if (own_segment_ == kUnmapped) {
    own_segment_ = static_cast<std::uint16_t>(manifest_.segments.size());
    manifest_.segments.push_back({{manifest_.origin.key, manifest_.origin.rank}, 0});
  }
  return static_cast<std::uint8_t>(own_segment_);
}

void VersionCapture::enter(std::uint64_t block, const Fingerprint& fingerprint,
                           std::uint8_t holder) {
  manifest_.fingerprints[block] = fingerprint;
  manifest_.holders[block] = holder;
}

void VersionCapture::hash_window() {
  blocks_.clear();
  for (const Candidate& candidate : window_)
    if (!candidate.bytes.empty()) blocks_.push_back(candidate.bytes);
  fingerprints_.resize(blocks_.size());
  const std::size_t pieces = pieces_of(blocks_.size(), window_bytes_);
  equipment_.parallel.run(pieces, [&](std::size_t piece) {
    const std::size_t first = blocks_.size() * piece / pieces;
    const std::size_t count = blocks_.size() * (piece + 1) / pieces - first;
    equipment_.hasher.hash(std::span(blocks_).subspan(first, count),
                           std::span(fingerprints_).subspan(first, count));
  });
}

Result<void> VersionCapture::flush() {
  if (window_.empty()) return {};
  hash_window();
  std::size_t hashed = 0;
  for (const Candidate& candidate : window_) {
    if (candidate.bytes.empty()) {
      const BlockTable& older = older_blocks();
      enter(candidate.block, older.fingerprints[candidate.previous],
            kept_segment(older.holders[candidate.previous]));
    } else {
      BELAY_TRY(decide(candidate, fingerprints_[hashed++]));
    }
    if (in_place_ && dedup_ != nullptr) dedup_->passed(candidate.block);
  }
  copy_staged();
  window_.clear();
  window_bytes_ = 0;
  // A worker without work may as well write what there is: little would be left for the end.
  if (buffer_ != nullptr && buffer_->used >= kEarlyBytes && !equipment_.worker.pending())
    return next_buffer();
  return {};
}

Result<void> VersionCapture::decide(const Candidate& candidate, const Fingerprint& fingerprint) {
  if (found_unchanged(candidate, fingerprint)) return {};
  const auto holder = find_duplicate(candidate, fingerprint);
  // From here on the table is overwritten: what it says of the older version was read before.
  if (in_place_ && dedup_ != nullptr) dedup_->displace(candidate.block);
  if (!holder) return store(candidate, fingerprint);
  enter(candidate.block, fingerprint, *holder);
  manifest_.ledger.duplicate_here_bytes += candidate.bytes.size();
  return {};
}

bool VersionCapture::found_unchanged(const Candidate& candidate, const Fingerprint& fingerprint) {
  const BlockTable& older = older_blocks();
  if (candidate.previous == kNoBlock || older.fingerprints[candidate.previous] != fingerprint)
    return false;
  const std::uint8_t holder = older.holders[candidate.previous];
  if (doubts_.missing[holder]) return false;
  const std::uint64_t length = candidate.bytes.size();
  // Carried blocks go the way of changed ones, and may turn out to be there already: content that
  // one place has moved out of a segment must not hold other places in it.
  if (avoided_[holder] && find_duplicate(candidate, fingerprint)) return false;
  if (doubts_.carry[holder] > 0) {
    if (doubts_.carry[holder] != store::kCarryAll)
      doubts_.carry[holder] -= std::min(doubts_.carry[holder], length);
    manifest_.ledger.carried_bytes += length;
    return false;
  }
  enter(candidate.block, fingerprint, kept_segment(holder));
  manifest_.ledger.unchanged_bytes += length;
  return true;
}

std::optional<std::uint8_t> VersionCapture::find_duplicate(const Candidate& candidate,
                                                           const Fingerprint& fingerprint) {
  if (dedup_ == nullptr) return {};
  const auto found = dedup_->find(fingerprint, static_cast<std::uint32_t>(candidate.bytes.size()));
  if (!found) return {};
  if (found->in_current) return found->holder;
  if (avoided_[found->holder]) return {};
  return kept_segment(found->holder);
}

Result<void> VersionCapture::store(const Candidate& candidate, const Fingerprint& fingerprint) {
  enter(candidate.block, fingerprint, own_segment());
  if (dedup_ != nullptr) dedup_->add(candidate.block);
  if (together_) {
    unsafe_.push_back({candidate.bytes, candidate.block, candidate.region});
    return {};
  }
  flight_->written[candidate.block] = true;
  manifest_.ledger.written_bytes += candidate.bytes.size();
  return stage(candidate.bytes, fingerprint, candidate.region);
}

Result<void> VersionCapture::stage(fingerprint::Block bytes, const Fingerprint& fingerprint,
                                   std::uint32_t region) {
  if (buffer_ == nullptr) {
    BELAY_ASSIGN(buffer_, acquire());
    flight_->start_segment(*buffer_);
  }
  if (buffer_->room() < bytes.size() || (at_once_ && buffer_->used >= kCachedBytes))
    BELAY_TRY(next_buffer());
  // The manifest grows while others write what is staged: they get their own.
  if (flight_->encodes() && (buffer_->regions.empty() || buffer_->regions.back().first != region))
    buffer_->regions.emplace_back(region, manifest_.regions[region]);
  std::byte* const to = buffer_->memory.bytes().data() + buffer_->used;
  buffer_->blocks.push_back({fingerprint, static_cast<std::uint32_t>(buffer_->used),
                             static_cast<std::uint32_t>(bytes.size()), region});
  buffer_->used += bytes.size();
  copies_.push_back({to, bytes});
  return {};
}

void VersionCapture::hold_unsafe() {
  for (; held_ < unsafe_.size(); ++held_) {
    fingerprint::Block& bytes = unsafe_[held_].bytes;
    copied_.emplace_back(bytes.begin(), bytes.end());
    bytes = copied_.back();
  }
}

namespace {

/// Packs blocks into buffers so that each has the place within a page that it will have in the
/// file, should all blocks before it be stored: then it can be written from where it is.
class Packing {
 public:
  explicit Packing(std::size_t buffer_bytes) : buffer_bytes_(buffer_bytes) {}

  struct Place {
    std::size_t buffer;
    std::size_t offset;
  };
  Place next(std::size_t bytes) {
    if (buffers_ == 0 || used_ + bytes > buffer_bytes_) {
      ++buffers_;
      used_ = file_offset_ % os::kDirectAlignment;
    }
    const Place place{buffers_ - 1, used_};
    used_ += bytes;
    file_offset_ += bytes;
    return place;
  }
  std::size_t buffers() const { return buffers_; }

 private:
  const std::size_t buffer_bytes_;
  std::size_t buffers_ = 0;
  std::size_t used_ = 0;
  std::uint64_t file_offset_ = format::kSegmentHeaderBytes;
};

}  // namespace

bool VersionCapture::reserve() {
  Packing packing(equipment_.staging.buffer_bytes());
  for (const UnsafeBlock& block : unsafe_) packing.next(block.bytes.size());
  const std::size_t needed = packing.buffers() + 1;
  if (equipment_.staging.available() < needed) return false;
  reserved_.reserve(needed);
  while (reserved_.size() < needed) {
    const auto buffer = equipment_.staging.try_acquire();
    if (!buffer || *buffer == nullptr) {
      give_back_reserved();
      return false;
    }
    reserved_.push_back(*buffer);
  }
  return true;
}

void VersionCapture::give_back_reserved() {
  for (capture::StagingBuffer* buffer : reserved_) equipment_.staging.release(buffer);
  reserved_.clear();
}

void VersionCapture::hold() {
  Packing packing(equipment_.staging.buffer_bytes());
  for (UnsafeBlock& block : unsafe_) {
    const auto place = packing.next(block.bytes.size());
    std::byte* const to = reserved_[place.buffer]->memory.bytes().data() + place.offset;
    copies_.push_back({to, block.bytes});
    block.bytes = {to, block.bytes.size()};
  }
  copy_staged();
  copied_.clear();
}

Cargo VersionCapture::take_cargo() {
  trim();  // others will get a copy of the manifest
  Cargo cargo;
  cargo.unsafe = std::move(unsafe_);
  cargo.own_segment = own_segment_;
  cargo.counted_on.assign(
      older_.segments.begin() + static_cast<std::ptrdiff_t>(older_.holding_segments()),
      older_.segments.end());
  if (reserved_.empty()) return cargo;
  cargo.scratch = reserved_.back();
  reserved_.pop_back();
  flight_->hold(std::exchange(reserved_, {}));
  return cargo;
}

Result<void> VersionCapture::stage(const std::vector<UnsafeBlock>& stored) {
  constexpr std::size_t kBatch = 512;
  // Where a write is a copy, nothing is gained by leaving it to the worker, and much is lost: what
  // was staged would have to come back from memory twice, to be verified and to be written.
  const auto space = equipment_.tier.space();
  at_once_ = space && space->in_memory;
  if (at_once_) equipment_.worker.wait_all();  // a flight's jobs run one after the other
  for (const UnsafeBlock& block : stored) {
    BELAY_TRY(stage(block.bytes, manifest_.fingerprints[block.block], block.region));
    if (copies_.size() >= kBatch) copy_staged();
  }
  copy_staged();
  at_once_ = false;
  return {};
}

void VersionCapture::copy(const Copy& copy) const {
  if (at_once_)
    std::memcpy(copy.to, copy.from.data(), copy.from.size());
  else
    os::copy_past_cache(copy.to, copy.from.data(), copy.from.size());
}

void VersionCapture::copy_staged() {
  if (copies_.empty()) return;
  const std::uint64_t start = equipment_.clock.now_ns();
  std::uint64_t bytes = 0;
  for (const Copy& copy : copies_) bytes += copy.from.size();
  const std::size_t pieces = pieces_of(copies_.size(), bytes);
  equipment_.parallel.run(pieces, [&](std::size_t piece) {
    const std::size_t last = copies_.size() * (piece + 1) / pieces;
    for (std::size_t i = copies_.size() * piece / pieces; i < last; ++i) copy(copies_[i]);
  });
  copies_.clear();
  stage_ns_ += equipment_.clock.now_ns() - start;
}

Result<capture::StagingBuffer*> VersionCapture::acquire() {
  while (true) {
    BELAY_ASSIGN(auto* buffer, equipment_.staging.try_acquire());
    if (buffer != nullptr) return buffer;
    if (!equipment_.worker.pending())
      return fail(Code::no_space, "staging: no memory is free; raise `staging`");
    const std::uint64_t start = equipment_.clock.now_ns();
    equipment_.worker.wait_one();
    wait_ns_ += equipment_.clock.now_ns() - start;
  }
}

Result<void> VersionCapture::next_buffer() {
  copy_staged();
  BELAY_ASSIGN(auto* next, acquire());
  // Files are written in whole pages: what does not fill one moves to the next buffer's front.
  const std::size_t rest = buffer_->used % os::kDirectAlignment;
  std::memcpy(next->memory.bytes().data(), buffer_->memory.bytes().data() + buffer_->used - rest,
              rest);
  next->used = rest;
  try {
    submit([flight = flight_, full = buffer_] { flight->write(full); });
  } catch (const std::bad_alloc&) {
    equipment_.staging.release(next);
    throw;
  }
  buffer_ = next;
  return {};
}

void VersionCapture::submit(std::function<void()> job) {
  const std::uint64_t start = equipment_.clock.now_ns();
  if (at_once_)
    job();
  else
    equipment_.worker.submit(std::move(job));
  wait_ns_ += equipment_.clock.now_ns() - start;  // an inline worker has done it by now
}

/// The table may be that of a larger version.
void VersionCapture::trim() {
  manifest_.fingerprints.resize(next_block_);
  manifest_.holders.resize(next_block_);
}

Result<void> VersionCapture::seal() {
  BELAY_TRY(flush());
  trim();
  submit([flight = flight_, last = buffer_] { flight->finish(last); });
  buffer_ = nullptr;
  return {};
}

void VersionCapture::abandon(const Error& error) {
  copies_.clear();
  give_back_reserved();
  // Not as a job: it may be memory that is lacking.
  equipment_.worker.wait_all();
  flight_->abandon(error);
  flight_->finish(std::exchange(buffer_, nullptr));
}

}  // namespace belay::session
