// SPDX-License-Identifier: Apache-2.0
// Capture of one version: fingerprint every block, ask the catalog whether it is safe, and copy to
// staging what is not. The background half is the Flight.
#pragma once

#include <belay/region.hpp>
#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "catalog/catalog.hpp"
#include "dedup/local_dedup.hpp"
#include "session/equipment.hpp"
#include "session/flight.hpp"
#include "session/voyage.hpp"
#include "store/carry.hpp"

#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace belay::session {

/// What is known about the segments of the last existing version.
struct SegmentDoubts {
  std::vector<bool> missing;  ///< their blocks are unsafe
  store::CarryPlan carry;     ///< so many bytes of their blocks count as unsafe
};

class VersionCapture {
 public:
  /// `dedup` may be nullptr: then equal blocks are stored each. `catalog` and `dedup` must outlive
  /// this; the index of `dedup` must be of the catalog's manifest. The catalog may lend its block
  /// table, which is then lost: if this version fails, it must be loaded again.
  /// `together`: unsafe blocks are only remembered until the ranks have planned who stores them.
  VersionCapture(Equipment& equipment, std::shared_ptr<Flight> flight, catalog::Catalog& catalog,
                 dedup::LocalDedup* dedup, SegmentDoubts doubts, bool together = false);

  /// To be called first. Makes room for so much, which is only a guess.
  void expect(std::size_t regions, std::uint64_t bytes);
  /// Captures a region. `dirty` says which blocks may have changed since the last existing version;
  /// nullptr: any. Its memory must stay unchanged until flush() or seal() has returned.
  Result<void> add(const std::string& name, RegionAccess& access, const std::vector<bool>* dirty);
  /// Everything added so far has been copied or found safe.
  Result<void> flush();
  /// Flushes, and submits the rest of the flight: writing, voting.
  Result<void> seal();

  // Planning together: add() all regions, then either hold() and take_cargo() for a voyage in the
  // background, or take_cargo() for one in the foreground, stage() and seal().
  /// Copies what is remembered, since the program may write the regions added so far.
  void hold_unsafe();
  /// Takes staging memory for all unsafe blocks. False: there is not enough, and none was taken.
  bool reserve();
  void give_back_reserved();
  /// Copies all unsafe blocks to the memory reserved, which the flight keeps to its end.
  void hold();
  Cargo take_cargo();
  /// Copies to staging what this rank stores. On a tier in memory it also writes it, all but the
  /// end.
  Result<void> stage(const std::vector<UnsafeBlock>& stored);

  /// Submits the end of a flight that does not vote.
  void abandon(const Error& error);

  std::uint64_t stage_ns() const { return stage_ns_; }
  std::uint64_t wait_ns() const { return wait_ns_; }

 private:
  static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};

  struct Candidate {
    fingerprint::Block bytes;  ///< empty: a tracker says that it was not written
    std::uint64_t block;       ///< in the new manifest
    std::uint64_t previous;    ///< same place in the last existing version, or kNoBlock
    std::uint32_t region;
  };
  struct Copy {
    std::byte* to;
    fingerprint::Block from;
  };

  /// The blocks of the last existing version, as far as they were not overwritten in place.
  const BlockTable& older_blocks() const;
  /// The new manifest can overwrite the older one's block table as long as both have the same
  /// regions in the same order; only the last may change its size.
  bool stays_in_place(const RegionRecord& record) const;
  Result<void> leave_place();
  bool is_untouched(std::uint64_t previous) const;
  /// The old segment's place in the new manifest.
  std::uint8_t kept_segment(std::uint8_t old_holder);
  std::uint8_t own_segment();
  void enter(std::uint64_t block, const Fingerprint& fingerprint, std::uint8_t holder);
  void hash_window();
  Result<void> decide(const Candidate& candidate, const Fingerprint& fingerprint);
  bool found_unchanged(const Candidate& candidate, const Fingerprint& fingerprint);
  /// The segment that has this content already.
  std::optional<std::uint8_t> find_duplicate(const Candidate& candidate,
                                             const Fingerprint& fingerprint);
  Result<void> store(const Candidate& candidate, const Fingerprint& fingerprint);
  Result<void> stage(fingerprint::Block bytes, const Fingerprint& fingerprint,
                     std::uint32_t region);
  void copy(const Copy& copy) const;
  void copy_staged();
  void trim();
  Result<capture::StagingBuffer*> acquire();
  Result<void> next_buffer();
  void submit(std::function<void()> job);

  Equipment& equipment_;
  std::shared_ptr<Flight> flight_;
  Manifest& manifest_;
  const Manifest& older_;
  catalog::Catalog& catalog_;
  dedup::LocalDedup* dedup_;
  SegmentDoubts doubts_;
  std::vector<bool> avoided_;                ///< old segments that get no new references
  std::vector<std::uint16_t> new_segments_;  ///< old segment -> index in the new manifest
  std::uint16_t own_segment_;
  bool in_place_ = false;         ///< the new manifest overwrites the block table of the older one
  std::uint64_t next_block_ = 0;  ///< blocks of the regions added so far

  std::vector<Candidate> window_;
  std::uint64_t window_bytes_ = 0;
  std::vector<fingerprint::Block> blocks_;
  std::vector<Fingerprint> fingerprints_;
  std::vector<Copy> copies_;
  capture::StagingBuffer* buffer_ = nullptr;
  bool at_once_ = false;  ///< what is staged is written by this thread, piece by piece
  const bool together_;
  std::vector<UnsafeBlock> unsafe_;
  std::vector<capture::StagingBuffer*> reserved_;  ///< for these; the last one is for writing
  std::size_t held_ = 0;                           ///< so many of them are copies
  std::deque<std::vector<std::byte>> copied_;      ///< what these point to
  std::uint64_t stage_ns_ = 0;
  std::uint64_t wait_ns_ = 0;
};

}  // namespace belay::session
