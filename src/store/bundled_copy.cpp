// SPDX-License-Identifier: Apache-2.0
#include "store/bundled_copy.hpp"

#include "base/try.hpp"
#include "format/names.hpp"
#include "format/vector_sink.hpp"
#include "format/wire.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace belay::store {
namespace {

class ReadOnlyFile : public os::File {
 public:
  Result<void> write(std::uint64_t, std::span<const std::byte>) override { return refuse(); }
  Result<void> sync() override { return refuse(); }
  Result<void> reserve(std::uint64_t) override { return refuse(); }
  Result<void> truncate(std::uint64_t) override { return refuse(); }
  Result<void> close() override { return {}; }

 private:
  static Unexpected refuse() { return fail(Code::unsupported, "a bundle is for reading only"); }
};

class ManifestFile final : public ReadOnlyFile {
 public:
  ManifestFile(std::shared_ptr<Bundle> bundle, std::size_t manifest)
      : bundle_(std::move(bundle)), manifest_(manifest) {}
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override {
    return bundle_->read_manifest(manifest_, offset, bytes);
  }
  Result<std::uint64_t> size() override { return bundle_->rider().manifests[manifest_].bytes; }

 private:
  std::shared_ptr<Bundle> bundle_;
  std::size_t manifest_;
};

/// Counts from the end of a payload that is elsewhere.
class TailSink final : public ByteSink {
 public:
  explicit TailSink(std::uint64_t begin) : begin_(begin) {}
  Result<void> append(std::span<const std::byte> bytes) override { return sink_.append(bytes); }
  std::uint64_t offset() const override { return begin_ + sink_.offset(); }
  std::vector<std::byte>& bytes() { return sink_.bytes(); }

 private:
  std::uint64_t begin_;
  format::VectorSink sink_;
};

constexpr std::uint32_t kInFile = ~std::uint32_t{0};  ///< in none of the bundles

/// A block that is in one of the bundles, or in the file.
struct Present {
  std::uint64_t begin = 0;  ///< in the copy
  std::uint32_t length = 0;
  std::uint32_t bundle = 0;
  std::uint32_t entry = 0;
  std::uint64_t offset = 0;  ///< in the file

  std::uint64_t end() const { return begin + length; }
};

class CopyFile final : public ReadOnlyFile {
 public:
  CopyFile(std::vector<std::shared_ptr<Bundle>> bundles, std::optional<SegmentFile> file,
           std::vector<Present> blocks, std::vector<std::byte> front, std::vector<std::byte> tail)
      : bundles_(std::move(bundles)),
        file_(std::move(file)),
        blocks_(std::move(blocks)),
        front_(std::move(front)),
        tail_(std::move(tail)),
        tail_begin_(blocks_.empty() ? front_.size() : blocks_.back().end()) {}

  ~CopyFile() override {
    for (const auto& bundle : bundles_) bundle->release();
  }

  Result<std::uint64_t> size() override { return tail_begin_ + tail_.size(); }
  bool decodes() const override { return true; }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override {
    const std::uint64_t all = tail_begin_ + tail_.size();
    const std::uint64_t left = all - std::min(offset, all);
    bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), left));
    copy_part(front_, 0, offset, bytes);
    copy_part(tail_, tail_begin_, offset, bytes);
    BELAY_TRY(read_blocks(offset, bytes));
    return bytes.size();
  }

 private:
  static void copy_part(const std::vector<std::byte>& from, std::uint64_t begin,
                        std::uint64_t offset, std::span<std::byte> bytes) {
    const std::uint64_t first = std::max(begin, offset);
    const std::uint64_t last = std::min(begin + from.size(), offset + bytes.size());
    if (first < last)
      std::memcpy(bytes.data() + (first - offset), from.data() + (first - begin), last - first);
  }

  Result<void> read_blocks(std::uint64_t offset, std::span<std::byte> bytes) {
    const std::uint64_t end = offset + bytes.size();
    auto next = std::upper_bound(blocks_.begin(), blocks_.end(), offset,
                                 [](std::uint64_t at, const Present& b) { return at < b.end(); });
    while (next != blocks_.end() && next->begin < end) {
      // Blocks that are neighbours in the bundle too are read at once.
      auto last = next;
      while (last + 1 != blocks_.end() && (last + 1)->begin < end && continues(*last, *(last + 1)))
        ++last;
      const std::uint64_t from = std::max(next->begin, offset);
      const std::uint64_t to = std::min(last->end(), end);
      BELAY_TRY(read_run(*next, from - next->begin, bytes.subspan(from - offset, to - from)));
      next = last + 1;
    }
    return {};
  }

  static bool continues(const Present& block, const Present& next) {
    if (next.bundle != block.bundle) return false;
    return block.bundle == kInFile ? next.offset == block.offset + block.length
                                   : next.entry == block.entry + 1;
  }

  /// From `skip` in the first block on.
  Result<void> read_run(const Present& first, std::uint64_t skip, std::span<std::byte> bytes) {
    if (first.bundle != kInFile)
      return bundles_[first.bundle]->read_entry(first.entry, skip, bytes);
    const std::uint64_t begin = first.offset + skip;
    BELAY_ASSIGN(const auto pages, read_pages(file_->file(), begin, begin + bytes.size()));
    std::memcpy(bytes.data(), pages.bytes().data(), bytes.size());
    return {};
  }

  std::vector<std::shared_ptr<Bundle>> bundles_;
  std::optional<SegmentFile> file_;
  std::vector<Present> blocks_;
  std::vector<std::byte> front_;
  std::vector<std::byte> tail_;
  std::uint64_t tail_begin_;
};

