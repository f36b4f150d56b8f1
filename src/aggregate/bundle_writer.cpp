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

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;
constexpr std::uint64_t kParcels = 6;  ///< being fetched, encoded and written

class BundleWriter {
 public:
  BundleWriter(const Tools& tools, const std::vector<Source>& sources, const BundlePlan& plan,
               std::optional<std::size_t>& damaged)
      : tools_(tools),
        sources_(sources),
        plan_(plan),
        damaged_(damaged),
        extents_(tools.chooser, tools.clock) {}

  Result<WrittenBundle> write(const std::string& name, format::SegmentHeader header,
                              const std::vector<MemberManifest>& manifests) {
    BELAY_ASSIGN(memory_, os::AlignedMemory::allocate(kWriteBytes));
    BELAY_ASSIGN(auto created, store::FileWriter::create(tools_.tier, name));
    file_.emplace(std::move(created));
    file_->lend(memory_.bytes());
    const format::Rider rider = make_rider(manifests);
    header.encoded = true;
    header.rider_bytes = rider.bytes();
    BELAY_TRY(file_->append(format::encode_segment_header(header)));
    BELAY_TRY(write_rider(rider, manifests));
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
      std::vector<format::BundledBlock> blocks;
      const auto& all = sources_[i].blocks;
      for (std::size_t j = 0; j < all.size(); ++j)
        blocks.push_back({all[j].fingerprint, all[j].length, plan_.entries[i][j]});
      BELAY_TRY(file_->append(format::encode_bundled_blocks(blocks)));
    }
    const std::vector<std::byte> zeros(rider.manifest_offset(0) - file_->offset());
    BELAY_TRY(file_->append(zeros));
    for (const MemberManifest& manifest : manifests) BELAY_TRY(file_->append(manifest.bytes));
    return {};
  }

  Result<void> write_extents() {
    Conveyor conveyor(
        tools_.encoders, kParcels,
        [this](const store::RawExtent& raw, codec::Workspace& workspace) {
          return store::encode_extent(tools_.chooser, tools_.clock, raw, workspace);
        },
        [this](const store::RawExtent& raw, const store::EncodedExtent& encoded) {
          return extents_.append(*file_, raw, encoded);
        });
    for (const PlannedExtent& extent : plan_.extents) {
      if (tools_.cancelled.load(std::memory_order_relaxed))
        return fail(Code::invalid_argument, "the session ended before");
      BELAY_ASSIGN(auto parcel, fetch(extent));
      BELAY_TRY(conveyor.put(std::move(parcel)));
    }
    return conveyor.finish();
  }

  Result<Parcel> fetch(const PlannedExtent& extent) {
    Parcel parcel{extent.variable, extent.elements, {}, static_cast<std::uint32_t>(extent.count)};
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
  const BundlePlan& plan_;
  std::optional<std::size_t>& damaged_;
  store::ExtentWriter extents_;
  os::AlignedMemory memory_;
  std::optional<store::FileWriter> file_;
  WrittenBundle written_;
};

}  // namespace

std::uint64_t extent_bytes_for(std::uint64_t memory_bytes) {
  // Raw, encoded, and what reading whole pages takes.
  return std::clamp<std::uint64_t>(memory_bytes / (3 * kParcels), kMinBlockBytes,
                                   store::kExtentBytes);
}

Result<WrittenBundle> write_bundle(const Tools& tools, const std::string& name,
                                   format::SegmentHeader header, const std::vector<Source>& sources,
                                   const BundlePlan& plan,
                                   const std::vector<MemberManifest>& manifests,
                                   std::optional<std::size_t>& damaged) {
  return BundleWriter(tools, sources, plan, damaged).write(name, header, manifests);
}

}  // namespace belay::aggregate
