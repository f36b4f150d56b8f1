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
constexpr std::uint64_t kGapBytes = std::uint64_t{8} << 10;
// As many requests of this size as there are readers reach the disk's speed; larger ones would only
// wait for each other.
constexpr std::uint64_t kRunBytes = std::uint64_t{256} << 10;
constexpr std::size_t kReadAhead = 8;     ///< buffers that are filled or wait to be looked at
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

/// Runs [first_run, last_run) of a segment, which share a buffer.
struct Chunk {
  std::size_t first_run = 0;
  std::size_t last_run = 0;
  std::uint64_t bytes = 0;

  std::size_t runs() const { return last_run - first_run; }
};

/// A file, where the wanted blocks lie in it, and how they will be read.
struct Segment {
  Segment(store::SegmentFile opened, UnreadBlocks& unread_blocks)
      : file(std::move(opened)), unread(unread_blocks) {}

  void plan(const std::vector<WantedBlock>& wanted, std::uint64_t buffer_bytes);

  store::SegmentFile file;
  UnreadBlocks& unread;
  std::vector<PlacedBlock> placed;  ///< by offset
  std::vector<Run> runs;
  std::vector<Chunk> chunks;

 private:
  void place(const std::vector<WantedBlock>& wanted);
  void cut_into_runs(std::uint64_t most);
  void gather_chunks(std::uint64_t most);
};

/// A chunk on its way: filled by the worker, looked at when `done`.
struct Request {
  Segment* segment = nullptr;
  Chunk chunk;
  capture::StagingBuffer* buffer = nullptr;
  std::vector<Result<std::size_t>> got;  ///< of each run
  std::atomic<bool> done = false;
};

/// One run of a chunk on its way.
struct RunRequest {
  Request* request = nullptr;
  std::size_t number = 0;  ///< in the chunk
};

/// Reads segments one after the other as one stream of requests: while the blocks of some buffers
/// are verified and copied, others are being filled, and the next segment is opened.
class SegmentsRead {
 public:
  SegmentsRead(Equipment& equipment, os::Parallel& readers)
      : equipment_(equipment), readers_(readers) {}
  ~SegmentsRead() {
    equipment_.worker.wait_all();  // no request may outlive its file
    for (Request& request : requests_)
      if (request.buffer != nullptr) equipment_.staging.release(request.buffer);
  }
  SegmentsRead(const SegmentsRead&) = delete;
  SegmentsRead& operator=(const SegmentsRead&) = delete;

  /// Blocks that cannot be read are added to `unread`, the last of them by finish().
  Result<void> read(store::SegmentFile file, const std::vector<WantedBlock>& wanted,
                    UnreadBlocks& unread);
  void finish() { deliver_down_to(0); }

 private:
  Result<std::size_t> request(Segment& segment, std::size_t chunk);
  void fill(const std::vector<RunRequest>& runs);
  /// Looks at the oldest requests until so many are left.
  void deliver_down_to(std::size_t left);
  void deliver(const Request& request);
  bool deliver_block(const PlacedBlock& block, std::span<const std::byte> content,
                     bool unchecked) const;
  bool deliver_equal(Segment& segment, const PlacedBlock& block) const;

  Equipment& equipment_;
  os::Parallel& readers_;
  std::deque<Segment> segments_;  ///< that requests may refer to
  std::deque<Request> requests_;
};

void Segment::plan(const std::vector<WantedBlock>& wanted, std::uint64_t buffer_bytes) {
  place(wanted);
  cut_into_runs(std::min(buffer_bytes, kRunBytes));
  gather_chunks(buffer_bytes);
}

void Segment::place(const std::vector<WantedBlock>& wanted) {
  file.sort_blocks();
  placed.reserve(wanted.size());
  for (const WantedBlock& block : wanted) {
    if (const auto* found = file.find(block.fingerprint, block.length))
      placed.push_back({block, found->offset});
    else
      unread.add(block, Error(Code::corruption,
                              fmt::format("{}: does not hold block {} of region '{}'", file.where(),
                                          to_hex(block.fingerprint), block.region->name)));
  }
  std::sort(placed.begin(), placed.end(),
            [](const PlacedBlock& a, const PlacedBlock& b) { return a.offset < b.offset; });
}

