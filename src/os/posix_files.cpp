// SPDX-License-Identifier: Apache-2.0
#include "os/files.hpp"

#include "base/try.hpp"
#include "os/descriptor.hpp"
#include "os/errno.hpp"
#include "os/posix_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace belay::os {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;

// O_NOFOLLOW and O_NONBLOCK: a link or pipe planted in a store is neither followed nor waited for.
constexpr int kFileFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

Unexpected failed(const char* operation, const std::string& path) {
  return Unexpected(error_of(errno, operation, path));
}

/// Undoes what a umask or a default ACL made of the mode. Set-group-ID stays: where group quotas
/// are in force, files must go on inheriting the directory's group.
template <class Change>
bool set_exact_mode(const struct stat& status, mode_t mode, const Change& change) {
  if ((status.st_mode & 0777) == mode || change((status.st_mode & 07000) | mode) == 0) return true;
  // What was just created is ours, so the refusal means that this file system has no modes.
  return errno == EPERM || errno == EOPNOTSUPP;
}

bool set_file_mode(const Descriptor& file) {
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return false;
  return set_exact_mode(status, kFileMode,
                        [&](mode_t mode) { return ::fchmod(file.number(), mode); });
}

// By path, since a umask may have left a directory that its owner cannot open.
bool set_directory_mode(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return false;
  return set_exact_mode(status, kDirectoryMode,
                        [&](mode_t mode) { return ::chmod(path.c_str(), mode); });
}

/// A regular file, opened: anything else is corruption.
Result<Descriptor> open_regular(const char* operation, const std::string& path, int flags) {
  Descriptor descriptor(retry([&] { return ::open(path.c_str(), flags | kFileFlags, kFileMode); }));
  if (!descriptor.valid()) {
    // Of a link, a socket, and (when opened for writing) a directory and a pipe.
    if (errno == ELOOP || errno == ENXIO || errno == EISDIR)
      return Unexpected(not_regular(operation, path));
    return failed(operation, path);
  }
  struct stat status {};
  if (::fstat(descriptor.number(), &status) != 0) return failed(operation, path);
  if (!S_ISREG(status.st_mode)) return Unexpected(not_regular(operation, path));
  return descriptor;
}

