// SPDX-License-Identifier: Apache-2.0
// A file of a store made again, byte for byte, from what other files have.
#pragma once

#include <belay/result.hpp>

#include "base/bytes.hpp"
#include "inspect/block_search.hpp"
#include "inspect/segment_outline.hpp"
#include "store/tier.hpp"

#include <functional>
#include <span>
#include <string>

namespace belay::inspect {

/// Where a file is to be made, and what is there now.
struct RebuildPlace {
  store::Tier& tier;  ///< of the node's directory, for writing
  os::Files& files;
  std::string name;
  bool damaged = false;  ///< a file of this name is there
};

/// Appends the content of a file.
using WriteContent = std::function<Result<void>(ByteSink& sink)>;

/// Written under a temporary name, made durable, read again and compared, then given its name. A
/// damaged file of that name goes to quarantine if others have all that it has, and is replaced in
/// one step otherwise: at no moment the store has less than before. After an error nothing but a
/// temporary file may be left. True: the damaged one went to quarantine.
/// `others_have_all` is asked when the content is written.
Result<bool> rebuild_file(const RebuildPlace& place, const WriteContent& content,
                          const std::function<bool()>& others_have_all);
/// The same for a segment or copy.
Result<bool> rebuild_segment(const RebuildPlace& place, const SegmentOutline& outline,
                             BlockSearch& blocks);
/// The same for a manifest that another node has.
Result<bool> rebuild_manifest(const RebuildPlace& place, std::span<const std::byte> bytes);

}  // namespace belay::inspect