void Segment::cut_into_runs(std::uint64_t most) {
  const bool exact = file.file().decodes();
  const std::uint64_t gap = exact ? 0 : kGapBytes;
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const std::uint64_t begin = placed[i].offset;
    const std::uint64_t last = begin + placed[i].wanted.length;
    const std::uint64_t end = exact ? last : round_up(last);
    if (!runs.empty() && begin <= runs.back().end + gap && end <= runs.back().begin + most) {
      runs.back().end = std::max(runs.back().end, end);
      runs.back().last = i + 1;
    } else {
      runs.push_back({i, i + 1, exact ? begin : round_down(begin), end, 0});
    }
  }
}

void Segment::gather_chunks(std::uint64_t most) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Run& run = runs[i];
    const std::uint64_t bytes = run.end - run.begin;
    if (chunks.empty() || chunks.back().bytes + bytes > most) chunks.push_back({i, i, 0});
    run.at = chunks.back().bytes;
    chunks.back().bytes += bytes;
    chunks.back().last_run = i + 1;
    for (std::size_t block = run.first; block < run.last; ++block)
      placed[block].at = run.at + (placed[block].offset - run.begin);
  }
}

Result<void> SegmentsRead::read(store::SegmentFile file, const std::vector<WantedBlock>& wanted,
                                UnreadBlocks& unread) {
  Segment& segment = segments_.emplace_back(std::move(file), unread);
  segment.plan(wanted, equipment_.staging.buffer_bytes());
  for (std::size_t chunk = 0; chunk < segment.chunks.size();) {
    deliver_down_to(kReadAhead / 2);
    BELAY_ASSIGN(const std::size_t requested, request(segment, chunk));
    chunk += requested;
    if (requested > 0) continue;
    if (requests_.empty()) return fail(Code::no_space, "restore: no staging memory is free");
    deliver_down_to(requests_.size() - 1);
  }
  return {};
}

/// Starts to read chunks from the given one on, all at once, if there are buffers. How many?
Result<std::size_t> SegmentsRead::request(Segment& segment, std::size_t chunk) {
  std::size_t count = 0;
  std::vector<RunRequest> runs;
  while (chunk + count < segment.chunks.size() && requests_.size() < kReadAhead) {
    Request& request = requests_.emplace_back();
    request.segment = &segment;
    request.chunk = segment.chunks[chunk + count];
    request.got.assign(request.chunk.runs(), std::size_t{0});
    for (std::size_t run = 0; run < request.chunk.runs(); ++run) runs.push_back({&request, run});
    // Last: whatever throws before has no buffer to lose.
    auto buffer = equipment_.staging.try_acquire();
    if (!buffer || *buffer == nullptr) {
      runs.resize(runs.size() - request.chunk.runs());
      requests_.pop_back();
      if (!buffer && count == 0) return Unexpected(buffer.error());
      break;
    }
    request.buffer = *buffer;
    ++count;
  }
  if (count > 0) equipment_.worker.submit([this, runs = std::move(runs)] { fill(runs); });
  return count;
}

void SegmentsRead::fill(const std::vector<RunRequest>& runs) {
  readers_.run(runs.size(), [&](std::size_t i) {
    auto& [request, number] = runs[i];
    const Run& run = request->segment->runs[request->chunk.first_run + number];
    const auto memory = request->buffer->memory.bytes().subspan(run.at, run.end - run.begin);
    request->got[number] = request->segment->file.file().read(run.begin, memory);
  });
  // Once for each request: who sees it may forget the request.
  for (const RunRequest& run : runs)
    if (run.number + 1 == run.request->chunk.runs())
      run.request->done.store(true, std::memory_order_release);
}

void SegmentsRead::deliver_down_to(std::size_t left) {
  while (requests_.size() > left) {
    Request& request = requests_.front();
    while (!request.done.load(std::memory_order_acquire)) equipment_.worker.wait_one();
    deliver(request);
    equipment_.staging.release(request.buffer);
    requests_.pop_front();
  }
  // A file is closed as soon as nothing more is asked of it.
  while (segments_.size() > 1 &&
         (requests_.empty() || requests_.front().segment != &segments_.front()))
    segments_.pop_front();
}

