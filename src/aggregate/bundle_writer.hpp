// SPDX-License-Identifier: Apache-2.0
// Writes a bundle: rider first, then extents that are fetched from the members' files, verified,
// and encoded.
#pragma once

#include <belay/result.hpp>

#include "aggregate/bundle_plan.hpp"
#include "codec/choice.hpp"
#include "format/rider.hpp"
#include "os/clock.hpp"
#include "store/tier.hpp"

#include <atomic>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::aggregate {

/// Bytes of a source, from `begin` on.
struct Piece {
  std::size_t source = 0;
  std::uint64_t begin = 0;
  std::span<std::byte> into;
};

/// Reads all of these, which are of one extent; `damaged` says which source could not be read.
using ReadPieces =
    std::function<Result<void>(std::span<const Piece>, std::optional<std::size_t>& damaged)>;

/// How memory is divided among what is on its way.
struct Portions {
  std::uint64_t extent_bytes = 0;  ///< of an extent, unless a block has more
  std::size_t parcels = 0;         ///< extents at a time
  std::size_t write_bytes = 0;     ///< that are gathered before they are written
};

/// What writing a bundle works with; all of it outlives the writing.
struct Tools {
  store::Tier& tier;  ///< where it goes
  codec::Chooser& chooser;
  os::Clock& clock;
  /// Names blocks: their fingerprints.
  std::function<void(std::span<const std::span<const std::byte>>, std::span<Fingerprint>)> name;
  ReadPieces read;
  unsigned encoders = 0;  ///< threads; 0: one does all
  Portions portions;
  const std::atomic<bool>& cancelled;
};

/// A manifest that the bundle carries.
struct MemberManifest {
  Rank rank = 0;
  std::uint64_t bytes = 0;
  std::function<Result<void>(ByteSink&)> copy;  ///< called once: appends so many bytes
};

/// What a bundle has.
struct Draft {
  std::vector<format::BundledSegment> segments;  ///< its sources, by rising id
  std::vector<MemberManifest> manifests;         ///< by rising rank
  /// The blocks of all sources, in order, are in so many chapters. If there are several, each is
  /// asked for more than once, and must be the same each time.
  std::size_t chapters = 1;
  std::function<Result<Chapter>(std::size_t number)> chapter;
};

struct WrittenBundle {
  std::uint64_t file_bytes = 0;
  std::uint64_t raw_bytes = 0;
  std::optional<double> bandwidth;  ///< bytes per second, if enough was written to tell
};

/// What tables of sources with so many blocks take while a bundle is planned, with manifests of so
/// many bytes.
std::uint64_t planning_bytes(std::uint64_t manifest_bytes, std::uint64_t blocks);
/// More than this of the memory they must not take: extents need some, too.
std::uint64_t most_planning_bytes(std::uint64_t memory_bytes);
/// Extents, and the threads that encode them, get what the tables of so many blocks leave: half of
/// the memory at the least.
Portions divide_memory(std::uint64_t memory_bytes, std::uint64_t blocks, std::uint32_t block_bytes,
                       unsigned encoders);

/// How many blocks a chapter may have where all of them are too many.
std::uint64_t most_chapter_blocks(std::uint64_t memory_bytes);

/// Writes a file of this name and makes its contents durable; on failure it is worthless, and
/// `damaged` is set if the file of that source gave wrong bytes.
Result<WrittenBundle> write_bundle(const Tools& tools, const std::string& name,
                                   format::SegmentHeader header, Draft draft,
                                   std::optional<std::size_t>& damaged);

}  // namespace belay::aggregate
