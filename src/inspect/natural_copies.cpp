// SPDX-License-Identifier: Apache-2.0
#include "inspect/natural_copies.hpp"

namespace belay::inspect {

bool NaturalCopies::have(SegmentAudit& audit, const Manifest& manifest, VersionKey key,
                         const BlockName& name) {
  if (!has_natural_copies(manifest, key)) return false;
  if (read_.insert(key).second) read(audit, key);
  return good_[{key, manifest.hash, manifest.origin.seed}].contains(name);
}

void NaturalCopies::read(SegmentAudit& audit, VersionKey key) {
  for (const BlockSource& source : sources_.files_of({key, kAnyRank})) {
    const auto audited = AuditedFile::read(view_, audit, source, {}, [](std::uint64_t) {});
    if (audited.lost) continue;
    const format::SegmentHeader& header = audited.file->header();
    auto& good = good_[{key, header.hash, header.origin.seed}];
    for (const store::StoredBlock& block : audited.file->blocks())
      if (!audited.bad_offsets.contains(block.offset))
        good.insert({block.fingerprint, block.length});
  }
}

}  // namespace belay::inspect
