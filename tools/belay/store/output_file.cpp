// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/store/output_file.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "os/host.hpp"

#include <cstdio>
#include <filesystem>

namespace belay::tool {

Result<OutputFile> OutputFile::create(const std::string& path, bool force) {
  OutputFile output(path, force);
  if (path == "-") return output;
  std::error_code error;
  const auto status = std::filesystem::symlink_status(path, error);
  const bool there = std::filesystem::exists(status);
  if (there && !std::filesystem::is_regular_file(status))
    return fail(Code::invalid_argument, "{} is not a regular file; choose another name",
                in_quotes(path));
  if (there && !force)
    return fail(Code::invalid_argument, "{} is there already; choose another name or use --force",
                in_quotes(path));
  const std::string temporary = fmt::format("{}.belay-{}.tmp", path, os::process_id());
  BELAY_ASSIGN(output.file_, os::posix_files().create(temporary, /*direct=*/false));
  output.temporary_ = temporary;
  return output;
}

OutputFile::~OutputFile() {
  // Nothing can be done about a temporary that does not go, and nobody is left to tell.
  if (file_ != nullptr && !temporary_.empty()) (void)os::posix_files().remove(temporary_);
}

Result<void> OutputFile::append(std::span<const std::byte> bytes) {
  if (file_ == nullptr) {
    if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size())
      return fail(Code::io, "write to standard output failed");
    return {};
  }
  BELAY_TRY(file_->write(offset_, bytes));
  offset_ += bytes.size();
  return {};
}

Result<void> OutputFile::append(std::string_view text) {
  return append(std::as_bytes(std::span(text.data(), text.size())));
}

Result<void> OutputFile::finish() {
  if (file_ == nullptr) {
    if (std::fflush(stdout) != 0) return fail(Code::io, "write to standard output failed");
    return {};
  }
  BELAY_TRY(file_->sync());
  BELAY_TRY(file_->close());
  os::Files& files = os::posix_files();
  auto named = force_ ? files.rename(temporary_, path_) : files.rename_new(temporary_, path_);
  if (!named && named.error().code() == Code::busy)
    return fail(Code::invalid_argument, "{} has appeared meanwhile; use --force to replace it",
                in_quotes(path_));
  BELAY_TRY(named);
  temporary_.clear();
  return {};
}

}  // namespace belay::tool
