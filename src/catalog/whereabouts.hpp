// SPDX-License-Identifier: Apache-2.0
// Where the files of segments are: in which node's directory an original lies, and in which ones
// copies of it; and which shards of its stripe are where.
#pragma once

#include "base/nouns.hpp"
#include "base/stripe.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::catalog {

/// A file with blocks of a segment, or a shard of a stripe.
struct HeldFile {
  SegmentId id;
  FileKind kind = FileKind::segment;
  std::uint64_t bytes = 0;
  std::uint32_t seat = 0;  ///< of a shard: whose it is in the stripe
  auto operator<=>(const HeldFile&) const = default;
};

/// The same on all ranks, since it is changed only by what all have been told. One thread.
class Whereabouts {
 public:
  /// A node's directory, by number.
  using Place = std::uint32_t;
  struct Holder {
    Place place = 0;
    Rank keeper = 0;  ///< a rank that can read the file
    FileKind kind = FileKind::segment;
    std::uint64_t bytes = 0;
    std::uint32_t seat = 0;  ///< of a shard
    bool damaged = false;    ///< in part: what is good of it may be read, nothing is safe by it

    bool is_copy() const { return kind == FileKind::copy; }
  };

  /// The number of a directory, a new one if it was not heard of before.
  Place place(std::string_view directory);
  const std::string& directory(Place place) const { return directories_[place]; }
  /// The directory is of the global tier: no loss of nodes takes it, and no level counts on it.
  void mark_global(Place place) { global_.insert(place); }
  bool is_global(Place place) const { return global_.contains(place); }
  /// All directories are of the kind that every rank can read, though they count as nodes.
  void see_all() { sees_all_ = true; }
  bool in_sight(Place place) const { return sees_all_ || is_global(place); }

  /// There is one tier, whose files are in bundles: what a version counts on is in copies there as
  /// safe as in the original.
  void trust_copies() { trusts_copies_ = true; }

  /// The last word on this file counts.
  void add(const HeldFile& file, Place place, Rank keeper);
  void remove(const SegmentId& id, FileKind kind, Place place);
  /// This file gave wrong bytes, or could not be opened.
  void damaged(const SegmentId& id, FileKind kind, Place place);
  /// The segment and its copies: on nodes, or on the global tier.
  void remove(const SegmentId& id, bool global);
  void add(const Stripe& stripe);
  /// With its shards; members stay.
  void remove_stripe(VersionKey key, std::uint32_t number);

  /// The stripe that a segment is a member of; nullptr: none that is known.
  const Stripe* stripe_of(const SegmentId& segment) const;
  std::vector<const Stripe*> stripes() const;
  /// Of the shard `shard_id()`, one for each seat that has it.
  const std::vector<Holder>& shards(const SegmentId& id) const;
  std::vector<SegmentId> all_shards() const;

  /// Originals first.
  const std::vector<Holder>& holders(const SegmentId& id) const;
  std::vector<SegmentId> segments_of(VersionKey key) const;
  std::vector<SegmentId> segments() const;

  /// Its blocks may be found: the original is there with its size, or a copy, or enough of its
  /// stripe.
  bool found(const SegmentRef& segment) const;
  /// Where the original is and, if `with_all`, all that was made to replace it: as many copies, in
  /// different places, or its whole stripe. Empty: some of it is lost or damaged.
  std::vector<Place> places_if_whole(const SegmentRef& segment, bool with_all) const;

 private:
  const Holder* original(const SegmentId& id, std::uint64_t bytes) const;
  const Holder* shard(const Stripe& stripe, std::uint32_t seat, std::uint32_t index) const;
  /// Perhaps damaged.
  bool has_member(const Stripe& stripe, std::uint32_t seat) const;
  /// Can what this seat gave to its codewords be had from the others?
  bool can_rebuild(const Stripe& stripe, std::uint32_t seat) const;
  std::vector<Place> places_if_whole(const Stripe& stripe) const;
  /// Together they have what was found there. Empty: one of them is damaged, or there is none.
  std::vector<Place> places_of_copies(const SegmentId& id) const;

  std::vector<std::string> directories_;
  std::set<Place> global_;
  bool trusts_copies_ = false;
  bool sees_all_ = false;
  std::map<SegmentId, std::vector<Holder>> holders_;  ///< segments and copies
  std::map<SegmentId, std::vector<Holder>> shards_;
  std::map<std::pair<VersionKey, std::uint32_t>, Stripe> stripes_;
  std::map<SegmentId, std::uint32_t> stripe_of_;  ///< by member: the stripe's number
};

}  // namespace belay::catalog