/// Why blocks of a run cannot be looked at; unset if they can.
std::optional<Error> flaw_of(const Segment& segment, const Run& run,
                             const Result<std::size_t>& got) {
  if (!got) return got.error();
  if (run.begin + *got >= run.end) return {};
  return Error(Code::corruption, fmt::format("{}: ends at byte {}, before byte {}",
                                             segment.file.where(), run.begin + *got, run.end));
}

Error damage_of(const Segment& segment, const PlacedBlock& block) {
  return Error(Code::corruption,
               fmt::format("{}: the block at byte {} (region '{}') is damaged: its content is not "
                           "what its fingerprint {} names",
                           segment.file.where(), block.offset, block.wanted.region->name,
                           to_hex(block.wanted.fingerprint)));
}

/// False: the content is not what the fingerprint names.
bool SegmentsRead::deliver_block(const PlacedBlock& block, std::span<const std::byte> content,
                                 bool unchecked) const {
  if (!unchecked && equipment_.hasher.hash(content) != block.wanted.fingerprint) return false;
  os::copy_past_cache(block.wanted.to, content.data(), block.wanted.fits);
  return true;
}

void SegmentsRead::deliver(const Request& request) {
  Segment& segment = *request.segment;
  const auto memory = std::as_const(request.buffer->memory).bytes();
  const std::size_t first = segment.runs[request.chunk.first_run].first;
  const std::size_t count = segment.runs[request.chunk.last_run - 1].last - first;
  std::vector<char> wrong(count);  // not bool: threads write it side by side
  for (std::size_t i = 0; i < request.got.size(); ++i) {
    const Run& run = segment.runs[request.chunk.first_run + i];
    const auto flaw = flaw_of(segment, run, request.got[i]);
    if (!flaw) continue;
    for (std::size_t block = run.first; block < run.last; ++block) {
      wrong[block - first] = true;
      segment.unread.add(segment.placed[block].wanted, *flaw);
    }
  }
  const std::size_t pieces = (count + kPieceBlocks - 1) / kPieceBlocks;
  std::atomic<bool> any = false;
  std::vector<char> damaged(count);
  equipment_.parallel.run(pieces, [&](std::size_t piece) {
    const std::size_t last = count * (piece + 1) / pieces;
    for (std::size_t i = count * piece / pieces; i < last; ++i) {
      if (wrong[i]) continue;
      const PlacedBlock& block = segment.placed[first + i];
      const bool unchecked = planted(Mistake::skip_verification) && i == 0;
      if (deliver_block(block, memory.subspan(block.at, block.wanted.length), unchecked)) continue;
      damaged[i] = true;
      any = true;
    }
  });
  for (std::size_t i = 0; any && i < count; ++i) {
    const PlacedBlock& block = segment.placed[first + i];
    if (damaged[i] && !deliver_equal(segment, block))
      segment.unread.add(block.wanted, damage_of(segment, block));
  }
}

/// Without dedup the segment may have the same content in another place. False: it has not.
bool SegmentsRead::deliver_equal(Segment& segment, const PlacedBlock& block) const {
  store::SegmentFile& file = segment.file;
  for (const auto& equal : file.find_all(block.wanted.fingerprint, block.wanted.length)) {
    if (equal.offset == block.offset) continue;
    const auto pages = store::read_pages(file.file(), equal.offset, equal.end());
    if (pages && deliver_block(block, pages->bytes(), false)) return true;
  }
  return false;
}

}  // namespace

Result<void> read_blocks(Equipment& equipment, os::Parallel& readers, const Manifest& manifest,
                         const std::vector<std::vector<WantedBlock>>& wanted,
                         std::vector<UnreadBlocks>& unread) {
  SegmentsRead reading(equipment, readers);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i].empty()) continue;
    const SegmentRef& segment = manifest.segments[i];
    if (segment.id.rank == kAnyRank) {
      unread[i].blocks = wanted[i];
      continue;
    }
    auto file = store::SegmentFile::open(equipment.tier, segment.id, manifest.origin.store,
                                         segment.file_bytes);
    if (file)
      BELAY_TRY(reading.read(*std::move(file), wanted[i], unread[i]));
    else
      for (const WantedBlock& block : wanted[i]) unread[i].add(block, file.error());
  }
  reading.finish();
  return {};
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
  SegmentsRead reading(equipment, readers);
  BELAY_TRY(reading.read(std::move(file), present, damaged));
  reading.finish();
  return {};
}

}  // namespace belay::session
