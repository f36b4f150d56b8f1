// SPDX-License-Identifier: Apache-2.0
#include "session/segment_read.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "os/files.hpp"
#include "os/memory.hpp"
#include "store/pages.hpp"
#include "store/segment_file.hpp"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>

namespace belay::session {
namespace {

// Dead bytes between two wanted blocks are read too if they are not more than this: cheaper than a
// second request.
constexpr std::uint64_t kGapBytes = std::uint64_t{16} << 10;
// Several requests of this size under way reach the disk's speed.
constexpr std::uint64_t kRunBytes = std::uint64_t{1} << 20;
constexpr std::size_t kPieceBlocks = 16;  ///< that one thread verifies and copies at a time

std::uint64_t round_down(std::uint64_t value) {
  return value / os::kDirectAlignment * os::kDirectAlignment;
}
std::uint64_t round_up(std::uint64_t value) { return round_down(value + os::kDirectAlignment - 1); }

struct PlacedBlock {
  WantedBlock wanted;
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t at = 0;      ///< in the buffer
};

/// Bytes [begin, end) of the file, whole pages unless it decodes, read at once to place `at` of a
/// buffer: blocks [first, last) of the sorted list.
struct Run {
  std::size_t first = 0;
  std::size_t last = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t at = 0;
};

/// Runs that share a buffer.
struct Chunk {
  std::size_t first_run = 0;
  std::size_t last_run = 0;  ///< past the last
  std::uint64_t bytes = 0;
};

/// A chunk on its way: filled by the worker, looked at when `done`.
struct Request {
  Chunk chunk;
  capture::StagingBuffer* buffer = nullptr;
  std::vector<Result<std::size_t>> got;  ///< of each run
  std::atomic<bool> done = false;
};

class SegmentRead {
 public:
  SegmentRead(Equipment& equipment, os::Parallel& readers, store::SegmentFile segment,
              UnreadBlocks& unread)
      : equipment_(equipment), readers_(readers), segment_(std::move(segment)), unread_(unread) {}

  Result<void> run(const std::vector<WantedBlock>& wanted) {
    place(wanted);
    cut_into_runs();
    gather_chunks();
    auto read = read_chunks();
    equipment_.worker.wait_all();  // no request may outlive its file
    for (Request& request : requests_) equipment_.staging.release(request.buffer);
    return read;
  }

 private:
  void place(const std::vector<WantedBlock>& wanted);
  void cut_into_runs();
  void gather_chunks();
  Result<void> read_chunks();
  Result<bool> request_next();
  void fill(Request& request);
  void deliver(const Request& request);
  /// Why blocks of a run cannot be looked at; unset if they can.
  std::optional<Error> flaw_of(const Run& run, const Result<std::size_t>& got) const;
  Error damage_of(const PlacedBlock& block) const;
  /// False: the content is not what the fingerprint names.
  bool deliver_block(const PlacedBlock& block, std::span<const std::byte> content,
                     bool unchecked) const;

  /// Without dedup the segment may have the same content in another place. False: it has not.
  bool deliver_equal(const PlacedBlock& block);

