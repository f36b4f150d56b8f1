// SPDX-License-Identifier: Apache-2.0
// The regions of a session, by name.
#pragma once

#include <belay/region.hpp>
#include <belay/result.hpp>

#include <map>
#include <memory>
#include <string>
#include <string_view>

namespace belay::capture {

/// One thread at a time. Iterates in the order of names.
class Regions {
 public:
  struct Region {
    std::unique_ptr<RegionAccess> access;
    Version captured_in = 0;  ///< the version that last captured it
  };
  using Map = std::map<std::string, Region, std::less<>>;

  /// A name that is protected already moves to the new memory.
  Result<void> protect(std::string_view name, std::unique_ptr<RegionAccess> access);
  Result<void> unprotect(std::string_view name);
  /// nullptr: not protected.
  Region* find(std::string_view name);
  const Region* find(std::string_view name) const;
  /// The bytes of all regions as they are now; serializers count as they last were.
  std::uint64_t bytes() const;

  Map::iterator begin() { return regions_.begin(); }
  Map::iterator end() { return regions_.end(); }
  Map::const_iterator begin() const { return regions_.begin(); }
  Map::const_iterator end() const { return regions_.end(); }
  std::size_t size() const { return regions_.size(); }

 private:
  Map regions_;
};

}  // namespace belay::capture
