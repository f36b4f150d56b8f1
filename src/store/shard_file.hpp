// SPDX-License-Identifier: Apache-2.0
// A shard opened for reading: its description is verified, and its parity as it is read.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/shard.hpp"
#include "os/files.hpp"
#include "store/tier.hpp"

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace belay::store {

/// Move-only. One thread.
class ShardFile {
 public:
  /// corruption if the file is not the shard `id` (base/stripe.hpp) of `store` (unset: of any), or
  /// is damaged outside of its parity.
  static Result<ShardFile> open(Tier& tier, const SegmentId& id,
                                const std::optional<StoreId>& store);

  const format::ShardDescription& description() const { return description_; }
  std::uint64_t file_bytes() const { return file_bytes_; }
  /// Verified parity. corruption if it is damaged, or there is not so much.
  Result<void> read(std::uint64_t offset, std::span<std::byte> into);

 private:
  std::string where_;
  std::unique_ptr<os::File> file_;
  std::uint64_t file_bytes_ = 0;
  format::ShardDescription description_;
};

}  // namespace belay::store
