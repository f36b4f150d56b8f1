// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/machine/place.hpp"

#include "base/try.hpp"
#include "os/errno.hpp"

#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>

namespace belay::tool {
namespace {

namespace fs = std::filesystem;
using Kind = FileSystem::Kind;

struct KnownFileSystem {
  std::uint32_t magic;
  const char* name;
  Kind kind;
};

/// statfs(2) and linux/magic.h; Lustre, GPFS and BeeGFS by their own headers.
constexpr std::array kKnown = {
    KnownFileSystem{0x0000EF53, "ext4", Kind::disk},
    KnownFileSystem{0x58465342, "xfs", Kind::disk},
    KnownFileSystem{0x9123683E, "btrfs", Kind::disk},
    KnownFileSystem{0x2FC12FC1, "zfs", Kind::disk},
    KnownFileSystem{0xF2F52010, "f2fs", Kind::disk},
    KnownFileSystem{0xCA451A4E, "bcachefs", Kind::disk},
    KnownFileSystem{0x00004D44, "vfat", Kind::disk},
    KnownFileSystem{0x01021994, "tmpfs", Kind::memory},
    KnownFileSystem{0x858458F6, "ramfs", Kind::memory},
    KnownFileSystem{0x794C7630, "overlayfs", Kind::layered},
    KnownFileSystem{0x00006969, "nfs", Kind::network},
    KnownFileSystem{0x0BD00BD0, "lustre", Kind::network},
    KnownFileSystem{0x47504653, "gpfs", Kind::network},
    KnownFileSystem{0x19830326, "beegfs", Kind::network},
    KnownFileSystem{0x00C36400, "ceph", Kind::network},
    KnownFileSystem{0xFF534D42, "cifs", Kind::network},
    KnownFileSystem{0xFE534D42, "smb2", Kind::network},
    KnownFileSystem{0x01021997, "9p", Kind::network},
    KnownFileSystem{0x65735546, "fuse", Kind::unknown},
};

}  // namespace

Result<std::string> only_one(const std::vector<std::string>& stores) {
  if (stores.size() == 1) return stores.front();
  return fail(Code::invalid_argument, "--store was given {} times; this command takes one",
              stores.size());
}

Result<Place> find_place(const std::string& store) {
  std::error_code failed;
  const fs::path absolute = fs::absolute(store, failed).lexically_normal();
  if (failed || store.empty())
    return fail(Code::invalid_argument, "store \"{}\": not a path", store);
  Place place{.store = absolute.string(), .directory = absolute.string(), .exists = false};
  for (fs::path path = absolute;; path = path.parent_path()) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode))
        return Unexpected(os::not_directory("make directory", path.string()));
      place.directory = path.string();
      place.exists = path == absolute;
      return place;
    }
    if ((errno != ENOENT && errno != ENOTDIR) || path == path.parent_path())
      return Unexpected(os::error_of(errno, "look at", path.string()));
  }
}

Result<FileSystem> file_system_of(const std::string& directory) {
  struct statfs kind {};
  struct statvfs space {};
  if (::statfs(directory.c_str(), &kind) != 0 || ::statvfs(directory.c_str(), &space) != 0)
    return Unexpected(os::error_of(errno, "look at the file system of", directory));
  FileSystem found;
  const auto magic = static_cast<std::uint32_t>(kind.f_type);
  const auto known =
      std::find_if(kKnown.begin(), kKnown.end(),
                   [&](const KnownFileSystem& candidate) { return candidate.magic == magic; });
  found.name = known == kKnown.end() ? fmt::format("unknown (0x{:x})", magic) : known->name;
  if (known != kKnown.end()) found.kind = known->kind;
  found.read_only = (space.f_flag & ST_RDONLY) != 0;
  found.total_bytes = std::uint64_t{space.f_blocks} * space.f_frsize;
  found.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  found.total_inodes = space.f_files;
  found.free_inodes = space.f_favail;
  return found;
}

}  // namespace belay::tool
