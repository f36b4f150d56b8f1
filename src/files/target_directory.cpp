// SPDX-License-Identifier: Apache-2.0
#include "files/target_directory.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/contents.hpp"
#include "os/errno.hpp"
#include "os/host.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>

namespace belay::files {
namespace {

timespec time_of(std::int64_t ns) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = ns / kSecond;
  if (ns % kSecond < 0) --seconds;  // before 1970
  return {seconds, ns - seconds * kSecond};
}

/// A temporary file that goes away unless it gets its name.
class Temporary {
 public:
  Temporary(int directory, std::string name) : directory_(directory), name_(std::move(name)) {}
  ~Temporary() {
    if (!name_.empty()) (void)::unlinkat(directory_, name_.c_str(), 0);
  }
  const char* name() const { return name_.c_str(); }
  void keep() { name_.clear(); }

 private:
  int directory_;
  std::string name_;
};

/// 0, or errno.
int rename_to(int directory, const char* from, const char* to, bool replace) {
  if (replace) return ::renameat(directory, from, directory, to) == 0 ? 0 : errno;
  if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // Without the flag, a second name that must be new is as atomic.
  if (::linkat(directory, from, directory, to, 0) != 0) return errno;
  return ::unlinkat(directory, from, 0) == 0 ? 0 : errno;
}

/// Whatever is in the way of a new file.
Result<void> check_free(int directory, const std::string& name, const std::string& path,
                        bool force) {
  struct stat status {};
  if (::fstatat(directory, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) return {};
  if (!S_ISREG(status.st_mode))
    return fail(Code::invalid_argument, "{} is there and not a regular file", in_quotes(path));
  if (!force)
    return fail(Code::invalid_argument, "{} is there already; unpack elsewhere or use --force",
                in_quotes(path));
  return {};
}

Result<void> set_attributes(int descriptor, const FileAttributes& attributes,
                            const std::string& path) {
  // Whoever may write the set must not make programs run as somebody else.
  if (::fchmod(descriptor, attributes.mode & 0777u) != 0)
    return Unexpected(os::error_of(errno, "set the mode of", path));
  const timespec times[2] = {time_of(attributes.atime_ns), time_of(attributes.mtime_ns)};
  if (::futimens(descriptor, times) != 0)
    return Unexpected(os::error_of(errno, "set the times of", path));
  return {};
}

}  // namespace

Result<TargetDirectory> TargetDirectory::open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  os::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() && error)
    return Unexpected(os::error_of(error.value(), "make directory", path));
  if (!directory.valid()) return Unexpected(os::error_of(errno, "open directory", path));
  return TargetDirectory(path, std::move(directory));
}

Result<os::Descriptor> TargetDirectory::parent_of(const std::string& path) const {
  constexpr int kFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
  std::optional<os::Descriptor> at(::fcntl(directory_.number(), F_DUPFD_CLOEXEC, 0));
  if (!at->valid()) return Unexpected(os::error_of(errno, "open directory", path_));
  for (std::size_t begin = 0, end; (end = path.find('/', begin)) != std::string::npos;
       begin = end + 1) {
    const std::string part = path.substr(begin, end - begin);
    if (::mkdirat(at->number(), part.c_str(), 0777) != 0 && errno != EEXIST)
      return Unexpected(os::error_of(errno, "make directory", path_ + "/" + path.substr(0, end)));
    os::Descriptor next(::openat(at->number(), part.c_str(), kFlags));
    if (!next.valid() && (errno == ELOOP || errno == ENOTDIR))
      return fail(Code::invalid_argument,
                  "{} is a link or a file where a directory belongs; unpack elsewhere",
                  in_quotes(path_ + "/" + path.substr(0, end)));
    if (!next.valid())
      return Unexpected(os::error_of(errno, "open directory", path_ + "/" + path.substr(0, end)));
    at.emplace(std::move(next));
  }
  return *std::move(at);
}

Result<void> TargetDirectory::write(const std::string& path, std::uint64_t bytes,
                                    const FileAttributes& attributes, bool force,
                                    const std::function<Result<void>(int descriptor)>& fill) {
  BELAY_TRY(check_path(path));
  const std::string shown = path_ + "/" + path;
  BELAY_ASSIGN(const os::Descriptor parent, parent_of(path));
  const std::string name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  BELAY_TRY(check_free(parent.number(), name, shown, force));
  Temporary temporary(parent.number(), fmt::format(".belay-{}.tmp", os::process_id()));
  os::Descriptor file(::openat(parent.number(), temporary.name(),
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Unexpected(os::error_of(errno, "create a file for", shown));
  if (::ftruncate(file.number(), static_cast<off_t>(bytes)) != 0)
    return Unexpected(os::error_of(errno, "write", shown));
  BELAY_TRY(fill(file.number()));
  BELAY_TRY(set_attributes(file.number(), attributes, shown));
  if (::fsync(file.number()) != 0) return Unexpected(os::error_of(errno, "sync", shown));
  if (const int error = file.close(); error != 0)
    return Unexpected(os::error_of(error, "close", shown));
  if (const int error = rename_to(parent.number(), temporary.name(), name.c_str(), force);
      error != 0)
    return Unexpected(os::error_of(error, "name", shown));
  temporary.keep();
  unsynced_.emplace(path);
  return {};
}

Result<void> TargetDirectory::sync() {
  std::set<std::string> directories;
  for (const std::string& path : std::exchange(unsynced_, {})) {
    const std::size_t end = path.rfind('/');
    const std::string name = end == std::string::npos ? "." : path.substr(0, end);
    if (!directories.insert(name).second) continue;
    BELAY_ASSIGN(const os::Descriptor parent, parent_of(path));
    // EINVAL: this file system has no such operation.
    if (::fsync(parent.number()) != 0 && errno != EINVAL)
      return Unexpected(os::error_of(errno, "sync directory", path_ + "/" + name));
  }
  return {};
}

}  // namespace belay::files
