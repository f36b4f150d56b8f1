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
/// However little memory there is.
constexpr std::uint64_t kLeastChapterBlocks = 64;

/// Tells chapters apart.
std::uint64_t digest_of(const Chapter& chapter) {
  std::uint64_t digest = chapter.first_source;
  const auto add = [&](std::uint64_t value) {
    digest = (digest ^ value) * 0x9E3779B97F4A7C15u;
    digest ^= digest >> 32;
  };
  for (std::size_t i = 0; i < chapter.sources.size(); ++i)
    for (std::size_t j = 0; j < chapter.sources[i].blocks.size(); ++j) {
      const store::StoredBlock& block = chapter.sources[i].blocks[j];
      add(block.fingerprint.low);
      add(block.fingerprint.high);
      add(block.length + (std::uint64_t{chapter.plan.entries[i][j]} << 32));
    }
  return digest;
}

/// The chapters of a draft, one at a time.
class Reading {
 public:
  Reading(const Draft& draft, const std::atomic<bool>& cancelled)
      : draft_(draft), cancelled_(cancelled) {}

  const Chapter& chapter() const { return chapter_; }
  /// Entries of the chapters before it.
  std::uint64_t first_entry() const { return first_entries_[number_]; }
  /// Of all chapters. REQUIRES: each was opened.
  std::uint64_t entries() const { return first_entries_.back(); }

  Result<void> open(std::size_t number) {
    if (is_open_ && number == number_) return {};
    if (number == draft_.chapters)
      return fail(Code::corruption, "there are fewer blocks than a rank has told of");
    if (cancelled_.load(std::memory_order_relaxed))
      return fail(Code::invalid_argument, "the session ended before");
    is_open_ = false;
    chapter_ = {};  // before the next is made: there is room for one
    BELAY_ASSIGN(chapter_, draft_.chapter(number));
    is_open_ = true;
    number_ = number;
    const std::uint64_t digest = digest_of(chapter_);
    // The first time they come in order.
    if (digests_.size() == number) {
      digests_.push_back(digest);
      first_entries_.push_back(first_entries_.back() + chapter_.plan.blocks.size());
    }
    // What is verified, when extents are made of it, is what the others were told, too.
    if (digest != digests_[number])
      return fail(Code::corruption, "what a rank tells of its segments has changed meanwhile");
    if (entries() >= format::kNotInBundle)
      return fail(Code::unsupported, "more than {} blocks in a bundle; choose a larger `block`",
                  format::kNotInBundle);
    return {};
  }
  /// After it was last asked for: what only the rider needs.
  void drop_entries() {
    if (draft_.chapters == 1) chapter_.plan.entries = {};
  }

 private:
  const Draft& draft_;
  const std::atomic<bool>& cancelled_;
  Chapter chapter_;
  std::size_t number_ = 0;
  bool is_open_ = false;
  std::vector<std::uint64_t> first_entries_ = {0};
  std::vector<std::uint64_t> digests_;
};

/// Goes through the blocks of all chapters, in order: those of the sources, or those of the plans.
/// After a failure it gives nothing that counts.
class Walk {
 public:
  explicit Walk(Reading& reading) : reading_(reading), result_(reading.open(0)) {}

  const Result<void>& result() const { return result_; }

  format::BundledBlock next_of_sources() {
    const Chapter& chapter = reading_.chapter();
    while (result_ &&
           (source_ == chapter.sources.size() || at_ == chapter.sources[source_].blocks.size()))
      source_ < chapter.sources.size() ? begin_source() : begin_chapter();
    if (!result_) return {};
    const store::StoredBlock& block = chapter.sources[source_].blocks[at_];
    const std::uint32_t entry = chapter.plan.entries[source_][at_++];
    const bool is_in = entry != format::kNotInBundle;
    return {block.fingerprint, block.length,
            is_in ? static_cast<std::uint32_t>(reading_.first_entry() + entry) : entry};
  }

  format::IndexEntry next_of_plans() {
    const Chapter& chapter = reading_.chapter();
    while (result_ && at_ == chapter.plan.blocks.size()) begin_chapter();
    if (!result_) return {};
    const PlannedBlock& planned = chapter.plan.blocks[at_++];
    const store::StoredBlock& block = chapter.sources[planned.source].blocks[planned.block];
    return {block.fingerprint, block.length};
  }

 private:
  void begin_source() {
    ++source_;
    at_ = 0;
  }
  void begin_chapter() {
    result_ = reading_.open(++chapter_);
    source_ = at_ = 0;
  }

  Reading& reading_;
  Result<void> result_;
  std::size_t chapter_ = 0;
  std::size_t source_ = 0;
  std::size_t at_ = 0;
};

class BundleWriter {
 public:
  BundleWriter(const Tools& tools, Draft draft, std::optional<std::size_t>& damaged)
      : tools_(tools),
        draft_(std::move(draft)),
        reading_(draft_, tools.cancelled),
        damaged_(damaged),
        extents_(tools.chooser, tools.clock) {}

