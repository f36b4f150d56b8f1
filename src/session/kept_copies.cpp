// SPDX-License-Identifier: Apache-2.0
#include "session/kept_copies.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "session/copy_extents.hpp"
#include "vote/claim.hpp"

#include <algorithm>
#include <map>

namespace belay::session {
namespace {

constexpr std::uint64_t kMostBufferBytes = std::uint64_t{1} << 20;
// What was verified is still in the cache when it is written, in pieces that need no buffer.
constexpr std::size_t kPieceBytes = std::size_t{128} << 10;

}  // namespace

KeptCopies::KeptCopies(Equipment& equipment, format::SegmentHeader header,
                       std::vector<Source> sources)
    : equipment_(equipment),
      header_(std::move(header)),
      sources_(std::move(sources)),
      copies_(sources_.size()) {}

std::unique_ptr<KeptCopies> KeptCopies::kept_before(Equipment& equipment,
                                                    format::SegmentHeader header,
                                                    const vote::Kept& kept) {
  std::map<Rank, Source> sources;
  for (const SegmentId& id : kept.copies) sources[id.rank].sent = {true};
  for (const SegmentId& id : kept.manifests) sources[id.rank].manifest = {std::byte{}};
  std::vector<Source> all;
  for (auto& [rank, source] : sources) {
    source.rank = rank;
    all.push_back(std::move(source));
  }
  return std::make_unique<KeptCopies>(equipment, std::move(header), std::move(all));
}

format::SegmentHeader KeptCopies::header_of(const Source& source) const {
  format::SegmentHeader header = header_;
  header.origin.rank = source.rank;
  header.partial = std::find(source.sent.begin(), source.sent.end(), false) != source.sent.end();
  return header;
}

Result<void> KeptCopies::start(const Source& source, Copy& copy) {
  const auto extents = extents_of(source.entries, source.sent);
  std::uint64_t payload = 0;
  for (const format::Extent& extent : extents) payload += extent.encoded_bytes;
  // No more than the whole file: there may be many small ones.
  const std::uint64_t file_bytes =
      format::segment_file_bytes(payload, extents.size(), source.entries.size());
  BELAY_ASSIGN(copy.buffer, os::AlignedMemory::allocate(std::min(file_bytes, kMostBufferBytes)));
  BELAY_ASSIGN(auto writer,
               store::FileWriter::create_large(equipment_.tier, format::copy_name(id_of(source))));
  copy.writer.emplace(std::move(writer));
  copy.writer->lend(copy.buffer.bytes());
  return copy.writer->append(format::encode_segment_header(header_of(source)));
}

Result<std::size_t> KeptCopies::verify_front(const Source& source, Copy& copy,
                                             std::span<const std::byte> bytes) {
  std::vector<fingerprint::Block> blocks;
  std::vector<Fingerprint> expected;
  std::size_t verified = 0;
  while (!bytes.empty() && verified < kPieceBytes) {
    while (copy.next_entry < source.entries.size() && !source.sent[copy.next_entry])
      ++copy.next_entry;
    if (copy.next_entry == source.entries.size() ||
        source.entries[copy.next_entry].length > bytes.size())
      return fail(Code::corruption, "rank {} sent more than it had announced", source.rank);
    const format::IndexEntry& entry = source.entries[copy.next_entry++];
    blocks.push_back(bytes.first(entry.length));
    expected.push_back(entry.fingerprint);
    bytes = bytes.subspan(entry.length);
    verified += entry.length;
  }
  std::vector<Fingerprint> found(blocks.size());
  equipment_.hasher.hash(blocks, found);
  if (found != expected)
    return fail(Code::invalid_argument,
                "a region of rank {} changed during checkpoint(); nobody may write protected "
                "memory between its entry and return",
                source.rank);
  return verified;
}

Result<void> KeptCopies::write(const Arrival& arrival) {
  const Source& source = sources_[arrival.source];
  Copy& copy = copies_[arrival.source];
  for (auto rest = arrival.bytes; !rest.empty();) {
    BELAY_ASSIGN(const std::size_t verified, verify_front(source, copy, rest));
    if (!copy.writer) BELAY_TRY(start(source, copy));
    BELAY_TRY(copy.writer->append_in_place(rest.first(verified)));
    rest = rest.subspan(verified);
  }
  return {};
}

Result<void> KeptCopies::finish_copy(const Source& source, Copy& copy) {
  const auto extents = extents_of(source.entries, source.sent);
  auto entry = source.entries.begin();
  BELAY_TRY(format::encode_segment_end(*copy.writer, header_of(source), extents,
                                       source.entries.size(), [&] { return *entry++; }));
  file_bytes_ += copy.writer->offset();
  return copy.writer->finish(planted(Mistake::skip_copy_sync));
}

Result<void> KeptCopies::finish() {
  if (sources_.empty()) return {};
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (copies_[i].writer) BELAY_TRY(finish_copy(sources_[i], copies_[i]));
  copies_.clear();
  for (const Source& source : sources_) {
    if (source.manifest.empty()) continue;
    const std::string name = format::manifest_name(header_.origin.key, source.rank);
    BELAY_TRY(store::prepare_whole(equipment_.tier, name, source.manifest));
    file_bytes_ += source.manifest.size();
  }
  return equipment_.tier.sync_names();
}

Result<void> KeptCopies::name_manifests() {
  if (sources_.empty()) return {};
  BELAY_TRY(vote::check_still_ours(equipment_.tier, header_.origin.key.run));
  for (Source& source : sources_) {
    if (source.manifest.empty()) continue;
    const std::string name = format::manifest_name(header_.origin.key, source.rank);
    BELAY_TRY(equipment_.tier.publish(format::temporary_name(name), name, /*exclusive=*/false));
    source.manifest = {std::byte{}};  // it was there; its bytes are not needed any more
  }
  return {};
}

void KeptCopies::clear_away() {
  copies_.clear();
  const vote::Kept files = kept();
  for (const SegmentId& id : files.copies) (void)equipment_.tier.remove(format::copy_name(id));
  for (const SegmentId& id : files.manifests) {
    const std::string name = format::manifest_name(id.key, id.rank);
    (void)equipment_.tier.remove(format::temporary_name(name));
    (void)equipment_.tier.remove(name);
  }
}

vote::Kept KeptCopies::kept() const {
  vote::Kept kept;
  for (const Source& source : sources_) {
    const bool any = std::find(source.sent.begin(), source.sent.end(), true) != source.sent.end();
    if (any) kept.copies.push_back(id_of(source));
    if (!source.manifest.empty()) kept.manifests.push_back(id_of(source));
  }
  return kept;
}

}  // namespace belay::session
