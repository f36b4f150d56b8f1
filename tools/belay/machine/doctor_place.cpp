// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"
#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/errno.hpp"
#include "os/files.hpp"
#include "os/memory.hpp"
#include "tools/belay/machine/doctor.hpp"
#include "tools/belay/machine/place.hpp"
#include "tools/belay/rehearse/scratch_directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

namespace belay::tool {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kScarceBytes = 1024 * kMiB;
constexpr std::uint64_t kScarceInodes = 1000;
constexpr std::uint64_t kMeasureNs = 700'000'000;
constexpr std::size_t kPieceBytes = 4 * kMiB;
constexpr std::uint64_t kMostWrittenBytes = 256 * kMiB;
constexpr double kSlowBytesPerSecond = 100e6;
constexpr double kSlowSyncSeconds = 0.02;

Finding failed(const char* name, const Error& error, const char* fix) {
  return {name, Health::fail, error.message(), fix};
}

Finding look_at_file_system(const FileSystem& system) {
  using Kind = FileSystem::Kind;
  Finding finding{"file_system", Health::ok, system.name};
  if (system.read_only)
    return {"file_system", Health::fail, system.name + ", mounted read-only",
            "mount it for writing, or set BELAY_STORE to a directory elsewhere"};
  if (system.kind == Kind::memory) {
    finding.found += ": memory, lost with the node";
    finding.fix = "good against killed processes only; for more, a directory on a local disk";
  } else if (system.kind == Kind::network) {
    finding.found += ": not local to this node, so that all nodes share its speed";
    finding.fix = "set BELAY_STORE to a directory on a local disk, such as an NVMe drive";
  } else if (system.kind == Kind::layered) {
    finding.found += ": the layer of a container, lost with it";
    finding.fix = "mount a directory of the host into the container and set BELAY_STORE to it";
  } else {
    return finding;
  }
  finding.health = Health::warn;
  return finding;
}

Finding look_at_space(const FileSystem& system) {
  Finding finding{"space", Health::ok,
                  fmt::format("{} free of {}", format_bytes(system.free_bytes),
                              format_bytes(system.total_bytes))};
  if (system.free_bytes >= kScarceBytes) return finding;
  finding.health = system.free_bytes < kMiB ? Health::fail : Health::warn;
  finding.fix =
      "a store needs up to keep + 1 times the protected memory: free some, or set "
      "BELAY_STORE to a directory elsewhere";
  return finding;
}

Finding look_at_inodes(const FileSystem& system) {
  if (system.total_inodes == 0) return {"inodes", Health::ok, "not counted here"};
  Finding finding{"inodes", Health::ok,
                  fmt::format("{} free of {}", system.free_inodes, system.total_inodes)};
  if (system.free_inodes >= kScarceInodes) return finding;
  finding.health = system.free_inodes < 8 ? Health::fail : Health::warn;
  finding.fix =
      "a store needs two files for each rank and version: remove files, or set "
      "BELAY_STORE to a directory elsewhere";
  return finding;
}

Finding look_at_owner(const Place& place) {
  struct stat status {};
  if (::stat(place.directory.c_str(), &status) != 0)
    return failed("owner", os::error_of(errno, "look at", place.directory), "look at its mode");
  const auto mode = static_cast<unsigned>(status.st_mode & 07777);
  Finding finding{"owner", Health::ok, fmt::format("user {}, mode {:04o}", status.st_uid, mode)};
  if (!place.exists) return finding;
  if (status.st_uid != ::geteuid()) {
    finding.health = Health::warn;
    finding.found += ": the store is another user's";
    finding.fix = "use a store of your own: its files can be read by their owner only";
  } else if ((mode & 0022) != 0 && (mode & S_ISVTX) == 0) {
    finding.health = Health::warn;
    finding.found += ": others may replace its directories";
    finding.fix = fmt::format("chmod go-w {}", place.directory);
  }
  return finding;
}

/// Does the kernel bypass its cache here? PosixFile goes back to the cache silently.
Finding look_at_direct_io(const std::string& directory) {
  const char* fix = "nothing must be done: writes go through the page cache, which costs memory";
  const std::string path = directory + "/direct";
  const os::Descriptor file(
      os::retry([&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600); }));
  if (!file.valid()) return failed("direct_io", os::error_of(errno, "create", path), fix);
  auto memory = os::AlignedMemory::allocate(os::kDirectAlignment);
  if (!memory) return failed("direct_io", memory.error(), "free memory");
  const auto piece = memory->bytes();
  if (::fcntl(file.number(), F_SETFL, O_DIRECT) != 0 ||
      os::retry([&] { return ::pwrite(file.number(), piece.data(), piece.size(), 0); }) !=
          static_cast<ssize_t>(piece.size())) {
    if (errno != EINVAL && errno != EOPNOTSUPP)
      return failed("direct_io", os::error_of(errno, "write", path), "see the reason");
    return {"direct_io", Health::warn, "refused by this file system", fix};
  }
  return {"direct_io", Health::ok, "works"};
}

