// SPDX-License-Identifier: Apache-2.0
// With which codecs the blocks of regions lie in files, and how much smaller they became.
#pragma once

#include <belay/result.hpp>

#include "inspect/store_view.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace belay::inspect {

struct RegionEncoding {
  std::string codecs;  ///< names, the one with the most bytes first
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;  ///< a block's share of its extent
};

/// By region of the part's manifest; unset: none of its blocks is in a file that has codecs. Files
/// that cannot be read are left out.
Result<std::vector<std::optional<RegionEncoding>>> region_encodings(const StoreView& view,
                                                                    VersionKey key,
                                                                    const PartView& part);

}  // namespace belay::inspect
