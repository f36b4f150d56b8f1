// SPDX-License-Identifier: Apache-2.0
// Indexes and manifests that are read in parts say what they say as a whole.
#include "codec/choice.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/segment_maker_test.hpp"
#include "os/clock.hpp"
#include "os/memory.hpp"
#include "os/memory_files.hpp"
#include "store/extent_writer.hpp"
#include "store/manifest_table.hpp"
#include "store/segment_table.hpp"

#include <gtest/gtest.h>

#include <random>

namespace belay::store {
namespace {

constexpr StoreId kTableStore{11, 22};
constexpr SegmentId kTableId{{1, 7}, 3};

class TablesTest : public testing::Test {
 protected:
  TablesTest() {
    EXPECT_TRUE(files_.make_directory("/node"));
    tier_ = make_local_tier(files_, "/node");
  }

  static format::SegmentHeader header() {
    return {.origin = {kTableStore, 5, kTableId.key, kTableId.rank, 4}, .block_bytes = 512};
  }

  void put(const std::string& name, std::span<const std::byte> bytes) {
    (void)tier_->remove(name);
    const auto file = files_.create("/node/" + name, /*direct=*/false);
    EXPECT_TRUE(file && (*file)->write(0, bytes) && (*file)->close());
  }

  /// Blocks of all lengths; of a copy, some are absent.
  std::vector<format::MadeBlock> blocks(std::size_t count, bool partial) {
    std::vector<format::MadeBlock> made;
    for (std::size_t i = 0; i < count; ++i)
      made.push_back({{i, random_()},
                      std::vector<std::byte>(1 + random_() % 512, std::byte{1}),
                      !partial || i == 0 || random_() % 3 > 0});
    return made;
  }

  struct Told {
    Fingerprint fingerprint;
    std::uint32_t length = 0;
    std::uint64_t offset = 0;
    bool present = false;
    bool operator==(const Told&) const = default;
  };
  static std::vector<Told> tell(SegmentTable& table, std::uint64_t first, std::uint64_t count) {
    std::vector<Told> told;
    PageReader reader;
    EXPECT_TRUE(table.read(first, count, reader, [&](const StoredBlock& block, bool present) {
      told.push_back({block.fingerprint, block.length, present ? block.offset : 0, present});
    }));
    return told;
  }

  /// What SegmentFile says, and entries that are absent in between.
  void expect_the_same(FileKind kind, std::size_t entries) {
    auto file = SegmentFile::open(*tier_, kTableId, kTableStore, {}, kind);
    auto table = SegmentTable::open(*tier_, kTableId, kTableStore, kind);
    ASSERT_TRUE(file && table);
    ASSERT_EQ(table->entries(), entries);
    EXPECT_EQ(table->header(), file->header());
    const auto all = tell(*table, 0, entries);
    ASSERT_EQ(all.size(), entries);
    std::size_t next = 0;
    for (const Told& told : all) {
      if (!told.present) continue;
      ASSERT_LT(next, file->blocks().size());
      const StoredBlock& block = file->blocks()[next++];
      EXPECT_EQ(told, (Told{block.fingerprint, block.length, block.offset, true}));
    }
    EXPECT_EQ(next, file->blocks().size());
    for (int i = 0; i < 50; ++i) {
      const std::uint64_t first = random_() % entries;
      const std::uint64_t count = random_() % (entries - first + 1);
      const auto from = all.begin() + static_cast<std::ptrdiff_t>(first);
      ASSERT_EQ(tell(*table, first, count),
                std::vector<Told>(from, from + static_cast<std::ptrdiff_t>(count)));
    }
  }

