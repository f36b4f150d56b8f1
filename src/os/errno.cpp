// SPDX-License-Identifier: Apache-2.0
#include "os/errno.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace belay::os {
namespace {

const char* hint_of(int error) {
  switch (error) {
    case ENOSPC:
      return "free space or point `store` elsewhere";
    case EDQUOT:
      return "free space, ask for a larger quota, or point `store` elsewhere";
    case EFBIG:
      return "raise the limit on file sizes (ulimit -f) or point `store` elsewhere";
    case EACCES:
    case EPERM:
      return "check owner and mode of the file and its directories";
    case EEXIST:
      return "unless another program is at work here, move it away";
    case EISDIR:
      return "a directory where a file belongs: move it away";
    case EROFS:
      return "mount it writable or point `store` elsewhere";
    case EIO:
      return "the device may be failing: see the kernel's log";
    case EMFILE:
    case ENFILE:
      return "raise the limit on open files (ulimit -n)";
    case ENAMETOOLONG:
      return "choose a shorter `store` or `node`";
    case ESTALE:
      return "the file system went away underneath: mount it again";
    case EOPNOTSUPP:
    case ENOSYS:
    case ENOLCK:
      return "this file system cannot do it: mount it with other options or point `store` "
             "elsewhere";
    default:
      return nullptr;
  }
}

}  // namespace

Code code_of(int error) {
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return Code::no_space;
    case ENOENT:
    case ENOTDIR:
      return Code::not_found;
    case EEXIST:
    case EWOULDBLOCK:
      return Code::busy;
    case EOPNOTSUPP:
    case ENOSYS:
      return Code::unsupported;
    case EINVAL:
      return Code::invalid_argument;
    default:
      return Code::io;
  }
}

Error error_of(int error, std::string_view operation, std::string_view path) {
  std::string message =
      fmt::format("{} {}: {}", operation, path, std::generic_category().message(error));
  if (const char* hint = hint_of(error)) message += fmt::format(" ({})", hint);
  return {code_of(error), std::move(message)};
}

std::string from_to(const std::string& from, const std::string& to) { return from + " to " + to; }

Error not_regular(std::string_view operation, std::string_view path) {
  return {Code::corruption,
          fmt::format("{} {}: not a regular file (Belay never makes such a thing: move it away)",
                      operation, path)};
}

Error not_directory(std::string_view operation, std::string_view path) {
  return {Code::invalid_argument,
          fmt::format("{} {}: something that is not a directory has this name (move it away or "
                      "point `store` elsewhere)",
                      operation, path)};
}

Error link_for_directory(std::string_view operation, std::string_view path) {
  return {
      Code::corruption,
      fmt::format("{} {}: a link in the place of a directory is not followed (Belay never makes "
                  "such a thing: move it away)",
                  operation, path)};
}

Error foreign_directory(std::string_view operation, std::string_view directory,
                        std::uint64_t its_user, std::uint64_t our_user) {
  return {
      Code::io,
      fmt::format("{} {}: belongs to user {}, who could not read what user {} writes there (run "
                  "as user {}, or point `store` elsewhere)",
                  operation, directory, its_user, our_user, its_user)};
}

Error lock_held(std::string_view written) {
  std::string owner(written.substr(0, kOwnerBytes));
  while (!owner.empty() && (owner.back() == '\n' || owner.back() == '\0')) owner.pop_back();
  for (char& byte : owner)
    if (byte < ' ' || byte > '~') byte = '?';
  if (owner.empty()) owner = "another process, which did not write its name";
  return {Code::busy, std::move(owner)};
}

}  // namespace belay::os
