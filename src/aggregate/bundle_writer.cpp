// SPDX-License-Identifier: Apache-2.0
#include "aggregate/bundle_writer.hpp"

#include "aggregate/conveyor.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "os/memory.hpp"
#include "store/file_writer.hpp"

#include <algorithm>

namespace belay::aggregate {
namespace {

constexpr std::uint64_t kMostWriteBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kLeastWriteBytes = std::uint64_t{64} << 10;
constexpr std::uint64_t kParcels = 6;       ///< being fetched, encoded and written
constexpr std::uint64_t kLeastParcels = 2;  ///< being fetched, and all else
/// A parcel takes its bytes raw, encoded, and what reading whole pages or a message takes.
constexpr std::uint64_t kParcelTimes = 3;
/// What compressors keep for themselves in each thread that encodes.
constexpr std::uint64_t kEncoderBytes = std::uint64_t{2} << 20;
/// More of them are worth more than larger ones.
constexpr std::uint64_t kGoodExtentBytes = std::uint64_t{512} << 10;

// Of a block of a source while it is planned: what a source says about it, its place among all
// contents, its entry, and its place in the bundle; and of extents. Of these the entry and the
// place among contents go before extents come.
constexpr std::uint64_t kPlannedBlockBytes = 60;
constexpr std::uint64_t kBlockBytes = 48;

class BundleWriter {
 public:
  BundleWriter(const Tools& tools, const std::vector<Source>& sources, BundlePlan plan,
               std::optional<std::size_t>& damaged)
      : tools_(tools),
        sources_(sources),
        plan_(std::move(plan)),
        damaged_(damaged),
        extents_(tools.chooser, tools.clock) {}

  Result<WrittenBundle> write(const std::string& name, format::SegmentHeader header,
                              std::vector<MemberManifest> manifests) {
    BELAY_ASSIGN(memory_, os::AlignedMemory::allocate(tools_.portions.write_bytes));
    BELAY_ASSIGN(auto created, store::FileWriter::create(tools_.tier, name));
    file_.emplace(std::move(created));
    file_->lend(memory_.bytes());
    const format::Rider rider = make_rider(manifests);
    header.encoded = true;
    header.rider_bytes = rider.bytes();
    BELAY_TRY(file_->append(format::encode_segment_header(header)));
    BELAY_TRY(write_rider(rider, manifests));
    manifests = {};  // their memory was counted once, and is for extents from here on
    plan_.entries = {};
    BELAY_TRY(write_extents());
    std::size_t next = 0;
    BELAY_TRY(format::encode_segment_end(*file_, header, extents_.extents(), plan_.blocks.size(),
                                         [&] { return entry_of(plan_.blocks[next++]); }));
    written_.file_bytes = file_->offset();
    written_.raw_bytes = plan_.raw_bytes;
    // Where the kernel has only taken the bytes, making them durable is the writing.
    const std::uint64_t start = tools_.clock.now_ns();
    BELAY_TRY(file_->finish());
    const std::uint64_t finish_ns = tools_.clock.now_ns() - start;
    written_.bandwidth =
        store::bandwidth_of(extents_.encoded_bytes(), extents_.write_ns() + finish_ns);
    return written_;
  }

 private:
  const store::StoredBlock& stored(const PlannedBlock& block) const {
    return sources_[block.source].blocks[block.block];
  }
  format::IndexEntry entry_of(const PlannedBlock& block) const {
    return {stored(block).fingerprint, stored(block).length};
  }

  format::Rider make_rider(const std::vector<MemberManifest>& manifests) const {
    format::Rider rider;
    for (const Source& source : sources_)
      rider.segments.push_back({source.id, source.block_bytes, source.blocks.size()});
    for (const MemberManifest& manifest : manifests)
      rider.manifests.push_back({manifest.rank, manifest.bytes.size()});
    return rider;
  }

  Result<void> write_rider(const format::Rider& rider,
                           const std::vector<MemberManifest>& manifests) {
    BELAY_TRY(file_->append(format::encode_rider_tables(rider)));
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const auto& all = sources_[i].blocks;
      std::size_t next = 0;
      BELAY_TRY(format::encode_bundled_blocks(*file_, all.size(), [&] {
        const store::StoredBlock& block = all[next];
        return format::BundledBlock{block.fingerprint, block.length, plan_.entries[i][next++]};
      }));
    }
    const std::vector<std::byte> zeros(rider.manifest_offset(0) - file_->offset());
    BELAY_TRY(file_->append(zeros));
    for (const MemberManifest& manifest : manifests) BELAY_TRY(file_->append(manifest.bytes));
    return {};
  }

  Result<void> write_extents() {
    extents_.reserve(plan_.extents.size());
    Conveyor conveyor(
        tools_.encoders, tools_.portions.parcels,
        [this](const store::RawExtent& raw, codec::Workspace& workspace, Bytes room) {
          return store::encode_extent(tools_.chooser, tools_.clock, raw, workspace,
                                      std::move(room));
        },
        [this](const store::RawExtent& raw, const store::EncodedExtent& encoded) {
          return extents_.append(*file_, raw, encoded);
        });
    for (const PlannedExtent& extent : plan_.extents) {
      if (tools_.cancelled.load(std::memory_order_relaxed))
        return fail(Code::invalid_argument, "the session ended before");
      BELAY_ASSIGN(auto parcel, fetch(extent, conveyor.spare()));
      BELAY_TRY(conveyor.put(std::move(parcel)));
    }
    return conveyor.finish();
  }