  Result<WrittenBundle> write(const std::string& name, format::SegmentHeader header) {
    BELAY_ASSIGN(memory_, os::AlignedMemory::allocate(tools_.portions.write_bytes));
    BELAY_ASSIGN(auto created, store::FileWriter::create(tools_.tier, name));
    file_.emplace(std::move(created));
    file_->lend(memory_.bytes());
    format::Rider rider;
    rider.segments = draft_.segments;
    for (const MemberManifest& manifest : draft_.manifests)
      rider.manifests.push_back({manifest.rank, manifest.bytes});
    header.encoded = true;
    header.rider_bytes = rider.bytes();
    BELAY_TRY(file_->append(format::encode_segment_header(header)));
    BELAY_TRY(write_rider(rider));
    // Their memory was counted once, and is for extents from here on.
    draft_.manifests = {};
    reading_.drop_entries();
    BELAY_TRY(write_extents());
    BELAY_TRY(write_end(header));
    written_.file_bytes = file_->offset();
    // Where the kernel has only taken the bytes, making them durable is the writing.
    const std::uint64_t start = tools_.clock.now_ns();
    BELAY_TRY(file_->finish());
    const std::uint64_t finish_ns = tools_.clock.now_ns() - start;
    written_.bandwidth =
        store::bandwidth_of(extents_.encoded_bytes(), extents_.write_ns() + finish_ns);
    return written_;
  }

 private:
  const Source& source_of(const PlannedBlock& block) const {
    return reading_.chapter().sources[block.source];
  }
  const store::StoredBlock& stored(const PlannedBlock& block) const {
    return source_of(block).blocks[block.block];
  }
  /// Among all sources of the bundle.
  std::size_t number_of(const PlannedBlock& block) const {
    return reading_.chapter().first_source + block.source;
  }

  Result<void> write_rider(const format::Rider& rider) {
    BELAY_TRY(file_->append(format::encode_rider_tables(rider)));
    Walk walk(reading_);
    for (const format::BundledSegment& segment : rider.segments) {
      BELAY_TRY(format::encode_bundled_blocks(*file_, segment.blocks,
                                              [&] { return walk.next_of_sources(); }));
      BELAY_TRY(walk.result());
    }
    const std::vector<std::byte> zeros(rider.manifest_offset(0) - file_->offset());
    BELAY_TRY(file_->append(zeros));
    for (const MemberManifest& manifest : draft_.manifests) {
      const std::uint64_t begin = file_->offset();
      BELAY_TRY(manifest.copy(*file_));
      if (file_->offset() - begin != manifest.bytes)
        return fail(Code::corruption, "the manifest of rank {} has {} bytes instead of {}",
                    manifest.rank, file_->offset() - begin, manifest.bytes);
    }
    return {};
  }

  Result<void> write_extents() {
    // Of the only chapter. Once extents are on their way, the list is another thread's.
    extents_.reserve(reading_.chapter().plan.extents.size());
    Conveyor conveyor(
        tools_.encoders, tools_.portions.parcels,
        [this](const store::RawExtent& raw, codec::Workspace& workspace, Bytes room) {
          return store::encode_extent(tools_.chooser, tools_.clock, raw, workspace,
                                      std::move(room));
        },
        [this](const store::RawExtent& raw, const store::EncodedExtent& encoded) {
          return extents_.append(*file_, raw, encoded);
        });
    for (std::size_t i = 0; i < draft_.chapters; ++i) {
      BELAY_TRY(reading_.open(i));
      BELAY_TRY(put_chapter(conveyor));
    }
    return conveyor.finish();
  }

  Result<void> put_chapter(Conveyor& conveyor) {
    const BundlePlan& plan = reading_.chapter().plan;
    written_.raw_bytes += plan.raw_bytes;
    for (const PlannedExtent& extent : plan.extents) {
      if (tools_.cancelled.load(std::memory_order_relaxed))
        return fail(Code::invalid_argument, "the session ended before");
      BELAY_ASSIGN(auto parcel, fetch(plan, extent, conveyor.spare()));
      BELAY_TRY(conveyor.put(std::move(parcel)));
    }
    return {};
  }

  Result<void> write_end(const format::SegmentHeader& header) {
    Walk walk(reading_);
    const auto ended =
        format::encode_segment_end(*file_, header, extents_.extents(), reading_.entries(),
                                   [&] { return walk.next_of_plans(); });
    return walk.result() ? ended : walk.result();
  }

  Result<Parcel> fetch(const BundlePlan& plan, const PlannedExtent& extent, Bytes room) {
    const PlannedVariable& variable = plan.variable_of(extent);
    Parcel parcel{variable.name, variable.elements, std::move(room), extent.count};
    const auto blocks = std::span(plan.blocks).subspan(extent.first, extent.count);
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
          {number_of(blocks[first]), begin, std::span(parcel.raw).subspan(at, end - begin)});
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
      if (found[i] != stored(blocks[i]).fingerprint) {
        damaged_ = number_of(blocks[i]);
        return fail(Code::corruption, "{}: the block at byte {} is damaged",
                    format::segment_name(source_of(blocks[i]).id), stored(blocks[i]).offset);
      }
    return {};
  }

  const Tools& tools_;
  Draft draft_;
  Reading reading_;
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

std::uint64_t most_chapter_blocks(std::uint64_t memory_bytes) {
  // Of tables, half is for those of a chapter on their way: from a rank, and sorted into a plan.
  return std::max(most_planning_bytes(memory_bytes) / 2 / kPlannedBlockBytes, kLeastChapterBlocks);
}

Result<WrittenBundle> write_bundle(const Tools& tools, const std::string& name,
                                   format::SegmentHeader header, Draft draft,
                                   std::optional<std::size_t>& damaged) {
  return BundleWriter(tools, std::move(draft), damaged).write(name, header);
}

}  // namespace belay::aggregate
