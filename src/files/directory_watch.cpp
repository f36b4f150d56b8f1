// SPDX-License-Identifier: Apache-2.0
#include "files/directory_watch.hpp"

#include "os/errno.hpp"

#include <fcntl.h>
#include <sys/inotify.h>

#include <array>

namespace belay::files {

Result<DirectoryWatch> DirectoryWatch::make() {
  os::Descriptor descriptor(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!descriptor.valid()) return Unexpected(os::error_of(errno, "watch", "directories"));
  return DirectoryWatch(std::move(descriptor));
}

Result<void> DirectoryWatch::add(const std::string& directory, const std::string& below) {
  constexpr std::uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE | IN_ONLYDIR;
  const int number = ::inotify_add_watch(descriptor_.number(), directory.c_str(), kEvents);
  if (number < 0) return Unexpected(os::error_of(errno, "watch", directory));
  directories_[number] = below;
  return {};
}

std::set<std::string> DirectoryWatch::take_finished() {
  std::set<std::string> finished;
  alignas(inotify_event) std::array<char, 64 << 10> buffer;
  for (;;) {
    const auto got =
        os::retry([&] { return ::read(descriptor_.number(), buffer.data(), buffer.size()); });
    if (got <= 0) return finished;
    for (std::size_t at = 0; at < static_cast<std::size_t>(got);) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
      at += sizeof(inotify_event) + event->len;
      const auto directory = directories_.find(event->wd);
      // An overflow, or a directory that has gone: the next look at the files tells.
      if (directory == directories_.end() || event->len == 0) continue;
      if ((event->mask & (IN_CLOSE_WRITE | IN_MOVED_TO)) == 0 || (event->mask & IN_ISDIR) != 0)
        continue;
      const std::string& below = directory->second;
      finished.insert(below.empty() ? event->name : below + "/" + event->name);
    }
  }
}

std::optional<bool> is_being_written(const std::string& path) {
  const os::Descriptor file(
      os::retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  if (!file.valid()) return {};
  // The kernel grants a read lease only on files that nobody has open for writing.
  if (::fcntl(file.number(), F_SETLEASE, F_RDLCK) == 0) {
    (void)::fcntl(file.number(), F_SETLEASE, F_UNLCK);  // closing would do it as well
    return false;
  }
  return errno == EAGAIN ? std::optional(true) : std::nullopt;
}

}  // namespace belay::files
