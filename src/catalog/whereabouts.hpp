// SPDX-License-Identifier: Apache-2.0
// Where the files of segments are: in which node's directory an original lies, and in which ones
// copies of it.
#pragma once

#include "base/nouns.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace belay::catalog {

/// A file with blocks of a segment: the segment itself, or a copy of it.
struct HeldFile {
  SegmentId id;
  bool copy = false;
  std::uint64_t bytes = 0;
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
    bool copy = false;
    std::uint64_t bytes = 0;
    bool damaged = false;  ///< on the global tier: to be read where nothing else is, not relied on
  };

  /// The number of a directory, a new one if it was not heard of before.
  Place place(std::string_view directory);
  const std::string& directory(Place place) const { return directories_[place]; }
  /// The directory is of the global tier: no loss of nodes takes it, and no level counts on it.
  void mark_global(Place place) { global_.insert(place); }
  bool is_global(Place place) const { return global_.contains(place); }

  /// The last word on this file counts.
  void add(const HeldFile& file, Place place, Rank keeper);
  void remove(const SegmentId& id, bool copy, Place place);
  /// This file gave wrong bytes, or could not be opened. On a node it is as good as lost.
  void damaged(const SegmentId& id, bool copy, Place place);
  /// All files of the segment: on nodes, or on the global tier.
  void remove(const SegmentId& id, bool global);

  /// Originals first.
  const std::vector<Holder>& holders(const SegmentId& id) const;
  std::vector<SegmentId> segments_of(VersionKey key) const;
  std::vector<SegmentId> segments() const;

  /// Its blocks may be found: the original is there with its size, or a copy.
  bool found(const SegmentRef& segment) const;
  /// Nothing of it was lost that losses of nodes could make needed: the original, and if there may
  /// be `losses` as many copies as were made, in different places.
  bool safe(const SegmentRef& segment, std::uint32_t losses) const;

 private:
  std::vector<std::string> directories_;
  std::set<Place> global_;
  std::map<SegmentId, std::vector<Holder>> holders_;
};

}  // namespace belay::catalog