/// Blocks of the segment, each from the first that has it.
struct Union {
  std::vector<format::IndexEntry> entries;
  std::vector<format::Extent> extents;
  std::vector<Present> present;
  std::uint64_t end = format::kSegmentHeaderBytes;
  bool partial = false;

  /// `in_file`: where the file has it; nullptr: it does not.
  void add(const format::BundledBlock& block, std::uint32_t bundle, const StoredBlock* in_file) {
    const bool there = block.entry != format::kNotInBundle || in_file != nullptr;
    const CodecId codec = there ? CodecId::raw : CodecId::absent;
    if (extents.empty() || extents.back().codec != codec)
      extents.push_back({.offset = end, .first_entry = entries.size(), .codec = codec});
    format::Extent& extent = extents.back();
    ++extent.entries;
    extent.raw_bytes += block.length;
    entries.push_back({block.fingerprint, block.length});
    partial = partial || !there;
    if (!there) return;
    extent.encoded_bytes += block.length;
    if (in_file != nullptr)
      present.push_back({end, block.length, kInFile, 0, in_file->offset});
    else
      present.push_back({end, block.length, bundle, block.entry});
    end += block.length;
  }
};

}  // namespace

Result<std::unique_ptr<os::File>> open_bundled_copy(std::vector<std::shared_ptr<Bundle>> bundles,
                                                    const SegmentId& id,
                                                    std::optional<SegmentFile> file) {
  std::vector<std::shared_ptr<Bundle>> readable;
  std::vector<std::vector<format::BundledBlock>> all;
  std::optional<Error> reason;
  // The newest first: it has again what was found damaged in an older one.
  for (auto bundle = bundles.rbegin(); bundle != bundles.rend(); ++bundle) {
    auto blocks = (*bundle)->blocks_of(*(*bundle)->rider().find(id));
    if (blocks && !all.empty() && blocks->size() != all.front().size())
      blocks = fail(Code::corruption, "{}: bundles differ in how many blocks it has",
                    format::segment_name(id));
    if (!blocks) {
      reason = blocks.error();
      continue;
    }
    readable.push_back(std::move(*bundle));
    all.push_back(*std::move(blocks));
  }
  if (all.empty()) return Unexpected(*reason);
  bundles = std::move(readable);
  if (file) file->sort_blocks();
  Union joined;
  for (std::size_t i = 0; i < all.front().size(); ++i) {
    std::uint32_t from = 0;
    while (from + 1 < all.size() && all[from][i].entry == format::kNotInBundle) ++from;
    const format::BundledBlock& block = all[from][i];
    joined.add(block, from, file ? file->find(block.fingerprint, block.length) : nullptr);
  }
  const Bundle& first = *bundles.front();
  format::SegmentHeader header = first.header();
  header.origin.key = id.key;
  header.origin.rank = id.rank;
  header.block_bytes = first.rider().segments[*first.rider().find(id)].block_bytes;
  header.encoded = false;
  header.rider_bytes = 0;
  header.partial = joined.partial;
  const auto encoded = format::encode_segment_header(header);
  TailSink tail(joined.end);
  std::size_t next = 0;
  BELAY_TRY(format::encode_segment_end(tail, header, joined.extents, joined.entries.size(),
                                       [&] { return joined.entries[next++]; }));
  return std::unique_ptr<os::File>(std::make_unique<CopyFile>(
      std::move(bundles), std::move(file), std::move(joined.present),
      std::vector<std::byte>(encoded.begin(), encoded.end()), std::move(tail.bytes())));
}

std::unique_ptr<os::File> open_carried_manifest(std::shared_ptr<Bundle> bundle, Rank rank) {
  const std::size_t manifest = *bundle->rider().find_manifest(rank);
  return std::make_unique<ManifestFile>(std::move(bundle), manifest);
}

}  // namespace belay::store