  std::mt19937 random_{7};
  os::MemoryFiles files_;
  std::unique_ptr<Tier> tier_;
};

TEST_F(TablesTest, PartsOfAnIndexAreThoseOfTheWhole) {
  for (const std::size_t entries : {1u, 3u, 4095u, 4096u, 4097u, 9000u}) {
    put(format::segment_name(kTableId), format::make_segment(header(), blocks(entries, false)));
    expect_the_same(FileKind::segment, entries);
    put(format::copy_name(kTableId), format::make_segment(header(), blocks(entries, true)));
    expect_the_same(FileKind::copy, entries);
  }
}

TEST_F(TablesTest, PartsOfAnIndexOfEncodedExtentsAreThoseOfTheWhole) {
  codec::Chooser chooser({{}, "lz4", 1e6});
  const std::vector<std::byte> bytes(100 * 512, std::byte{4});
  auto head = header();
  head.encoded = true;
  {
    auto file = FileWriter::create(*tier_, format::segment_name(kTableId));
    auto memory = os::AlignedMemory::allocate(64 << 10);
    ASSERT_TRUE(file && memory);
    file->lend(memory->bytes());
    ExtentWriter extents(chooser, os::system_clock());
    ASSERT_TRUE(file->append(format::encode_segment_header(head)));
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(extents.append(*file, {"x", {}, bytes, 100}));
    std::uint64_t next = 0;
    ASSERT_TRUE(format::encode_segment_end(*file, head, extents.extents(), 3000, [&] {
      return format::IndexEntry{{next++, 1}, 512};
    }));
    ASSERT_TRUE(file->finish());
  }
  expect_the_same(FileKind::segment, 3000);
  auto table = SegmentTable::open(*tier_, kTableId, kTableStore);
  ASSERT_TRUE(table);
  std::vector<std::byte> read(512);
  PageReader reader;
  ASSERT_TRUE(reader.read(table->file(), tell(*table, 1500, 1).front().offset, read));
  EXPECT_EQ(read, std::vector<std::byte>(512, std::byte{4}));
}

TEST_F(TablesTest, AnIndexThatIsReadInPartsIsVerifiedFirst) {
  const auto bytes = format::make_segment(header(), blocks(1500, false));
  const std::string path = "/node/" + format::segment_name(kTableId);
  put(format::segment_name(kTableId), bytes);
  std::size_t refused = 0;
  for (std::size_t at = 0; at < bytes.size(); at += 397) {
    ASSERT_TRUE(files_.flip(path, 8 * at + at % 8));
    const auto file = SegmentFile::open(*tier_, kTableId, kTableStore, {});
    const auto table = SegmentTable::open(*tier_, kTableId, kTableStore);
    ASSERT_EQ(file.has_value(), table.has_value()) << at;
    if (!table) {
      EXPECT_EQ(table.error().code(), file.error().code());
      ++refused;
    }
    ASSERT_TRUE(files_.flip(path, 8 * at + at % 8));
  }
  EXPECT_GT(refused, 50u);
  EXPECT_FALSE(SegmentTable::open(*tier_, kTableId, StoreId{1, 1})) << "of another store";
}

Manifest manifest_with(std::uint64_t blocks, std::mt19937& random) {
  Manifest manifest;
  manifest.origin = {kTableStore, 5, kTableId.key, kTableId.rank, 4};
  manifest.block_bytes = 512;
  manifest.application = "tables";
  manifest.segments = {{{{1, 6}, 3}, 4096}, {{{1, 7}, 3}, 8192}};
  manifest.regions.push_back({"empty", {ElementKind::f64, 8, {}}, Shape(0), 0, 0});
  if (blocks > 0)
    manifest.regions.push_back(
        {"field", {ElementKind::f64, 8, {}}, Shape(blocks * 64), blocks * 512, 0});
  for (std::uint64_t i = 0; i < blocks; ++i) {
    manifest.fingerprints.push_back({random(), i});
    manifest.holders.push_back(static_cast<std::uint8_t>(random() % 2));
  }
  return manifest;
}

TEST_F(TablesTest, PartsOfAManifestAreThoseOfTheWhole) {
  const std::string name = format::manifest_name(kTableId.key, kTableId.rank);
  for (const std::uint64_t blocks : {0u, 1u, 4095u, 4096u, 4097u, 20000u}) {
    const Manifest manifest = manifest_with(blocks, random_);
    const auto bytes = format::encode_manifest(manifest);
    ASSERT_TRUE(bytes) << bytes.error().message();
    put(name, *bytes);
    PageReader reader;
    const auto table = ManifestTable::open(*tier_, name, reader);
    ASSERT_TRUE(table) << table.error().message();
    EXPECT_EQ(table->file_bytes(), bytes->size());
    EXPECT_EQ(table->head().regions.size(), manifest.regions.size());
    EXPECT_EQ(table->head().origin, manifest.origin);
    std::uint64_t next = 0;
    ASSERT_TRUE(table->each_block(
        reader, [&](std::uint64_t block, const Fingerprint& fingerprint, std::uint8_t holder) {
          EXPECT_EQ(block, next);
          EXPECT_EQ(fingerprint, manifest.fingerprints[next]);
          EXPECT_EQ(holder, manifest.holders[next++]);
        }));
    EXPECT_EQ(next, blocks);
    std::vector<std::byte> read(bytes->size());
    ASSERT_TRUE(table->read(0, read, reader));
    EXPECT_EQ(read, *bytes);
  }
}

TEST_F(TablesTest, AManifestThatIsReadInPartsIsVerifiedFirst) {
  const std::string name = format::manifest_name(kTableId.key, kTableId.rank);
  const auto bytes = format::encode_manifest(manifest_with(9000, random_));
  ASSERT_TRUE(bytes);
  put(name, *bytes);
  PageReader reader;
  for (std::size_t at = 0; at < bytes->size(); at += at < 400 ? 1 : 397) {
    ASSERT_TRUE(files_.flip("/node/" + name, 8 * at + at % 8));
    const auto table = ManifestTable::open(*tier_, name, reader);
    ASSERT_FALSE(table) << at;
    std::vector<std::byte> flipped(*bytes);
    flipped[at] ^= static_cast<std::byte>(1u << (at % 8));
    EXPECT_EQ(table.error().code(), format::decode_manifest(flipped).error().code()) << at;
    ASSERT_TRUE(files_.flip("/node/" + name, 8 * at + at % 8));
  }
  for (const std::size_t cut : {0u, 10u, 255u, 256u, 4096u, 8192u}) {
    put(name, std::span(*bytes).first(cut));
    const auto table = ManifestTable::open(*tier_, name, reader);
    ASSERT_FALSE(table) << cut;
    EXPECT_EQ(table.error().code(), Code::corruption) << table.error().message();
  }
}

}  // namespace
}  // namespace belay::store
