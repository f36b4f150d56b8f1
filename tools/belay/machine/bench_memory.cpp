// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "fingerprint/hasher.hpp"
#include "os/clock.hpp"
#include "os/host.hpp"
#include "os/memory.hpp"
#include "os/parallel.hpp"
#include "tools/belay/machine/bench.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

namespace belay::tool {
namespace {

constexpr std::size_t kBlockBytes = 16 << 10;
constexpr std::size_t kPieceBytes = 1 << 20;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSlowHashShare = 16;

/// What all measurements of memory work on.
struct Workplace {
  explicit Workplace(unsigned threads) : parallel(threads) {}
  os::AlignedMemory source;
  os::AlignedMemory staging;
  os::Parallel parallel;
  std::atomic<std::uint64_t> sink{0};  ///< so that nothing can be left out
};

/// Not all the same, so that no layer below can make it less.
void fill(std::span<std::byte> bytes) {
  std::uint64_t state = 0x9e3779b97f4a7c15;
  for (std::size_t i = 0; i + sizeof state <= bytes.size(); i += sizeof state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(bytes.data() + i, &state, sizeof state);
  }
}

std::uint64_t sum_of(std::span<const std::byte> bytes) {
  std::array<std::uint64_t, 8> sums{};
  std::array<std::uint64_t, 8> words;
  for (std::size_t i = 0; i + sizeof words <= bytes.size(); i += sizeof words) {
    std::memcpy(words.data(), bytes.data() + i, sizeof words);
    for (std::size_t lane = 0; lane < sums.size(); ++lane) sums[lane] += words[lane];
  }
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : sums) sum += lane;
  return sum;
}

using Work = std::function<void(std::size_t offset, std::size_t bytes)>;

/// `work` over `bytes` bytes in pieces, on all threads or on the caller's.
Result<void> take_rate(Workplace& place, Figure& figure, std::size_t bytes, const Work& work) {
  os::Clock& clock = os::system_clock();
  const std::size_t pieces = bytes / kPieceBytes;
  const auto piece = [&](std::size_t i) { work(i * kPieceBytes, kPieceBytes); };
  const std::uint64_t start = clock.now_ns();
  if (figure.threads > 1)
    place.parallel.run(pieces, piece);
  else
    for (std::size_t i = 0; i < pieces; ++i) piece(i);
  const double seconds =
      static_cast<double>(std::max<std::uint64_t>(clock.now_ns() - start, 1)) * 1e-9;
  figure.samples.push_back(static_cast<double>(pieces * kPieceBytes) / seconds);
  return {};
}

void hash_piece(Workplace& place, const fingerprint::Hasher& hasher, std::size_t offset,
                std::size_t bytes) {
  std::array<fingerprint::Block, kPieceBytes / kBlockBytes> blocks;
  std::array<Fingerprint, kPieceBytes / kBlockBytes> fingerprints;
  const auto piece = std::as_const(place.source).bytes().subspan(offset, bytes);
  for (std::size_t i = 0; i < blocks.size(); ++i)
    blocks[i] = piece.subspan(i * kBlockBytes, kBlockBytes);
  hasher.hash(blocks, fingerprints);
  place.sink += fingerprints[0].low;
}

class MemoryList {
 public:
  explicit MemoryList(std::shared_ptr<Workplace> place) : place_(std::move(place)) {}

  /// With one thread, and with all if there are more.
  void add(const std::string& name, const std::string& meaning, std::size_t bytes,
           const Work& work) {
    add_with(name, meaning, 1, bytes, work);
    if (place_->parallel.threads() > 1)
      add_with(name + "_all", meaning, place_->parallel.threads(), bytes, work);
  }
  void add_with(const std::string& name, const std::string& meaning, unsigned threads,
                std::size_t bytes, const Work& work) {
    Figure figure{.name = name, .meaning = meaning, .threads = threads};
    list_.push_back({figure, [place = place_, bytes, work](Figure& sampled) {
                       return take_rate(*place, sampled, bytes, work);
                     }});
  }
  std::vector<Measurement> take() { return std::move(list_); }

 private:
  std::shared_ptr<Workplace> place_;
  std::vector<Measurement> list_;
};

void add_hashes(MemoryList& list, const std::shared_ptr<Workplace>& place) {
  for (std::uint8_t number = 0;; ++number) {
    const auto kind = static_cast<HashKind>(number);
    const std::string name(fingerprint::name_of(kind));
    if (name == "unknown") return;
    const std::shared_ptr<fingerprint::Hasher> hasher = fingerprint::make_hasher(kind, 1);
    if (!hasher) continue;  // this machine cannot compute it
    const Work work = [place = place.get(), hasher](std::size_t offset, std::size_t bytes) {
      hash_piece(*place, *hasher, offset, bytes);
    };
    const std::string meaning = "fingerprint blocks of 16 KiB by " + name;
    if (kind == HashKind::xxh3)
      list.add("hash_" + name, meaning, place->source.size(), work);
    else
      list.add_with("hash_" + name, meaning, 1,
                    std::max(place->source.size() / kSlowHashShare, kPieceBytes), work);
  }
}

}  // namespace

Result<std::vector<Measurement>> memory_measurements(const BenchSizes& sizes) {
  const auto place = std::make_shared<Workplace>(os::usable_processors());
  const std::size_t bytes =
      std::max(sizes.memory_bytes / kPieceBytes, std::size_t{2}) * kPieceBytes;
  BELAY_ASSIGN(place->source, os::AlignedMemory::allocate(bytes));
  BELAY_ASSIGN(place->staging, os::AlignedMemory::allocate(bytes));
  fill(place->source.bytes());
  for (std::size_t i = 0; i < bytes; i += kPageBytes) place->staging.bytes()[i] = std::byte{1};
  MemoryList list(place);
  Workplace* const shared = place.get();  // the list keeps it
  list.add("scan", "read memory", bytes, [shared](std::size_t offset, std::size_t length) {
    shared->sink += sum_of(std::as_const(shared->source).bytes().subspan(offset, length));
  });
  add_hashes(list, place);
  list.add("copy", "copy blocks to staging", bytes,
           [shared](std::size_t offset, std::size_t length) {
             os::copy_past_cache(shared->staging.bytes().data() + offset,
                                 shared->source.bytes().data() + offset, length);
           });
  return list.take();
}

}  // namespace belay::tool