  Equipment& equipment_;
  os::Parallel& readers_;
  store::SegmentFile segment_;
  UnreadBlocks& unread_;
  std::vector<PlacedBlock> placed_;
  std::vector<Run> runs_;
  std::vector<Chunk> chunks_;
  std::size_t next_chunk_ = 0;
  std::deque<Request> requests_;
};

void SegmentRead::place(const std::vector<WantedBlock>& wanted) {
  segment_.sort_blocks();
  placed_.reserve(wanted.size());
  for (const WantedBlock& block : wanted) {
    if (const auto* found = segment_.find(block.fingerprint, block.length))
      placed_.push_back({block, found->offset});
    else
      unread_.add(block,
                  Error(Code::corruption,
                        fmt::format("{}: does not hold block {} of region '{}'", segment_.where(),
                                    to_hex(block.fingerprint), block.region->name)));
  }
  std::sort(placed_.begin(), placed_.end(),
            [](const PlacedBlock& a, const PlacedBlock& b) { return a.offset < b.offset; });
}

void SegmentRead::cut_into_runs() {
  const std::uint64_t most = std::min<std::uint64_t>(equipment_.staging.buffer_bytes(), kRunBytes);
  const bool exact = segment_.file().decodes();
  const std::uint64_t gap = exact ? 0 : kGapBytes;
  for (std::size_t i = 0; i < placed_.size(); ++i) {
    const std::uint64_t begin = placed_[i].offset;
    const std::uint64_t last = begin + placed_[i].wanted.length;
    const std::uint64_t end = exact ? last : round_up(last);
    if (!runs_.empty() && begin <= runs_.back().end + gap && end <= runs_.back().begin + most) {
      runs_.back().end = std::max(runs_.back().end, end);
      runs_.back().last = i + 1;
    } else {
      runs_.push_back({i, i + 1, exact ? begin : round_down(begin), end, 0});
    }
  }
}

void SegmentRead::gather_chunks() {
  const std::uint64_t most = equipment_.staging.buffer_bytes();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    Run& run = runs_[i];
    const std::uint64_t bytes = run.end - run.begin;
    if (chunks_.empty() || chunks_.back().bytes + bytes > most) chunks_.push_back({i, i, 0});
    run.at = chunks_.back().bytes;
    chunks_.back().bytes += bytes;
    chunks_.back().last_run = i + 1;
    for (std::size_t block = run.first; block < run.last; ++block)
      placed_[block].at = run.at + (placed_[block].offset - run.begin);
  }
}

void SegmentRead::fill(Request& request) {
  const auto memory = request.buffer->memory.bytes();
  readers_.run(request.got.size(), [&](std::size_t i) {
    const Run& run = runs_[request.chunk.first_run + i];
    request.got[i] = segment_.file().read(run.begin, memory.subspan(run.at, run.end - run.begin));
  });
}

/// Starts the next read if there is a buffer for it.
Result<bool> SegmentRead::request_next() {
  if (next_chunk_ == chunks_.size()) return false;
  BELAY_ASSIGN(auto* buffer, equipment_.staging.try_acquire());
  if (buffer == nullptr) return false;
  Request& request = requests_.emplace_back();
  request.chunk = chunks_[next_chunk_++];
  request.buffer = buffer;
  request.got.assign(request.chunk.last_run - request.chunk.first_run, std::size_t{0});
  equipment_.worker.submit([this, &request] {
    fill(request);
    request.done.store(true, std::memory_order_release);
  });
  return true;
}

Result<void> SegmentRead::read_chunks() {
  constexpr std::size_t kReadAhead = 4;
  while (next_chunk_ < chunks_.size() || !requests_.empty()) {
    while (requests_.size() < kReadAhead) {
      BELAY_ASSIGN(const bool requested, request_next());
      if (!requested) break;
    }
    if (requests_.empty()) return fail(Code::no_space, "restore: no staging memory is free");
    Request& request = requests_.front();
    while (!request.done.load(std::memory_order_acquire)) equipment_.worker.wait_one();
    deliver(request);
    equipment_.staging.release(request.buffer);
    requests_.pop_front();
  }
  return {};
}

std::optional<Error> SegmentRead::flaw_of(const Run& run, const Result<std::size_t>& got) const {
  if (!got) return got.error();
  if (run.begin + *got >= run.end) return {};
  return Error(Code::corruption, fmt::format("{}: ends at byte {}, before byte {}",
                                             segment_.where(), run.begin + *got, run.end));
}

bool SegmentRead::deliver_block(const PlacedBlock& block, std::span<const std::byte> content,
                                bool unchecked) const {
  if (!unchecked && equipment_.hasher.hash(content) != block.wanted.fingerprint) return false;
  os::copy_past_cache(block.wanted.to, content.data(), block.wanted.fits);
  return true;
}

void SegmentRead::deliver(const Request& request) {
  const auto memory = std::as_const(request.buffer->memory).bytes();
  const std::size_t first = runs_[request.chunk.first_run].first;
  const std::size_t count = runs_[request.chunk.last_run - 1].last - first;
  std::vector<char> wrong(count);  // not bool: threads write it side by side
  for (std::size_t i = 0; i < request.got.size(); ++i) {
    const Run& run = runs_[request.chunk.first_run + i];
    const auto flaw = flaw_of(run, request.got[i]);
    if (!flaw) continue;
    for (std::size_t block = run.first; block < run.last; ++block) {
      wrong[block - first] = true;
      unread_.add(placed_[block].wanted, *flaw);
    }
  }
  const std::size_t pieces = (count + kPieceBlocks - 1) / kPieceBlocks;
  std::atomic<bool> any = false;
  std::vector<char> damaged(count);
  equipment_.parallel.run(pieces, [&](std::size_t piece) {
    const std::size_t last = count * (piece + 1) / pieces;
    for (std::size_t i = count * piece / pieces; i < last; ++i) {
      if (wrong[i]) continue;
      const PlacedBlock& block = placed_[first + i];
      const bool unchecked = planted(Mistake::skip_verification) && i == 0;
      if (deliver_block(block, memory.subspan(block.at, block.wanted.length), unchecked)) continue;
      damaged[i] = true;
      any = true;
    }
  });
  for (std::size_t i = 0; any && i < count; ++i)
    if (damaged[i] && !deliver_equal(placed_[first + i]))
      unread_.add(placed_[first + i].wanted, damage_of(placed_[first + i]));
}

bool SegmentRead::deliver_equal(const PlacedBlock& block) {
  for (const auto& equal : segment_.find_all(block.wanted.fingerprint, block.wanted.length)) {
    if (equal.offset == block.offset) continue;
    const auto pages = store::read_pages(segment_.file(), equal.offset, equal.end());
    if (pages && deliver_block(block, pages->bytes(), false)) return true;
  }
  return false;
}

Error SegmentRead::damage_of(const PlacedBlock& block) const {
  return Error(Code::corruption,
               fmt::format("{}: the block at byte {} (region '{}') is damaged: its content is not "
                           "what its fingerprint {} names",
                           segment_.where(), block.offset, block.wanted.region->name,
                           to_hex(block.wanted.fingerprint)));
}

}  // namespace

Result<void> read_blocks(Equipment& equipment, os::Parallel& readers, const Manifest& manifest,
                         const SegmentRef& segment, std::vector<WantedBlock> wanted,
                         UnreadBlocks& unread) {
  auto file = store::SegmentFile::open(equipment.tier, segment.id, manifest.origin.store,
                                       segment.file_bytes);
  if (!file) {
    for (const WantedBlock& block : wanted) unread.add(block, file.error());
    return {};
  }
  return SegmentRead(equipment, readers, *std::move(file), unread).run(wanted);
}

Result<void> read_present(Equipment& equipment, os::Parallel& readers, store::SegmentFile file,
                          std::vector<WantedBlock>& wanted, UnreadBlocks& damaged) {
  file.sort_blocks();
  const auto absent =
      std::stable_partition(wanted.begin(), wanted.end(), [&](const WantedBlock& block) {
        return file.find(block.fingerprint, block.length) != nullptr;
      });
  const std::vector<WantedBlock> present(wanted.begin(), absent);
  wanted.erase(wanted.begin(), absent);
  if (present.empty()) return {};
  return SegmentRead(equipment, readers, std::move(file), damaged).run(present);
}

}  // namespace belay::session
