// SPDX-License-Identifier: Apache-2.0
#include "session/needs_wire.hpp"

#include "format/wire.hpp"

namespace belay::session {
namespace {

void put_id(format::WireWriter& writer, const SegmentId& id) {
  writer.pair(id.key.run, id.key.version);
  writer.field(id.rank);
}

SegmentId get_id(format::WireReader& reader) {
  SegmentId id;
  id.key.run = reader.field<Run>();
  id.key.version = reader.field<Version>();
  id.rank = reader.field<Rank>();
  return id;
}

void put_retiring(format::WireWriter& writer, const vote::RetiringVersion& version) {
  writer.pair(version.key.run, version.key.version);
  writer.field(static_cast<std::uint8_t>(version.visible));
  writer.field(static_cast<std::uint8_t>(version.segments.has_value()));
  if (!version.segments) return;
  writer.field(static_cast<std::uint32_t>(version.segments->size()));
  for (const SegmentId& id : *version.segments) put_id(writer, id);
}

vote::RetiringVersion get_retiring(format::WireReader& reader) {
  vote::RetiringVersion version;
  version.key.run = reader.field<Run>();
  version.key.version = reader.field<Version>();
  version.visible = reader.field<std::uint8_t>() != 0;
  if (reader.field<std::uint8_t>() == 0) return version;
  version.segments.emplace();
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left)
    version.segments->push_back(get_id(reader));
  return version;
}

}  // namespace

std::vector<std::byte> encode_needs(const vote::Needs& needs, const std::vector<LostFile>& lost) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.pair(needs.unread.run, needs.unread.version);
  writer.field(static_cast<std::uint32_t>(needs.segments.size()));
  for (const SegmentId& id : needs.segments) put_id(writer, id);
  writer.field(static_cast<std::uint32_t>(needs.retiring.size()));
  for (const vote::RetiringVersion& version : needs.retiring) put_retiring(writer, version);
  for (const LostFile& file : lost) {
    put_id(writer, file.id);
    writer.field(static_cast<std::uint8_t>(file.kind));
    writer.field(file.place);
  }
  return bytes;
}

std::pair<vote::Needs, std::vector<LostFile>> decode_needs(std::span<const std::byte> bytes) {
  vote::Needs needs;
  std::vector<LostFile> lost;
  format::WireReader reader(bytes);
  needs.unread.run = reader.field<Run>();
  needs.unread.version = reader.field<Version>();
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left)
    needs.segments.insert(get_id(reader));
  for (auto left = reader.field<std::uint32_t>(); left > 0 && !reader.failed(); --left)
    needs.retiring.push_back(get_retiring(reader));
  while (reader.remaining() > 0) {
    LostFile file;
    file.id = get_id(reader);
    file.kind = static_cast<FileKind>(reader.field<std::uint8_t>());
    file.place = reader.field<catalog::Whereabouts::Place>();
    lost.push_back(file);
  }
  return {std::move(needs), std::move(lost)};
}

}  // namespace belay::session
