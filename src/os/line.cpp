// SPDX-License-Identifier: Apache-2.0
#include "os/line.hpp"

#include "base/try.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

namespace belay::os {
namespace {

constexpr std::uint64_t kMostMessageBytes = std::uint64_t{1} << 40;

Error lost(const char* what, int error) {
  return {Code::peer_lost, fmt::format("{} another process of this host: {}", what,
                                       error == 0 ? "it has hung up" : std::strerror(error))};
}

int milliseconds(std::uint64_t timeout_ns) {
  constexpr std::uint64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(kMost, timeout_ns / 1'000'000 + 1));
}

/// Names that begin with a zero byte are in no directory and vanish with their owner.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t count = std::min(name.size(), sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name.data(), count);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + count);
}

Result<Descriptor> make_socket() {
  Descriptor made(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return fail(Code::io, "socket: {}", std::strerror(errno));
  return made;
}

bool is_same_user(int descriptor) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return ::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == ::geteuid();
}

/// Room for one descriptor beside a message.
union Control {
  std::array<char, CMSG_SPACE(sizeof(int))> bytes;
  cmsghdr alignment;
};

}  // namespace

Result<Line> Line::connect(const std::string& name, std::uint64_t timeout_ns) {
  BELAY_ASSIGN(auto made, make_socket());
  sockaddr_un address{};
  const socklen_t length = address_of(name, address);
  Line line(std::move(made));
  for (std::uint64_t waited = 0;; waited += 1'000'000) {
    if (retry([&] {
          return ::connect(line.descriptor(), reinterpret_cast<sockaddr*>(&address), length);
        }) == 0)
      return line;
    // The queue of those who call at once is full.
    if (errno != EAGAIN || waited >= timeout_ns) return Unexpected(lost("connect to", errno));
    ::usleep(1000);
  }
}

Result<std::pair<Line, Line>> Line::pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()) != 0)
    return fail(Code::io, "socketpair: {}", std::strerror(errno));
  return std::pair(Line(Descriptor(ends[0])), Line(Descriptor(ends[1])));
}

Result<void> Line::wait(short events, std::uint64_t timeout_ns) const {
  pollfd polled{descriptor(), events, 0};
  const int ready = retry([&] { return ::poll(&polled, 1, milliseconds(timeout_ns)); });
  if (ready < 0) return Unexpected(lost("wait for", errno));
  if (ready == 0) return Unexpected(lost("wait for", ETIMEDOUT));
  return {};
}

Result<void> Line::send(std::span<const std::byte> message, std::uint64_t timeout_ns,
                        int descriptor) {
  std::uint64_t length = message.size();
  std::array<iovec, 2> parts{iovec{&length, sizeof length},
                             iovec{const_cast<std::byte*>(message.data()), message.size()}};
  Control control{};
  msghdr header{};
  header.msg_iov = parts.data();
  header.msg_iovlen = parts.size();
  if (descriptor >= 0) {
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    cmsghdr* const carried = CMSG_FIRSTHDR(&header);
    carried->cmsg_level = SOL_SOCKET;
    carried->cmsg_type = SCM_RIGHTS;
    carried->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(carried), &descriptor, sizeof descriptor);
  }
  while (parts[0].iov_len + parts[1].iov_len > 0) {
    const auto sent = retry([&] { return ::sendmsg(descriptor_.number(), &header, MSG_NOSIGNAL); });
    if (sent < 0 && errno != EAGAIN) return Unexpected(lost("send to", errno));
    if (sent < 0) {
      BELAY_TRY(wait(POLLOUT, timeout_ns));
      continue;
    }
    header.msg_control = nullptr;
    header.msg_controllen = 0;
    auto left = static_cast<std::size_t>(sent);
    for (iovec& part : parts) {
      const std::size_t taken = std::min(left, part.iov_len);
      part.iov_base = static_cast<std::byte*>(part.iov_base) + taken;
      part.iov_len -= taken;
      left -= taken;
    }
  }
  return {};
}