  Result<Parcel> fetch(const PlannedExtent& extent, Bytes room) {
    const PlannedVariable& variable = plan_.variable_of(extent);
    Parcel parcel{variable.name, variable.elements, std::move(room), extent.count};
    const auto blocks = std::span(plan_.blocks).subspan(extent.first, extent.count);
    std::uint64_t bytes = 0;
    for (const PlannedBlock& block : blocks) bytes += stored(block).length;
    parcel.raw.resize(bytes);
    std::vector<Piece> pieces;
    std::uint64_t at = 0;
    for (std::size_t first = 0; first < blocks.size();) {
      // Neighbours in the file are read at once.
      std::size_t last = first + 1;
      while (last < blocks.size() && blocks[last].source == blocks[first].source &&
             stored(blocks[last]).offset == stored(blocks[last - 1]).end())
        ++last;
      const std::uint64_t begin = stored(blocks[first]).offset;
      const std::uint64_t end = stored(blocks[last - 1]).end();
      pieces.push_back(
          {blocks[first].source, begin, std::span(parcel.raw).subspan(at, end - begin)});
      at += end - begin;
      first = last;
    }
    BELAY_TRY(tools_.read(pieces, damaged_));
    BELAY_TRY(verify(blocks, parcel.raw));
    return parcel;
  }

  Result<void> verify(std::span<const PlannedBlock> blocks, std::span<const std::byte> raw) {
    std::vector<std::span<const std::byte>> contents;
    std::uint64_t at = 0;
    for (const PlannedBlock& block : blocks) {
      contents.push_back(raw.subspan(at, stored(block).length));
      at += stored(block).length;
    }
    std::vector<Fingerprint> found(contents.size());
    tools_.name(contents, found);
    for (std::size_t i = 0; i < blocks.size(); ++i)
      if (found[i] != stored(blocks[i]).fingerprint)
        return give_up(
            blocks[i].source,
            Error(Code::corruption, fmt::format("{}: the block at byte {} is damaged",
                                                format::segment_name(sources_[blocks[i].source].id),
                                                stored(blocks[i]).offset)));
    return {};
  }

  Unexpected give_up(std::size_t source, const Error& error) {
    damaged_ = source;
    return Unexpected(error);
  }

  const Tools& tools_;
  const std::vector<Source>& sources_;
  BundlePlan plan_;
  std::optional<std::size_t>& damaged_;
  store::ExtentWriter extents_;
  os::AlignedMemory memory_;
  std::optional<store::FileWriter> file_;
  WrittenBundle written_;
};

}  // namespace

std::uint64_t planning_bytes(std::uint64_t manifest_bytes, std::uint64_t blocks) {
  return manifest_bytes + kPlannedBlockBytes * blocks;
}

std::uint64_t most_planning_bytes(std::uint64_t memory_bytes) {
  // Extents of full size, or half of it all.
  constexpr std::uint64_t kEnough = kParcels * kParcelTimes * store::kExtentBytes;
  return std::max(memory_bytes / 2, memory_bytes - std::min(memory_bytes, kEnough));
}

Portions divide_memory(std::uint64_t memory_bytes, std::uint64_t blocks, std::uint32_t block_bytes,
                       unsigned encoders) {
  const std::uint64_t tables = kBlockBytes * blocks;
  std::uint64_t left = std::max(memory_bytes - std::min(memory_bytes, tables), memory_bytes / 2);
  left -= std::min(left / 4, encoders * kEncoderBytes);
  Portions portions;
  portions.write_bytes = std::clamp(left / 8 / os::kDirectAlignment * os::kDirectAlignment,
                                    kLeastWriteBytes, kMostWriteBytes);
  const std::uint64_t for_extents = (left - std::min(left, portions.write_bytes)) / kParcelTimes;
  portions.parcels = std::clamp(for_extents / kGoodExtentBytes, kLeastParcels + 1, kParcels);
  portions.extent_bytes = std::clamp<std::uint64_t>(for_extents / portions.parcels, kMinBlockBytes,
                                                    store::kExtentBytes);
  // An extent has one block at least, however large that is.
  if (block_bytes > portions.extent_bytes)
    portions.parcels = std::clamp(for_extents / block_bytes, kLeastParcels, portions.parcels);
  return portions;
}

Result<WrittenBundle> write_bundle(const Tools& tools, const std::string& name,
                                   format::SegmentHeader header, const std::vector<Source>& sources,
                                   BundlePlan plan, std::vector<MemberManifest> manifests,
                                   std::optional<std::size_t>& damaged) {
  return BundleWriter(tools, sources, std::move(plan), damaged)
      .write(name, header, std::move(manifests));
}

}  // namespace belay::aggregate
