// SPDX-License-Identifier: Apache-2.0
#include "inspect/audited_file.hpp"

#include "base/try.hpp"
#include "inspect/source_files.hpp"

namespace belay::inspect {

AuditedFile AuditedFile::read(const StoreView& view, SegmentAudit& audit, const BlockSource& source,
                              std::optional<std::uint64_t> file_bytes,
                              const SegmentAudit::Advance& advance) {
  AuditedFile audited{.source = source, .file = {}, .lost = {}};
  auto opened = open_source(view, source, view.identities().front().store, file_bytes);
  if (!opened) {
    audited.lost = opened.error();
    return audited;
  }
  audited.file = *std::move(opened);
  auto bad = audit.find_bad_blocks(*audited.file, advance);
  if (bad)
    audited.bad = *std::move(bad);
  else
    audited.lost = bad.error();
  for (const store::StoredBlock& block : audited.bad) audited.bad_offsets.insert(block.offset);
  audited.file->sort_blocks();
  return audited;
}

std::string AuditedFile::name() const {
  return source.kind == FileKind::copy ? format::copy_name(source.id)
                                       : format::segment_name(source.id);
}

std::optional<Flaw> AuditedFile::damage(const StoreView& view) const {
  if (lost ? lost->code() == Code::not_found : bad.empty()) return {};
  return Flaw{.code = lost ? lost->code() : Code::corruption,
              .directory = view.nodes()[source.node].directory,
              .file = name(),
              .reason = lost ? lost->message()
                             : fmt::format("the block at byte {} is damaged", bad.front().offset),
              .rank = source.id.rank,
              .blocks = bad.size()};
}

bool AuditedFile::has_good(const BlockName& name) const {
  if (lost) return false;
  const store::StoredBlock* block = file->find(name.fingerprint, name.length);
  return block != nullptr && !bad_offsets.contains(block->offset);
}

}  // namespace belay::inspect
