// SPDX-License-Identifier: Apache-2.0
// A manifest for who must not hold its block tables: verified once, and then read in parts.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/manifest_stream.hpp"
#include "store/pages.hpp"
#include "store/tier.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace belay::store {

/// Move-only.
class ManifestTable {
 public:
  /// corruption if it is not a manifest, or damaged.
  static Result<ManifestTable> open(Tier& tier, const std::string& name, PageReader& reader);

  const Manifest& head() const { return decoded_.head; }  ///< all of it but the block tables
  std::uint64_t blocks() const { return decoded_.blocks; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  bool is_used(std::uint8_t holder) const { return used_[holder]; }  ///< by any block

  /// All blocks in order.
  Result<void> each_block(PageReader& reader,
                          const std::function<void(std::uint64_t block, const Fingerprint&,
                                                   std::uint8_t holder)>& take) const;
  /// Bytes of the file. REQUIRES: there are so many.
  Result<void> read(std::uint64_t begin, std::span<std::byte> into, PageReader& reader) const;

 private:
  Result<void> load(PageReader& reader);
  Result<void> verify(PageReader& reader);

  std::string where_;
  std::unique_ptr<os::File> file_;
  std::uint64_t file_bytes_ = 0;
  format::ManifestHead decoded_;
  std::array<bool, 256> used_ = {};  ///< by holder
};

}  // namespace belay::store
