// SPDX-License-Identifier: Apache-2.0
// For tests: the files of a store with copies, made through the functions of format/. Any one of
// its two nodes may be lost.
//
// Two ranks on two nodes; each protects "field", four blocks of 512 bytes, the last one short:
//
//   version 1, rank 0: a s x c   its segment has all four; its copy on node 1 is complete
//   version 1, rank 1: b s x d   its segment has b x d; its copy on node 0 lacks x, and nothing of
//                                this rank has s: s and x are elsewhere, x for rank 0 as well
//   version 2, rank 0: A s x c   its segment has A; its copy on node 1 is complete
//   version 2, rank 1: b s x d   needs nothing new
//
// Every manifest lies on both nodes.
#pragma once

#include "fingerprint/hasher.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"
#include "format/segment_maker_test.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace belay::inspect {

struct MadeFile {
  std::string node;
  std::string name;
  std::vector<std::byte> bytes;
};

class CopiedStore {
 public:
  static constexpr std::uint32_t kBlock = 512;
  static constexpr Rank kRanks = 2;
  static constexpr const char* kApplication = "golden";

  static std::vector<MadeFile> files() {
    std::vector<MadeFile> made;
    for (const char* node : {"0", "1"}) {
      const RunRecord record = record_of();
      const auto bytes = format::encode_run_record(record);
      for (const std::string& name :
           {format::run_name(1), std::string(format::kSettledName), format::closed_name({1, 2})})
        made.push_back({node, name, bytes});
      for (const Manifest& manifest : manifests())
        made.push_back({node, format::manifest_name(manifest.origin.key, manifest.origin.rank),
                        format::encode_manifest(manifest).value()});
    }
    for (const auto& [node, id, letters] :
         {Stored{"0", kFirst, "asxc"}, Stored{"1", kOther, "bxd"}, Stored{"0", kSecond, "A"}})
      made.push_back({node, format::segment_name(id), segment(id, letters)});
    for (const auto& [node, id, letters] :
         {Stored{"1", kFirst, "asxc"}, Stored{"0", kOther, "b-d"}, Stored{"1", kSecond, "A"}})
      made.push_back({node, format::copy_name(id), segment(id, letters)});
    return made;
  }

  static constexpr SegmentId kFirst{{1, 1}, 0};
  static constexpr SegmentId kOther{{1, 1}, 1};
  static constexpr SegmentId kSecond{{1, 2}, 0};

  static RunRecord record_of() {
    return {.store = kStore,
            .seed = kSeed,
            .run = 1,
            .ranks = kRanks,
            .application = kApplication,
            .host = "golden-host",
            .pid = 1,
            .time_ns = kTimeNs};
  }
  /// The last block of each rank is short.
  static std::vector<std::byte> content(char letter) {
    const std::size_t bytes = letter == 'c' ? 100 : letter == 'd' ? 200 : kBlock;
    std::vector<std::byte> made(bytes);
    for (std::size_t i = 0; i < bytes; ++i)
      made[i] = static_cast<std::byte>(static_cast<unsigned char>(letter) + 31 * i);
    return made;
  }
  /// The content of "field".
  static std::vector<std::byte> content(std::string_view letters) {
    std::vector<std::byte> made;
    for (const char letter : letters) {
      const auto block = content(letter);
      made.insert(made.end(), block.begin(), block.end());
    }
    return made;
  }

  static std::vector<std::byte> segment(const SegmentId& id, std::string_view letters) {
    std::vector<format::MadeBlock> blocks;
    for (const char letter : letters) {
      const auto bytes = content(letter == '-' ? 'x' : letter);
      blocks.push_back({hash(bytes), bytes, letter != '-'});
    }
    return format::make_segment({.origin = origin(id.key, id.rank), .block_bytes = kBlock}, blocks);
  }

  /// Holders: 0 is the rank's segment of version 1, 1 is elsewhere, 2 its segment of version 2.
  static Manifest manifest(Version version, Rank rank, std::string_view letters,
                           std::vector<std::uint8_t> holders) {
    Manifest made;
    made.origin = origin({1, version}, rank);
    if (version > 1) made.parent = {1, version - 1};
    made.application = kApplication;
    made.block_bytes = kBlock;
    made.time_ns = kTimeNs + static_cast<std::int64_t>(version) * 60'000'000'000;
    made.segments = {reference({{1, 1}, rank}), {{{1, 1}, kAnyRank}, 0, 0}};
    if (version == 2 && rank == 0) made.segments.push_back(reference(kSecond));
    made.segments.push_back(reference({{1, 1}, 1 - rank}));
    for (const char letter : letters) {
      made.fingerprints.push_back(hash(content(letter)));
      made.ledger.protected_bytes += content(letter).size();
    }
    made.ledger.version = version;
    made.holders = std::move(holders);
    RegionRecord region{.name = "field", .type = {ElementKind::u8, 1, ""}, .shape = {}};
    region.bytes = made.ledger.protected_bytes;
    region.shape = Shape(region.bytes);
    made.regions.push_back(std::move(region));
    return made;
  }
  static std::vector<Manifest> manifests() {
    std::vector<Manifest> made = {
        manifest(1, 0, "asxc", {0, 0, 1, 0}), manifest(1, 1, "bsxd", {0, 1, 1, 0}),
        manifest(2, 0, "Asxc", {2, 0, 1, 0}), manifest(2, 1, "bsxd", {0, 1, 1, 0})};
    made[1].ledger.duplicate_elsewhere_bytes = kBlock;
    made[2].ledger.unchanged_bytes = 2 * kBlock + 100;
    made[3].ledger.unchanged_bytes = 3 * kBlock + 200;
    for (Manifest& one : made) {
      Ledger& ledger = one.ledger;
      ledger.written_bytes =
          ledger.protected_bytes - ledger.unchanged_bytes - ledger.duplicate_elsewhere_bytes;
      ledger.encoded_bytes = ledger.written_bytes;
      ledger.file_bytes = ledger.written_bytes > 0 ? 4096 : 0;
    }
    return made;
  }

 private:
  struct Stored {
    const char* node;
    SegmentId id;
    const char* letters;
  };
  static constexpr StoreId kStore{0x0123456789abcdef, 0xfedcba9876543210};
  static constexpr std::uint64_t kSeed = 7;
  static constexpr std::int64_t kTimeNs = 1'700'000'000'000'000'000;

  static Origin origin(VersionKey key, Rank rank) { return {kStore, kSeed, key, rank, kRanks}; }
  static Fingerprint hash(const std::vector<std::byte>& bytes) {
    return fingerprint::make_hasher(HashKind::xxh3, kSeed)->hash(bytes);
  }
  /// All segments are so small that they fill one page.
  static SegmentRef reference(const SegmentId& id) { return {id, 4096, 1}; }
};

}  // namespace belay::inspect