Result<void> Line::receive_all(std::span<std::byte> bytes, std::uint64_t timeout_ns,
                               int& descriptor) {
  while (!bytes.empty()) {
    iovec part{bytes.data(), bytes.size()};
    Control control{};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control.bytes.data();
    header.msg_controllen = control.bytes.size();
    const auto got =
        retry([&] { return ::recvmsg(descriptor_.number(), &header, MSG_CMSG_CLOEXEC); });
    if (got == 0) return Unexpected(lost("receive from", 0));
    if (got < 0 && errno != EAGAIN) return Unexpected(lost("receive from", errno));
    if (got < 0) {
      BELAY_TRY(wait(POLLIN, timeout_ns));
      continue;
    }
    for (cmsghdr* carried = CMSG_FIRSTHDR(&header); carried != nullptr;
         carried = CMSG_NXTHDR(&header, carried))
      if (carried->cmsg_level == SOL_SOCKET && carried->cmsg_type == SCM_RIGHTS)
        std::memcpy(&descriptor, CMSG_DATA(carried), sizeof descriptor);
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return {};
}

Result<Line::Received> Line::receive(std::uint64_t timeout_ns) {
  std::uint64_t length = 0;
  int descriptor = -1;
  auto got = receive_all(std::as_writable_bytes(std::span(&length, 1)), timeout_ns, descriptor);
  Received received{.message = {}, .descriptor = Descriptor(descriptor)};
  BELAY_TRY(got);
  if (length > kMostMessageBytes) return Unexpected(lost("receive from", EPROTO));
  received.message.resize(length);
  int none = -1;
  BELAY_TRY(receive_all(received.message, timeout_ns, none));
  return received;
}

void Line::hang_up() { (void)::shutdown(descriptor_.number(), SHUT_RDWR); }

Result<Listener> Listener::open(Random& random) {
  std::array<std::uint64_t, 2> secret{};
  for (std::uint64_t& word : secret) word = random.next();
  std::string name = fmt::format("belay-{}-{:016x}{:016x}", ::getpid(), secret[0], secret[1]);
  BELAY_ASSIGN(auto made, make_socket());
  sockaddr_un address{};
  const socklen_t length = address_of(name, address);
  if (::bind(made.number(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      ::listen(made.number(), SOMAXCONN) != 0)
    return fail(Code::io, "listen for ranks of this host: {}", std::strerror(errno));
  return Listener(std::move(made), std::move(name));
}

Result<Line> Listener::accept(std::uint64_t timeout_ns) {
  for (;;) {
    pollfd polled{descriptor_.number(), POLLIN, 0};
    const int ready = retry([&] { return ::poll(&polled, 1, milliseconds(timeout_ns)); });
    if (ready <= 0) return Unexpected(lost("wait for", ready < 0 ? errno : ETIMEDOUT));
    Descriptor made(retry([&] {
      return ::accept4(descriptor_.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    }));
    if (!made.valid() && errno != EAGAIN && errno != ECONNABORTED)
      return Unexpected(lost("wait for", errno));
    if (made.valid() && is_same_user(made.number())) return Line(std::move(made));
  }
}

Result<std::optional<std::size_t>> wait_for_any(std::span<const Line* const> lines,
                                                std::uint64_t timeout_ns) {
  std::vector<pollfd> polled;
  for (const Line* line : lines) polled.push_back({line->descriptor(), POLLIN, 0});
  const int ready =
      retry([&] { return ::poll(polled.data(), polled.size(), milliseconds(timeout_ns)); });
  if (ready < 0) return Unexpected(lost("wait for", errno));
  for (std::size_t i = 0; i < polled.size(); ++i)
    if (polled[i].revents != 0) return std::optional<std::size_t>(i);
  return std::optional<std::size_t>();
}

}  // namespace belay::os
