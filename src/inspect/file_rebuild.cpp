// SPDX-License-Identifier: Apache-2.0
// checksum.hpp must come before anything that includes xxhash.h.
#include "format/checksum.hpp"

#include "inspect/file_rebuild.hpp"

#include "base/try.hpp"
#include "format/names.hpp"
#include "inspect/quarantine.hpp"
#include "store/file_writer.hpp"

#include <algorithm>

namespace belay::inspect {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{4} << 20;

using Checksum = format::Checksum128;

class ChecksummedWriter final : public ByteSink {
 public:
  explicit ChecksummedWriter(store::FileWriter& writer) : writer_(writer) {}
  Result<void> append(std::span<const std::byte> bytes) override {
    checksum_.update(bytes);
    return writer_.append(bytes);
  }
  std::uint64_t offset() const override { return writer_.offset(); }
  Checksum::Value digest() { return checksum_.digest(); }

 private:
  store::FileWriter& writer_;
  Checksum checksum_;
};

Result<void> write_segment(ByteSink& writer, const SegmentOutline& outline, BlockSearch& blocks) {
  BELAY_TRY(writer.append(format::encode_segment_header(outline.header)));
  for (std::size_t i = 0; i < outline.entries.size(); ++i) {
    if (!outline.present[i]) continue;
    const auto& [fingerprint, length] = outline.entries[i];
    BELAY_ASSIGN(const auto bytes, blocks.read({fingerprint, length}));
    BELAY_TRY(writer.append(bytes));
  }
  const auto extents = outline.extents();
  auto entry = outline.entries.begin();
  return format::encode_segment_end(writer, outline.header, extents, outline.entries.size(),
                                    [&] { return *entry++; });
}

/// The checksum of what a writer was given.
Result<Checksum::Value> write(store::Tier& tier, const std::string& name,
                              const WriteContent& content) {
  BELAY_ASSIGN(auto buffer, os::AlignedMemory::allocate(kBufferBytes));
  BELAY_ASSIGN(auto file, store::FileWriter::create(tier, name));
  file.lend(buffer.bytes());
  ChecksummedWriter writer(file);
  BELAY_TRY(content(writer));
  const auto checksum = writer.digest();
  BELAY_TRY(file.finish());
  return checksum;
}

/// corruption if the file is not what was written to it.
Result<void> compare(store::Tier& tier, const std::string& name, const Checksum::Value& expected) {
  BELAY_ASSIGN(auto buffer, os::AlignedMemory::allocate(kBufferBytes));
  BELAY_ASSIGN(const auto file, tier.open(name));
  Checksum found;
  for (std::uint64_t offset = 0;;) {
    BELAY_ASSIGN(const std::size_t got, file->read(offset, buffer.bytes()));
    found.update(buffer.bytes().first(got));
    if (got < buffer.bytes().size()) break;
    offset += got;
  }
  if (found.digest() == expected) return {};
  return fail(Code::io, "{}/{}: what was written does not come back; the disk is not to be trusted",
              tier.place(), name);
}

Result<void> remove_if_there(store::Tier& tier, const std::string& name) {
  auto removed = tier.remove(name);
  if (!removed && removed.error().code() != Code::not_found) return removed;
  return {};
}

/// The temporary file gets its name.
Result<bool> put_in_place(const RebuildPlace& place, bool others_have_all) {
  const bool moves = place.damaged && others_have_all;
  if (moves) {
    BELAY_TRY(move_to_quarantine(place.files, place.tier.place(), place.name));
  }
  BELAY_TRY(place.tier.publish(format::temporary_name(place.name), place.name,
                               /*exclusive=*/!place.damaged));
  return moves;
}

}  // namespace

Result<bool> rebuild_file(const RebuildPlace& place, const WriteContent& content,
                          const std::function<bool()>& others_have_all) {
  const std::string temporary = format::temporary_name(place.name);
  BELAY_TRY(remove_if_there(place.tier, temporary));
  auto written = write(place.tier, temporary, content);
  auto verified = written ? compare(place.tier, temporary, *written)
                          : Result<void>(Unexpected(written.error()));
  if (!verified) {
    (void)place.tier.remove(temporary);  // the first error is the one to tell
    return Unexpected(verified.error());
  }
  return put_in_place(place, others_have_all());
}

Result<bool> rebuild_segment(const RebuildPlace& place, const SegmentOutline& outline,
                             BlockSearch& blocks) {
  return rebuild_file(
      place, [&](ByteSink& sink) { return write_segment(sink, outline, blocks); },
      [&] { return !blocks.needed_last(); });
}

Result<bool> rebuild_manifest(const RebuildPlace& place, std::span<const std::byte> bytes) {
  BELAY_TRY(store::prepare_whole(place.tier, place.name, bytes));
  BELAY_TRY(compare(place.tier, format::temporary_name(place.name), Checksum::of(bytes)));
  return put_in_place(place, /*others_have_all=*/true);
}

}  // namespace belay::inspect