Finding look_at_locks(const std::string& directory) {
  const char* fix =
      "mount it with locks (Lustre: -o flock; NFS: a lock server), or set BELAY_STORE "
      "to a local directory: without locks two jobs can write into one store";
  const std::string path = directory + "/lock";
  const auto first = os::posix_files().lock(path, "belay doctor");
  if (!first) return failed("locks", first.error(), fix);
  const auto second = os::posix_files().lock(path, "belay doctor again");
  if (!second && second.error().code() == Code::busy) return {"locks", Health::ok, "work"};
  if (!second) return failed("locks", second.error(), fix);
  return {"locks", Health::fail, "two owners got the same lock", fix};
}

/// A reader must find the old file or the new one, however often it is replaced.
Finding look_at_renames(const std::string& directory) {
  constexpr int kTimes = 100;
  const char* fix = "set BELAY_STORE to a local directory: here a crash could lose a version";
  os::Files& files = os::posix_files();
  const std::string name = directory + "/name";
  const std::string next = directory + "/name.tmp";
  std::atomic<bool> over = false;
  std::atomic<bool> missed = false;
  Result<void> result = [&]() -> Result<void> {
    BELAY_TRY(files.create(name, /*direct=*/false));
    std::thread reader([&] {
      while (!over) missed = missed || (::access(name.c_str(), F_OK) != 0);
    });
    Result<void> renamed;
    for (int i = 0; i < kTimes && renamed; ++i) {
      auto created = files.create(next, /*direct=*/false);
      renamed = created ? files.rename(next, name) : Result<void>(Unexpected(created.error()));
    }
    over = true;
    reader.join();
    return renamed;
  }();
  if (!result) return failed("rename", result.error(), fix);
  if (missed) return {"rename", Health::fail, "not atomic: the name was gone for a moment", fix};
  if (const auto created = files.create(next, /*direct=*/false); !created)
    return failed("rename", created.error(), fix);
  const auto taken = files.rename_new(next, name);
  if (taken || taken.error().code() != Code::busy)
    return {"rename", Health::fail, "a name that is taken is not refused", fix};
  return {"rename", Health::ok, "atomic"};
}

Result<Finding> measure_writes(const std::string& directory, std::uint64_t space_bytes,
                               std::uint64_t deadline_ns) {
  os::Clock& clock = os::system_clock();
  BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(kPieceBytes));
  std::fill(memory.bytes().begin(), memory.bytes().end(), std::byte{0x5a});
  BELAY_ASSIGN(const auto file, os::posix_files().create(directory + "/write", /*direct=*/true));
  const std::uint64_t most =
      std::min(kMostWrittenBytes, space_bytes / 4 / kPieceBytes * kPieceBytes);
  const std::uint64_t start = clock.now_ns();
  const std::uint64_t end = std::min(start + kMeasureNs, deadline_ns);
  std::uint64_t written = 0;
  while (written == 0 || (written < most && clock.now_ns() < end)) {
    BELAY_TRY(file->write(written, memory.bytes()));
    written += kPieceBytes;
  }
  BELAY_TRY(file->sync());
  const double seconds = static_cast<double>(clock.now_ns() - start) * 1e-9;
  const double rate = static_cast<double>(written) / seconds;
  Finding finding{"write", Health::ok,
                  fmt::format("{:.0f} MB/s ({} and fsync in {:.2f} s)", rate * 1e-6,
                              format_bytes(written), seconds)};
  if (rate < kSlowBytesPerSecond) {
    finding.health = Health::warn;
    finding.fix = "checkpoints will take long: use a faster local disk, or a longer interval";
  }
  return finding;
}

