// SPDX-License-Identifier: Apache-2.0
// For tests: a store in memory, made file by file, so that any state of it can be had.
#pragma once

#include "fingerprint/hasher.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/segment.hpp"
#include "format/vector_sink.hpp"
#include "inspect/store_view.hpp"
#include "os/memory_files.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace belay::inspect {

/// Two ranks on two nodes, /s/node-0 and /s/node-1; each version adds one block to the region "r"
/// of each rank, so that version V counts on the segments of 1 to V.
class StoreFixture : public testing::Test {
 protected:
  static constexpr std::uint32_t kBlock = 512;

  StoreFixture() {
    for (Rank rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(files_.make_directory(node(rank)));
      const auto record = format::encode_run_record(record_of(1));
      put(rank, "run-000001", record);
      put(rank, "settled", record);
    }
  }

  static std::string node(Rank rank) { return fmt::format("/s/node-{}", rank); }
  static RunRecord record_of(belay::Run run) {
    return {.store = {11, 22},
            .seed = 5,
            .run = run,
            .ranks = 2,
            .application = "test",
            .host = "here"};
  }
  static std::string path(const char* kind, Version version, Rank rank) {
    const VersionKey key{1, version};
    return node(rank) + "/" +
           (kind[0] == 's' ? format::segment_name({key, rank}) : format::manifest_name(key, rank));
  }

  void put(Rank rank, const std::string& name, std::span<const std::byte> bytes) {
    const auto file = files_.create(node(rank) + "/" + name, false);
    ASSERT_TRUE(file);
    ASSERT_TRUE((*file)->write(0, bytes));
    ASSERT_TRUE((*file)->sync());
    ASSERT_TRUE(files_.sync_directory(node(rank)));
  }
  void put_mark_of_close(Version last) {
    for (Rank rank = 0; rank < 2; ++rank)
      put(rank, format::closed_name({1, last}), format::encode_run_record(record_of(1)));
  }

  static std::vector<std::byte> content(Version version, Rank rank) {
    return std::vector<std::byte>(kBlock, static_cast<std::byte>(16 * version + rank));
  }
  static Origin origin(Version version, Rank rank) { return {{11, 22}, 5, {1, version}, rank, 2}; }

  void put_segment(Version version, Rank rank) {
    const format::SegmentHeader header{origin(version, rank), HashKind::xxh3, kBlock};
    const auto block = content(version, rank);
    format::VectorSink sink(format::encode_segment_header(header));
    ASSERT_TRUE(sink.append(block));
    const format::Extent extent{format::kSegmentHeaderBytes, kBlock, kBlock, 0, 1};
    ASSERT_TRUE(format::encode_segment_end(sink, header, std::span(&extent, 1), 1, [&] {
      return format::IndexEntry{fingerprint::make_hasher(HashKind::xxh3, 5)->hash(block), kBlock};
    }));
    put(rank, format::segment_name({{1, version}, rank}), sink.bytes());
  }
  void put_manifest(Version version, Rank rank) {
    Manifest manifest;
    manifest.origin = origin(version, rank);
    if (version > 1) manifest.parent = {1, version - 1};
    manifest.application = "test";
    manifest.block_bytes = kBlock;
    RegionRecord region;
    region.name = "r";
    region.type.kind = ElementKind::u8;
    region.shape = Shape(kBlock * version);
    region.bytes = kBlock * version;
    manifest.regions.push_back(std::move(region));
    for (Version v = 1; v <= version; ++v) {
      manifest.segments.push_back({{{1, v}, rank}, 4096});
      manifest.fingerprints.push_back(
          fingerprint::make_hasher(HashKind::xxh3, 5)->hash(content(v, rank)));
      manifest.holders.push_back(static_cast<std::uint8_t>(v - 1));
    }
    format::VectorSink sink;
    ASSERT_TRUE(format::encode_manifest(manifest, sink));
    put(rank, format::manifest_name({1, version}, rank), sink.bytes());
  }
  void put_version(Version version) {
    for (Rank rank = 0; rank < 2; ++rank) {
      put_segment(version, rank);
      put_manifest(version, rank);
    }
  }

  StoreView look() { return look(files_); }
  static StoreView look(os::Files& files) {
    auto view = StoreView::open(files, {"/s"});
    EXPECT_TRUE(view) << view.error().message();
    return *std::move(view);
  }

  os::MemoryFiles files_;
};

}  // namespace belay::inspect
