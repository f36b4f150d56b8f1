// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "base/try.hpp"
#include "files/hdf5_output.hpp"
#include "os/errno.hpp"
#include "os/files.hpp"
#include "os/host.hpp"

#include <fcntl.h>

#include <filesystem>

namespace belay::files {

Result<Hdf5Output> Hdf5Output::create(const std::string& path, bool force,
                                      std::vector<Hdf5Entry> entries) {
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  if (std::filesystem::exists(status) && (!force || !std::filesystem::is_regular_file(status)))
    return fail(Code::invalid_argument, "{} is there already; choose another name{}",
                in_quotes(path), force ? "" : " or use --force");
  Hdf5Output output(path, force, fmt::format("{}.belay-{}.tmp", path, os::process_id()),
                    std::move(entries));
  BELAY_TRY(make_hdf5_file(output.temporary_, output.entries_));
  os::Descriptor file(::open(output.temporary_.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return Unexpected(os::error_of(errno, "open", output.temporary_));
  Hdf5Output opened(path, force, std::exchange(output.temporary_, {}), std::move(output.entries_),
                    std::move(file));
  return opened;
}

Hdf5Output::Hdf5Output(Hdf5Output&& other) noexcept
    : path_(std::move(other.path_)),
      force_(other.force_),
      temporary_(std::exchange(other.temporary_, {})),
      entries_(std::move(other.entries_)),
      file_(std::move(other.file_)) {}

Hdf5Output::~Hdf5Output() {
  // Nothing can be done about a temporary that does not go, and nobody is left to tell.
  if (!temporary_.empty()) (void)os::posix_files().remove(temporary_);
}

Result<void> Hdf5Output::write(const Hdf5Entry& entry, std::uint64_t at,
                               std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const auto done = os::retry([&] {
      return ::pwrite(file_.number(), bytes.data(), bytes.size(),
                      static_cast<off_t>(entry.offset + at));
    });
    if (done < 0) return Unexpected(os::error_of(errno, "write", temporary_));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    at += static_cast<std::uint64_t>(done);
  }
  return {};
}

Result<void> Hdf5Output::finish() {
  if (::fsync(file_.number()) != 0) return Unexpected(os::error_of(errno, "sync", temporary_));
  if (const int error = file_.close(); error != 0)
    return Unexpected(os::error_of(error, "close", temporary_));
  os::Files& files = os::posix_files();
  BELAY_TRY(force_ ? files.rename(temporary_, path_) : files.rename_new(temporary_, path_));
  temporary_.clear();
  return {};
}

}  // namespace belay::files
