// SPDX-License-Identifier: Apache-2.0
#include "os/posix_file.hpp"

#include "base/try.hpp"
#include "os/errno.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

namespace belay::os {

// O_DIRECT is set on the open descriptor, since open(O_CREAT | O_EXCL | O_DIRECT) may create the
// file and then fail with EINVAL: a second try without the flag would find the name taken.
PosixFile::PosixFile(Descriptor descriptor, std::string path, bool direct)
    : descriptor_(std::move(descriptor)), path_(std::move(path)) {
  if (direct) direct_ = set_direct(true);
}

bool PosixFile::set_direct(bool direct) {
  const int flags = ::fcntl(descriptor_.number(), F_GETFL);
  if (flags == -1) return false;
  return ::fcntl(descriptor_.number(), F_SETFL, direct ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
}

// A file system may accept the flag and refuse the transfer: a larger alignment than ours, or a
// kind of file that it cannot do it for.
bool PosixFile::may_retry_buffered(int error, bool was_direct) {
  if (error != EINVAL || !was_direct || !set_direct(false)) return false;
  direct_ = false;
  return true;
}

Unexpected PosixFile::failed(const char* operation) const {
  return Unexpected(error_of(errno, operation, path_));
}

Result<void> PosixFile::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const bool direct = direct_;
    const ssize_t written = retry([&] {
      return ::pwrite(descriptor_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (written > 0) {
      offset += static_cast<std::uint64_t>(written);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      continue;
    }
    const int error = written == 0 ? EIO : errno;
    if (!may_retry_buffered(error, direct)) return Unexpected(error_of(error, "write", path_));
  }
  return {};
}

Result<std::size_t> PosixFile::read(std::uint64_t offset, std::span<std::byte> bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const bool direct = direct_;
    const ssize_t got = retry([&] {
      return ::pread(descriptor_.number(), bytes.data() + done, bytes.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (got == 0) break;
    if (got < 0) {
      const int error = errno;
      if (may_retry_buffered(error, direct)) continue;
      return Unexpected(error_of(error, "read", path_));
    }
    done += static_cast<std::size_t>(got);
    if (direct && done % kDirectAlignment != 0) {
      // Going on from here would be refused as unaligned, though it is only the end of the file.
      BELAY_ASSIGN(const std::uint64_t end, size());
      if (offset + done >= end) break;
    }
  }
  return done;
}

Result<void> PosixFile::sync() {
  // fdatasync includes the size and whatever else is needed to read the contents back.
  if (retry([&] { return ::fdatasync(descriptor_.number()); }) != 0) return failed("sync");
  return {};
}

// A file system in memory finds room page by page anyway: reserving would only look for each page
// twice, at a third of the cost of the write.
bool PosixFile::in_memory() const {
  struct statfs status {};
  return ::fstatfs(descriptor_.number(), &status) == 0 &&
         (status.f_type == TMPFS_MAGIC || status.f_type == RAMFS_MAGIC);
}

Result<void> PosixFile::reserve(std::uint64_t bytes) {
  if (bytes == 0 || in_memory()) return {};
  const int result = retry([&] {
    return ::fallocate(descriptor_.number(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(bytes));
  });
  if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS) return failed("reserve");
  return {};
}

Result<void> PosixFile::truncate(std::uint64_t bytes) {
  const auto length = static_cast<off_t>(bytes);
  if (retry([&] { return ::ftruncate(descriptor_.number(), length); }) != 0)
    return failed("truncate");
  return {};
}

Result<std::uint64_t> PosixFile::size() {
  struct stat status {};
  if (::fstat(descriptor_.number(), &status) != 0) return failed("size");
  return static_cast<std::uint64_t>(status.st_size);
}

Result<void> PosixFile::close() {
  if (const int error = descriptor_.close()) return Unexpected(error_of(error, "close", path_));
  return {};
}

}  // namespace belay::os
