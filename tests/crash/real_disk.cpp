// SPDX-License-Identifier: Apache-2.0
#include "crash/real_disk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace belay::crash {
namespace {

/// Mounts of this process are its own from now on. Empty: done; else why not.
std::string leave_the_common_namespace() {
  static const std::string outcome = [] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
      return fmt::format("mounting is not permitted here ({}); run as root", std::strerror(errno));
    return std::string();
  }();
  return outcome;
}

bool run(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

std::string make_image(const DiskKind& kind, const std::string& image) {
  if (!run(fmt::format("command -v {}", kind.maker)))
    return fmt::format("{} is not installed", kind.maker);
  if (!run(fmt::format("truncate -s {} {}", kind.image_bytes, image)) ||
      !run(fmt::format("{} {}", kind.maker, image)))
    return fmt::format("{} does not make an image of {} bytes", kind.maker, kind.image_bytes);
  return {};
}

}  // namespace

std::unique_ptr<RealDisk> RealDisk::mount(const DiskKind& kind, std::string& reason) {
  reason = leave_the_common_namespace();
  if (!reason.empty()) return nullptr;
  std::unique_ptr<RealDisk> disk(new RealDisk);
  disk->mount_point_ = disk->directory_.path() + "/disk";
  std::filesystem::create_directory(disk->mount_point_);
  std::string source = "none";
  std::string options = kind.options;
  if (kind.maker[0] != '\0') {
    source = disk->directory_.path() + "/image";
    reason = make_image(kind, source);
    if (!reason.empty()) return nullptr;
    options = options.empty() ? "loop" : options + ",loop";
  }
  const std::string flags = options.empty() ? "" : "-o " + options;
  // The maker's options are no part of the file system's name.
  const std::string type(kind.name, std::strcspn(kind.name, "_"));
  disk->mounted_ =
      run(fmt::format("mount -t {} {} {} {}", type, flags, source, disk->mount_point_));
  if (disk->mounted_) return disk;
  reason = fmt::format("{} cannot be mounted here (no loop device, or no such file system)", type);
  return nullptr;
}

RealDisk::~RealDisk() {
  if (mounted_) ::umount2(mount_point_.c_str(), MNT_DETACH);
}

std::uint64_t RealDisk::free_bytes() const {
  struct statvfs status {};
  if (::statvfs(mount_point_.c_str(), &status) != 0) std::abort();
  return std::uint64_t{status.f_bavail} * status.f_frsize;
}

void RealDisk::leave_free(std::uint64_t bytes) {
  free_all();
  const int file = ::open(ballast().c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return;  // not even a name fits: full enough
  off_t used = 0;
  // Sizes that do not fit are halved: file systems keep some of what they call free for themselves.
  for (std::uint64_t step = free_bytes(); step >= 4096;) {
    const std::uint64_t left = free_bytes();
    step = std::min(step, left > bytes ? left - bytes : 0) / 4096 * 4096;
    if (step == 0) break;
    if (::posix_fallocate(file, used, static_cast<off_t>(step)) == 0)
      used += static_cast<off_t>(step);
    else
      step /= 2;
  }
  ::fsync(file);
  ::close(file);
}

void RealDisk::free_all() {
  std::filesystem::remove(ballast());
  const int directory = ::open(mount_point_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) std::abort();
  ::syncfs(directory);  // some file systems give space back only then
  ::close(directory);
}

bool RealDisk::remount(const std::string& options) {
  return run(fmt::format("mount -o remount,{} {}", options, mount_point_));
}

}  // namespace belay::crash
