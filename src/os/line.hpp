// SPDX-License-Identifier: Apache-2.0
// A line between two processes of a host: messages in order, and descriptors that travel with them.
// Whoever dies hangs up at once.
#pragma once

#include <belay/result.hpp>

#include "os/clock.hpp"
#include "os/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::os {

/// One end. Sending and receiving may be done by two threads at once. Move-only.
class Line {
 public:
  /// A new line to whoever listens under `name`, on this host and as this user.
  static Result<Line> connect(const std::string& name, std::uint64_t timeout_ns);
  /// Both ends of a line, for tests.
  static Result<std::pair<Line, Line>> pair();

  /// `descriptor`, unless it is -1, is given to the other side too. peer_lost: the other side has
  /// hung up, or does not take the message within the time.
  Result<void> send(std::span<const std::byte> message, std::uint64_t timeout_ns,
                    int descriptor = -1);

  struct Received {
    std::vector<std::byte> message;
    Descriptor descriptor{-1};
  };
  /// The next message. peer_lost: the other side has hung up, or says nothing within the time.
  Result<Received> receive(std::uint64_t timeout_ns);

  /// Ends what both sides wait for. Any thread.
  void hang_up();

  int descriptor() const { return descriptor_.number(); }

 private:
  friend class Listener;
  explicit Line(Descriptor descriptor) : descriptor_(std::move(descriptor)) {}
  Result<void> wait(short events, std::uint64_t timeout_ns) const;
  Result<void> receive_all(std::span<std::byte> bytes, std::uint64_t timeout_ns, int& descriptor);

  Descriptor descriptor_;
};

/// Where lines begin. Its name is a secret of those who are told; it leaves nothing behind.
class Listener {
 public:
  static Result<Listener> open(Random& random);
  const std::string& name() const { return name_; }
  /// The next line of a process of this user. peer_lost: nobody calls within the time.
  Result<Line> accept(std::uint64_t timeout_ns);

 private:
  Listener(Descriptor descriptor, std::string name)
      : descriptor_(std::move(descriptor)), name_(std::move(name)) {}

  Descriptor descriptor_;
  std::string name_;
};

/// Waits until one of these lines has a message or has been hung up: its index. Empty: none has
/// within the time.
Result<std::optional<std::size_t>> wait_for_any(std::span<const Line* const> lines,
                                                std::uint64_t timeout_ns);

}  // namespace belay::os
