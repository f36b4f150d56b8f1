// SPDX-License-Identifier: Apache-2.0
// A rank's lines to its head, and the memory that both see.
#pragma once

#include <belay/result.hpp>

#include "os/line.hpp"
#include "os/memory.hpp"
#include "session/hand_over.hpp"

#include <atomic>
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

/// A rank's line to its head for versions that go to the global tier.
class DrainLine {
 public:
  static Result<std::unique_ptr<DrainLine>> join(const std::string& name, Rank rank,
                                                 std::uint64_t timeout_ns);

  /// Lets the head bring a version there, and waits for it, until `cancelled`. A job of the drain
  /// worker. peer_lost in the report: as above.
  DrainReport send_off(std::span<const std::byte> order, const std::atomic<bool>& cancelled);

 private:
  DrainLine(os::Line line, std::uint64_t timeout_ns)
      : line_(std::move(line)), timeout_ns_(timeout_ns) {}
  Result<DrainReport> converse(std::span<const std::byte> order,
                               const std::atomic<bool>& cancelled);

  os::Line line_;
  const std::uint64_t timeout_ns_;
};

}  // namespace belay::session