Result<Finding> measure_sync(const std::string& directory, std::uint64_t deadline_ns) {
  constexpr std::size_t kMost = 30;
  os::Clock& clock = os::system_clock();
  BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(os::kDirectAlignment));
  BELAY_ASSIGN(const auto file, os::posix_files().create(directory + "/sync", /*direct=*/true));
  const std::uint64_t end = std::min(clock.now_ns() + kMeasureNs, deadline_ns);
  std::vector<double> seconds;
  while (seconds.empty() || (seconds.size() < kMost && clock.now_ns() < end)) {
    const std::uint64_t start = clock.now_ns();
    BELAY_TRY(file->write(seconds.size() * memory.size(), memory.bytes()));
    BELAY_TRY(file->sync());
    seconds.push_back(static_cast<double>(clock.now_ns() - start) * 1e-9);
  }
  std::sort(seconds.begin(), seconds.end());
  const double median = seconds[seconds.size() / 2];
  Finding finding{"fsync", Health::ok,
                  fmt::format("{:.2f} ms (median of {}, at most {:.2f})", median * 1e3,
                              seconds.size(), seconds.back() * 1e3)};
  if (median > kSlowSyncSeconds) {
    finding.health = Health::warn;
    finding.fix =
        "each version waits for a few of them: use a disk with power-loss protection, or "
        "a longer interval";
  }
  return finding;
}

/// What can only be known by trying.
void try_place(const Place& place, const FileSystem& system, std::uint64_t deadline_ns,
               Findings& findings) {
  const char* fix = "make it yours to write to, or set BELAY_STORE to a directory elsewhere";
  const auto scratch = ScratchDirectory::make(place.directory, ".belay-doctor-");
  if (!scratch) {
    findings.push_back(failed("permissions", scratch.error(), fix));
    return;
  }
  findings.push_back({"permissions", Health::ok, "files can be made in " + place.directory});
  const std::string& directory = (*scratch)->path();
  findings.push_back(look_at_direct_io(directory));
  findings.push_back(look_at_locks(directory));
  findings.push_back(look_at_renames(directory));
  const auto add = [&](const char* name, const Result<Finding>& measured) {
    findings.push_back(measured
                           ? *measured
                           : failed(name, measured.error(),
                                    "free space, or set BELAY_STORE to a directory elsewhere"));
  };
  add("write", measure_writes(directory, system.free_bytes, deadline_ns));
  add("fsync", measure_sync(directory, deadline_ns));
}

}  // namespace

Findings examine_place(const std::string& store, std::uint64_t deadline_ns) {
  const char* fix = "set BELAY_STORE, or --store, to a directory";
  const auto place = find_place(store);
  if (!place) return {failed("store", place.error(), fix)};
  Findings findings = {{"store", Health::ok,
                        place->exists
                            ? place->store
                            : fmt::format("{} (not there yet; a first open() makes it in {})",
                                          place->store, place->directory)}};
  const auto system = file_system_of(place->directory);
  if (!system) return {failed("file_system", system.error(), fix)};
  findings.push_back(look_at_file_system(*system));
  findings.push_back(look_at_space(*system));
  findings.push_back(look_at_inodes(*system));
  findings.push_back(look_at_owner(*place));
  try_place(*place, *system, deadline_ns, findings);
  return findings;
}

}  // namespace belay::tool
