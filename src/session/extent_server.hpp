// SPDX-License-Identifier: Apache-2.0
// Reads and decodes extents of bundles for other ranks, as long as several want them.
#pragma once

#include "base/nouns.hpp"
#include "catalog/whereabouts.hpp"
#include "os/parallel.hpp"
#include "store/bundle.hpp"
#include "store/tier.hpp"

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <vector>

namespace belay::session {

/// An extent of a bundle in one place.
struct ExtentName {
  catalog::Whereabouts::Place place = 0;
  SegmentId bundle;
  std::uint32_t extent = 0;
  auto operator<=>(const ExtentName&) const = default;
};

/// A block in an extent.
struct EntryQuestion {
  ExtentName extent;
  std::uint32_t entry = 0;  ///< in the bundle's index
  std::uint32_t length = 0;
  auto operator<=>(const EntryQuestion&) const = default;
};

std::vector<std::byte> encode_names(const std::vector<ExtentName>& names);
std::vector<std::byte> encode_questions(const std::vector<EntryQuestion>& questions);

/// Bundles that are open, by place and id.
class OpenBundles {
 public:
  OpenBundles(store::Tier& sight, const catalog::Whereabouts& whereabouts)
      : sight_(sight), whereabouts_(whereabouts) {}

  void add(catalog::Whereabouts::Place place, std::shared_ptr<store::Bundle> bundle);
  /// Opens it if it is not; nullptr: it cannot be.
  store::Bundle* open(const ExtentName& name);
  /// Forgets what was decoded.
  void release();
  std::vector<std::shared_ptr<store::Bundle>> take();

 private:
  using Key = std::pair<catalog::Whereabouts::Place, SegmentId>;

  store::Tier& sight_;
  const catalog::Whereabouts& whereabouts_;
  std::map<Key, std::shared_ptr<store::Bundle>> bundles_;
};

class ExtentServer {
 public:
  ExtentServer(OpenBundles& bundles, os::Parallel& readers)
      : bundles_(bundles), readers_(readers) {}

  /// A rank wants something of these extents. The answer is empty.
  std::vector<std::byte> hear(std::span<const std::byte> names);
  /// Once all were heard: for each name in order a byte, 1 if more than one rank wants the extent.
  std::vector<std::byte> tell_shared(std::span<const std::byte> names) const;
  /// For each question in order: a byte 1 and the block as it was decoded, or a byte 0 and as many
  /// others. The asker verifies.
  std::vector<std::byte> answer(std::span<const std::byte> questions);

 private:
  /// What is decoded stays so for the next that asks, within bounds.
  void make_room(const std::vector<EntryQuestion>& questions);

  OpenBundles& bundles_;
  os::Parallel& readers_;
  std::map<ExtentName, std::uint32_t> askers_;  ///< how many
  std::set<ExtentName> decoded_;
  std::uint64_t decoded_bytes_ = 0;
};

}  // namespace belay::session
