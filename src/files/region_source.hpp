// SPDX-License-Identifier: Apache-2.0
// Regions of a packed version, put back to where they were in files.
#pragma once

#include <belay/result.hpp>

#include "files/contents.hpp"
#include "inspect/part_reader.hpp"
#include "inspect/store_view.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace belay::files {

/// The one part of a packed version. invalid_argument: it is not one of a packed set.
Result<const inspect::PartView*> part_of(const inspect::VersionView& version);
bool is_packed(const inspect::VersionView& version);

/// Regions by name, from whatever files have them. One thread; view and version must outlive it.
class RegionSource {
 public:
  RegionSource(const inspect::StoreView& view, const inspect::VersionView& version,
               const inspect::PartView& part)
      : view_(view), version_(version), part_(part) {}

  /// If not all segments are there, each region is opened by itself, so that one that is lost takes
  /// no other with it.
  Result<void> open();

  /// Its bytes in pieces, one after the other. corruption: it is lost, damaged, or not what the
  /// table says; and whatever `take` returns.
  Result<void> read(const PackedRegion& packed, const TakeBytes& take);
  /// Writes its bytes to where they were in the file, and tells how many with each piece.
  /// REQUIRES: that is a file of zeros.
  Result<void> put(const PackedRegion& packed, int descriptor,
                   const std::function<void(std::uint64_t bytes)>& done = {});
  /// Type and shape of the region itself.
  Result<ArrayType> array_of(const PackedRegion& packed) const;

 private:
  void index(const Manifest& manifest);
  Result<const RegionRecord*> find(const PackedRegion& packed) const;
  Result<void> select(const PackedRegion& packed);

  const inspect::StoreView& view_;
  const inspect::VersionView& version_;
  const inspect::PartView& part_;
  std::optional<inspect::PartReader> all_;
  std::optional<inspect::PartReader> one_;
  Manifest manifest_;
  std::unordered_map<std::string, const RegionRecord*> regions_;
  const RegionRecord* region_ = nullptr;
  std::vector<std::byte> buffer_;
};

}  // namespace belay::files
