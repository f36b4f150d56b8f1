// SPDX-License-Identifier: Apache-2.0
#include "files/file_bytes.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "os/errno.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <vector>

namespace belay::files {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::int64_t in_ns(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileStamp stamp_of(const struct stat& status) {
  return {.bytes = static_cast<std::uint64_t>(status.st_size),
          .mode = status.st_mode & 07777u,
          .mtime_ns = in_ns(status.st_mtim),
          .atime_ns = in_ns(status.st_atim),
          .ctime_ns = in_ns(status.st_ctim),
          .device = status.st_dev,
          .inode = status.st_ino};
}

/// As many bytes as there are, up to to.size().
Result<std::size_t> read_some(int descriptor, std::uint64_t offset, std::span<std::byte> to,
                              const std::string& path) {
  std::size_t done = 0;
  while (done < to.size()) {
    const auto got = os::retry([&] {
      return ::pread(descriptor, to.data() + done, to.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (got < 0) return Unexpected(os::error_of(errno, "read", path));
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace

Error changed_meanwhile(const std::string& path) {
  return {Code::busy, in_quotes(path) +
                          " changed while it was packed; pack again when its writer has finished"};
}

Result<SourceBytes> SourceBytes::open(const std::string& path) {
  // Without O_NONBLOCK a pipe would wait for its other end.
  os::Descriptor descriptor(
      os::retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (!descriptor.valid()) return Unexpected(os::error_of(errno, "open", path));
  SourceBytes source(path, std::move(descriptor));
  struct stat status {};
  if (::fstat(source.descriptor(), &status) != 0)
    return Unexpected(os::error_of(errno, "stat", path));
  if (!S_ISREG(status.st_mode))
    return fail(Code::invalid_argument, "{} is not a regular file", in_quotes(path));
  source.stamp_ = stamp_of(status);
  return source;
}

Result<void> SourceBytes::read(std::uint64_t offset, std::span<std::byte> to) const {
  BELAY_ASSIGN(const std::size_t got, read_some(descriptor(), offset, to, path_));
  if (got < to.size()) return Unexpected(changed_meanwhile(path_));
  return {};
}

Result<FileStamp> SourceBytes::stamp_now() const {
  struct stat status {};
  if (::fstat(descriptor(), &status) != 0) return Unexpected(os::error_of(errno, "stat", path_));
  return stamp_of(status);
}

Result<Digest> SourceBytes::digest() const {
  auto digest = digest_of(descriptor(), stamp_.bytes, path_);
  if (!digest && digest.error().code() == Code::not_found)
    return Unexpected(changed_meanwhile(path_));
  return digest;
}

Result<Digest> digest_of(int descriptor, std::uint64_t bytes, const std::string& path) {
  std::vector<std::byte> piece(std::min<std::uint64_t>(bytes, kPieceBytes));
  format::Checksum128 checksum;
  for (std::uint64_t at = 0; at < bytes;) {
    const auto wanted = std::span(piece).first(std::min<std::uint64_t>(piece.size(), bytes - at));
    BELAY_ASSIGN(const std::size_t got, read_some(descriptor, at, wanted, path));
    if (got < wanted.size())
      return fail(Code::not_found, "{} ends at byte {}", in_quotes(path), at + got);
    checksum.update(wanted);
    at += got;
  }
  return checksum.digest();
}

}  // namespace belay::files
