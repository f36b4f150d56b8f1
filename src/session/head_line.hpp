// SPDX-License-Identifier: Apache-2.0
// A rank's line to its head, and the memory that both see.
#pragma once

#include <belay/result.hpp>

#include "os/line.hpp"
#include "os/memory.hpp"
#include "session/hand_over.hpp"

#include <memory>
#include <string>

namespace belay::session {

class HeadLine {
 public:
  /// `name` is what the head listens under.
  static Result<std::unique_ptr<HeadLine>> join(const std::string& name, Rank rank,
                                                std::uint64_t timeout_ns);
  /// Leaves, if nobody has.
  ~HeadLine() { leave(); }

  /// Memory of a staging buffer. All have the same size.
  Result<os::AlignedMemory> allocate(std::size_t number, std::size_t bytes);
  /// Where a block lies in the shared file. REQUIRES: it is in this buffer.
  static std::uint64_t place_of(const capture::StagingBuffer& buffer, const std::byte* block);

  /// Lets the head make a version durable, and waits for it. A job of the worker. peer_lost in the
  /// outcome: the head has ended, or has been silent for too long.
  Outcome send_off(std::span<const std::byte> order);
  /// Nothing more will be ordered: the head need not wait. Never blocks.
  void leave();

 private:
  HeadLine(os::Line line, os::Descriptor file, std::uint64_t timeout_ns)
      : line_(std::move(line)), file_(std::move(file)), timeout_ns_(timeout_ns) {}
  Result<Outcome> converse(std::span<const std::byte> order);

  os::Line line_;
  os::Descriptor file_;
  const std::uint64_t timeout_ns_;
  bool left_ = false;
};

}  // namespace belay::session
