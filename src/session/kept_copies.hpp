// SPDX-License-Identifier: Apache-2.0
// What a rank keeps for others of one version: copies of their segments and of their manifests.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/segment.hpp"
#include "os/memory.hpp"
#include "session/equipment.hpp"
#include "store/file_writer.hpp"
#include "vote/holdings.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace belay::session {

/// Jobs of a flight, one after the other on the worker.
class KeptCopies {
 public:
  /// What one other rank has announced.
  struct Source {
    Rank rank = 0;
    std::vector<format::IndexEntry> entries;  ///< of its segment, in order
    std::vector<bool> sent;                   ///< which of them come here, in order
    std::vector<std::byte> manifest;          ///< empty: another rank keeps it
  };

  /// Blocks of a source that lie one behind the other in a window.
  struct Arrival {
    std::size_t source = 0;
    std::span<const std::byte> bytes;
  };

  /// `header` is that of this rank's own segment.
  KeptCopies(Equipment& equipment, format::SegmentHeader header, std::vector<Source> sources);

  /// Verifies the next blocks of a source and writes them. The bytes are free when it returns.
  Result<void> write(const Arrival& arrival);
  /// Everything has arrived: makes it durable, manifests under temporary names.
  Result<void> finish();
  /// The version exists: gives manifests their names. Before, they would look like votes of ranks
  /// that may not have voted.
  Result<void> name_manifests();
  /// Removes what nobody can count on. Nothing more will be written.
  void clear_away();

  vote::Kept kept() const;
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  struct Copy {
    std::optional<store::FileWriter> writer;
    os::AlignedMemory buffer;
    std::size_t next_entry = 0;
  };

  SegmentId id_of(const Source& source) const { return {header_.origin.key, source.rank}; }
  format::SegmentHeader header_of(const Source& source) const;
  Result<void> start(const Source& source, Copy& copy);
  /// Verifies the first few blocks of what lies there; returns how many bytes that was.
  Result<std::size_t> verify_front(const Source& source, Copy& copy,
                                   std::span<const std::byte> bytes);
  Result<void> finish_copy(const Source& source, Copy& copy);

  Equipment& equipment_;
  format::SegmentHeader header_;
  std::vector<Source> sources_;
  std::vector<Copy> copies_;
  std::uint64_t file_bytes_ = 0;
};

}  // namespace belay::session