int open_directory(const std::string& path) {
  return retry([&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
}

/// "/a/b" and "/a/b/" -> "/a", "a" -> ".". Empty for what has no parent by its name.
std::string parent_of(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (path == "/" || path == "." || path == "..") return {};
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  path.resize(std::max<std::size_t>(slash, 1));
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

Result<void> create_directory(const std::string& path) {
  if (::mkdir(path.c_str(), kDirectoryMode) == 0) {
    if (!set_directory_mode(path)) return failed("make directory", path);
    return {};
  }
  if (errno != EEXIST) return failed("make directory", path);
  struct stat status {};  // another process may have made it in between
  if (::stat(path.c_str(), &status) != 0) return failed("make directory", path);
  if (!S_ISDIR(status.st_mode)) return Unexpected(not_directory("make directory", path));
  return {};
}

/// Only the one open description of a file can take a lease for writing. True also where it cannot.
bool is_open_elsewhere(const Descriptor& file) {
  // Whoever opens it just now must not end the process: SIGIO would, this is ignored by default.
  if (::fcntl(file.number(), F_SETSIG, SIGURG) != 0) return true;
  if (::fcntl(file.number(), F_SETLEASE, F_WRLCK) != 0) return true;
  return ::fcntl(file.number(), F_SETLEASE, F_UNLCK) != 0;
}

/// Files of a store end with what makes them valid: without, nobody takes it for what it was.
bool cut_end(const Descriptor& file, off_t bytes) {
  const auto page = static_cast<off_t>(kDirectAlignment);
  return ::ftruncate(file.number(), std::max<off_t>(bytes - page, 0)) == 0;
}

/// Is what this process writes here the directory's owner's? Some file systems show other users
/// than it has, so that only a new file tells; where a nameless one cannot be made, nobody knows.
Result<void> check_owner(const std::string& directory) {
  struct stat there {};
  if (::stat(directory.c_str(), &there) != 0 || there.st_uid == ::geteuid()) return {};
  const Descriptor nameless(
      retry([&] { return ::open(directory.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kFileMode); }));
  struct stat made {};
  if (!nameless.valid() || ::fstat(nameless.number(), &made) != 0 || made.st_uid == there.st_uid)
    return {};
  return Unexpected(foreign_directory("lock", directory, there.st_uid, made.st_uid));
}

struct Ancestry {
  std::string existing;              ///< the deepest directory that is there
  std::vector<std::string> missing;  ///< below it, the outermost last
};

Result<Ancestry> ancestry_of(const std::string& path) {
  Ancestry ancestry{.existing = path, .missing = {}};
  for (;;) {
    struct stat status {};
    if (::stat(ancestry.existing.c_str(), &status) == 0) {
      if (S_ISDIR(status.st_mode)) return ancestry;
      return Unexpected(not_directory("make directory", ancestry.existing));
    }
    const int error = errno;
    std::string parent = parent_of(ancestry.existing);
    if ((error != ENOENT && error != ENOTDIR) || path.empty() || parent.empty())
      return Unexpected(error_of(error, "make directory", path));
    ancestry.missing.push_back(std::exchange(ancestry.existing, std::move(parent)));
  }
}

std::optional<EntryKind> kind_of(int directory, const dirent& entry) {
  switch (entry.d_type) {
    case DT_REG:
      return EntryKind::file;
    case DT_DIR:
      return EntryKind::directory;
    case DT_UNKNOWN:
      break;
    default:
      return EntryKind::other;
  }
  struct stat status {};
  if (::fstatat(directory, entry.d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) return std::nullopt;
  if (S_ISREG(status.st_mode)) return EntryKind::file;
  return S_ISDIR(status.st_mode) ? EntryKind::directory : EntryKind::other;
}

class PosixLock final : public Lock {
 public:
  explicit PosixLock(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  // Children that were forked meanwhile share the lock: closing alone would leave it with them.
  ~PosixLock() override { ::flock(descriptor_.number(), LOCK_UN); }

 private:
  Descriptor descriptor_;
};

/// Overwrites before it cuts, so that on a full disk the block that is there serves again.
int write_owner(int descriptor, const std::string& owner) {
  std::string_view left = owner;
  off_t offset = 0;
  while (!left.empty()) {
    const ssize_t written =
        retry([&] { return ::pwrite(descriptor, left.data(), left.size(), offset); });
    if (written <= 0) return written < 0 ? errno : EIO;
    left.remove_prefix(static_cast<std::size_t>(written));
    offset += written;
  }
  return retry([&] { return ::ftruncate(descriptor, offset); }) == 0 ? 0 : errno;
}

class PosixFiles final : public Files {
 public:
  Result<std::unique_ptr<File>> create(const std::string& path, bool direct) override {
    Descriptor descriptor(retry(
        [&] { return ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | kFileFlags, kFileMode); }));
    if (!descriptor.valid()) return failed("create", path);
    if (!set_file_mode(descriptor)) return failed("create", path);
    return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(descriptor), path, direct));
  }

  Result<std::unique_ptr<File>> open(const std::string& path, bool direct) override {
    BELAY_ASSIGN(Descriptor descriptor, open_regular("open", path, O_RDONLY));
    return std::unique_ptr<File>(std::make_unique<PosixFile>(std::move(descriptor), path, direct));
  }

  Result<std::uint64_t> touch(const std::string& path) override {
    struct stat status {};
    if (::fstatat(AT_FDCWD, path.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
      return failed("touch", path);
    if (!S_ISREG(status.st_mode)) return Unexpected(not_regular("touch", path));
    // A store may be read by someone who does not own it: then its age is not theirs to change.
    if (::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0 && errno != EACCES &&
        errno != EPERM && errno != EROFS)
      return failed("touch", path);
    return static_cast<std::uint64_t>(status.st_size);
  }

  Result<std::unique_ptr<File>> create_from(const std::string& retired, const std::string& path,
                                            bool direct) override {
    BELAY_ASSIGN(Descriptor descriptor, open_regular("reuse", retired, O_RDWR));
    BELAY_TRY(rename_new(retired, path));
    // From here on nobody who looks for what it was can open it or give it another name.
    struct stat status {};
    if (::fstat(descriptor.number(), &status) == 0 && status.st_nlink == 1 &&
        !is_open_elsewhere(descriptor) && cut_end(descriptor, status.st_size) &&
        set_file_mode(descriptor))
      return std::unique_ptr<File>(
          std::make_unique<PosixFile>(std::move(descriptor), path, direct));
    BELAY_TRY(remove(path));
    return fail(Code::busy, "reuse {}: somebody reads it, or it has other names", retired);
  }

  Result<void> rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return failed("rename", from_to(from, to));
    return {};
  }

  Result<void> rename_new(const std::string& from, const std::string& to) override {
    if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) == 0) return {};
    if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
      return failed("rename", from_to(from, to));
    // Without the flag, a second name that must be new is as atomic; only `from` goes later.
    if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) != 0)
      return failed("rename", from_to(from, to));
    return remove(from);
  }

  Result<void> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) return failed("remove", path);
    return {};
  }

  Result<void> sync_directory(const std::string& path) override {
    const Descriptor directory(open_directory(path));
    if (!directory.valid()) return failed("sync directory", path);
    // EINVAL: this file system has no such operation, so there is nothing more that could be done.
    if (retry([&] { return ::fsync(directory.number()); }) != 0 && errno != EINVAL)
      return failed("sync directory", path);
    return {};
  }

  Result<void> make_directory(const std::string& path) override {
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
      return Unexpected(link_for_directory("make directory", path));
    BELAY_ASSIGN(Ancestry ancestry, ancestry_of(path));
    BELAY_TRY(settle(ancestry.existing));
    for (auto missing = ancestry.missing.rbegin(); missing != ancestry.missing.rend(); ++missing) {
      BELAY_TRY(create_directory(*missing));
      BELAY_TRY(sync_directory(parent_of(*missing)));
    }
    return {};
  }

  Result<std::vector<DirectoryEntry>> list(const std::string& path) override {
    Descriptor descriptor(open_directory(path));
    if (!descriptor.valid()) return failed("list", path);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(descriptor.number()), ::closedir);
    if (!stream) return failed("list", path);
    const int directory = descriptor.release();  // the stream's from here on
    std::vector<DirectoryEntry> entries;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream.get());
      if (entry == nullptr && errno != 0) return failed("list", path);
      if (entry == nullptr) break;
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      const std::optional<EntryKind> kind = kind_of(directory, *entry);
      if (kind) entries.push_back({name, *kind});
      if (!kind && errno != ENOENT) return failed("list", path + "/" + name);
    }
    std::sort(entries.begin(), entries.end(),
              [](const auto& a, const auto& b) { return a.name < b.name; });
    return entries;
  }

  Result<Space> space(const std::string& path) override {
    struct statfs status {};
    if (retry([&] { return ::statfs(path.c_str(), &status); }) != 0) return failed("space", path);
    const auto unit = static_cast<std::uint64_t>(status.f_frsize);
    return Space{.total_bytes = std::uint64_t{status.f_blocks} * unit,
                 .free_bytes = std::uint64_t{status.f_bavail} * unit,
                 // Some file systems have no such limit, and count none.
                 .has_room_for_names = status.f_files == 0 || status.f_ffree > 0,
                 .in_memory = status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC};
  }

  Result<std::unique_ptr<Lock>> lock(const std::string& path, const std::string& owner) override {
    BELAY_TRY(check_owner(parent_of(path)));
    BELAY_ASSIGN(Descriptor descriptor, open_regular("lock", path, O_RDWR | O_CREAT));
    if (retry([&] { return ::flock(descriptor.number(), LOCK_EX | LOCK_NB); }) != 0) {
      if (errno != EWOULDBLOCK) return failed("lock", path);
      std::array<char, kOwnerBytes> written{};
      const ssize_t got =
          retry([&] { return ::pread(descriptor.number(), written.data(), written.size(), 0); });
      return Unexpected(lock_held({written.data(), static_cast<std::size_t>(got < 0 ? 0 : got)}));
    }
    if (!set_file_mode(descriptor)) return failed("lock", path);
    // A full disk must not keep anyone from the lock: pruning takes one.
    const int error = write_owner(descriptor.number(), owner);
    if (error != 0 && code_of(error) != Code::no_space)
      return Unexpected(error_of(error, "lock", path));
    return std::unique_ptr<Lock>(std::make_unique<PosixLock>(std::move(descriptor)));
  }

 private:
  /// Makes the name of an existing directory durable: whoever created it may have been killed
  /// before, or be about to. One whose parent cannot be opened was made by someone else.
  Result<void> settle(const std::string& directory) {
    const std::string parent = parent_of(directory);
    if (parent.empty()) return {};
    if (!Descriptor(open_directory(parent)).valid() && errno == EACCES) return {};
    return sync_directory(parent);
  }
};

}  // namespace

Files& posix_files() {
  static PosixFiles files;
  return files;
}

}  // namespace belay::os
