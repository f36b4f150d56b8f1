// SPDX-License-Identifier: Apache-2.0
#include "files/child.hpp"

#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/errno.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace belay::files {
namespace {

bool send_all(int out, const void* data, std::size_t bytes) {
  const auto* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const auto sent = os::retry([&] { return ::write(out, from, bytes); });
    if (sent <= 0) return false;
    from += sent;
    bytes -= static_cast<std::size_t>(sent);
  }
  return true;
}

/// Never returns: neither destructors nor buffers of the parent are the child's to deal with.
[[noreturn]] void run_child(const std::function<void(int)>& work, int out, pid_t parent) {
  ::signal(SIGPIPE, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);  // it died before we asked
  try {
    work(out);
  } catch (...) {
    ::_exit(1);
  }
  ::_exit(0);
}

/// Of the address space that this process has now: sanitizers begin with terabytes.
std::uint64_t address_space_bytes() {
  std::uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void set_limit(int which, std::uint64_t most) {
  const rlimit limit{most, most};
  (void)::setrlimit(static_cast<__rlimit_resource_t>(which), &limit);  // then the deadline must do
}

}  // namespace

void confine(std::uint64_t memory_bytes) {
  set_limit(RLIMIT_AS, address_space_bytes() + memory_bytes);
  set_limit(RLIMIT_CORE, 0);
  set_limit(RLIMIT_FSIZE, 0);
  // Locks of HDF5 fail on file systems without them, and mean nothing to a reader of bytes.
  ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
}

bool send_message(int out, std::span<const std::byte> message) {
  const std::uint64_t bytes = message.size();
  return send_all(out, &bytes, sizeof(bytes)) && send_all(out, message.data(), message.size());
}

Result<Child> Child::start(const std::function<void(int out)>& work) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Unexpected(os::error_of(errno, "make", "a pipe"));
  os::Descriptor in(ends[0]);
  os::Descriptor out(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) return Unexpected(os::error_of(errno, "start", "a child process"));
  if (pid == 0) {
    ::close(in.release());
    run_child(work, out.number(), parent);
  }
  return Child(pid, std::move(in));
}

Child::Child(Child&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)), status_(other.status_), in_(std::move(other.in_)) {}

Child::~Child() {
  if (pid_ < 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

int Child::wait() {
  if (pid_ >= 0) {
    (void)os::retry([&] { return ::waitpid(pid_, &status_, 0); });
    pid_ = -1;
  }
  return status_;
}

Result<void> Child::receive(std::span<std::byte> to, std::uint64_t deadline_ns) {
  while (!to.empty()) {
    const std::uint64_t now = os::system_clock().now_ns();
    const std::uint64_t left_ms = deadline_ns > now ? (deadline_ns - now + 999'999) / 1'000'000 : 0;
    pollfd waiting{in_.number(), POLLIN, 0};
    const int most = std::numeric_limits<int>::max();
    const int ready = os::retry(
        [&] { return ::poll(&waiting, 1, left_ms > most ? -1 : static_cast<int>(left_ms)); });
    if (ready == 0) return fail(Code::busy, "it took too long to read its structure");
    const auto got =
        ready < 0 ? -1 : os::retry([&] { return ::read(in_.number(), to.data(), to.size()); });
    if (got < 0) return Unexpected(os::error_of(errno, "read from", "a child process"));
    if (got == 0) return fail(Code::not_found, "the process that read its structure has died");
    to = to.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<std::vector<std::byte>> Child::receive(std::uint64_t patience_ns, std::uint64_t most_bytes) {
  const std::uint64_t now = os::system_clock().now_ns();
  const std::uint64_t deadline = now + std::min(patience_ns, ~std::uint64_t{0} - now);
  std::uint64_t bytes = 0;
  BELAY_TRY(receive(std::as_writable_bytes(std::span(&bytes, 1)), deadline));
  if (bytes > most_bytes)
    return fail(Code::corruption, "the description of its variables is too long");
  std::vector<std::byte> message(bytes);
  BELAY_TRY(receive(message, deadline));
  return message;
}

}  // namespace belay::files
