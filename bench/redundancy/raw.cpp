// SPDX-License-Identifier: Apache-2.0
#include "redundancy/raw.hpp"

#include "measure/cost.hpp"
#include "measure/must.hpp"
#include "os/memory.hpp"
#include "redundancy/skewed_rows.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kWriteBytes = 4 << 20;
// Small enough that k pieces and their shards stay in the cache; not a power of two, since pieces
// at such distances compete for the same lines of it.
constexpr std::size_t kPieceBytes = (64 << 10) + 69 * 64;
constexpr std::size_t kPageBytes = 4096;

[[noreturn]] void die_of_errno(const char* what, const fs::path& path) {
  die(fmt::format("{} {}: {}", what, path.string(), std::strerror(errno)));
}

std::span<const std::byte> whole_pages(std::span<const std::byte> bytes) {
  const auto place = reinterpret_cast<std::uintptr_t>(bytes.data());
  return bytes.subspan((kPageBytes - place % kPageBytes) % kPageBytes);
}

}  // namespace

FileCost measure_file(Team& team, Image& image, const fs::path& directory) {
  const fs::path path = directory / fmt::format("raw-{}", team.rank());
  const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) die_of_errno("create", path);
  team.barrier();
  Stopwatch writing;
  for (auto rest = whole_pages(image.bytes()); !rest.empty();) {
    const ssize_t done = ::write(file, rest.data(), std::min(rest.size(), kWriteBytes));
    if (done < 0) die_of_errno("write", path);
    rest = rest.subspan(static_cast<std::size_t>(done));
  }
  if (::fdatasync(file) != 0) die_of_errno("sync", path);
  writing.stop();
  if (::close(file) != 0) die_of_errno("close", path);
  Stopwatch removing;
  fs::remove(path);
  removing.stop();
  return {writing.cpu_ms(team), removing.cpu_ms(team)};
}

double encode_cpu_ms(Team& team, Image& image, const redundancy::ErasureScheme& scheme) {
  const auto code = must("erasure code", redundancy::ErasureCode::make(scheme));
  auto rows = must("shards", redundancy::SkewedRows::allocate(scheme.shards, kPieceBytes));
  std::vector<redundancy::MutableBytes> shards;
  for (std::size_t i = 0; i < scheme.shards; ++i) shards.push_back(rows[i]);
  team.barrier();
  Stopwatch watch;
  for (std::span<const std::byte> rest = image.bytes(); !rest.empty();) {
    std::vector<redundancy::Bytes> members;
    for (std::size_t i = 0; i < scheme.members; ++i) {
      members.push_back(rest.first(std::min(rest.size(), kPieceBytes)));
      rest = rest.subspan(members.back().size());
    }
    code.encode(members, shards);
  }
  watch.stop();
  return watch.cpu_ms(team);
}

}  // namespace belay::bench
