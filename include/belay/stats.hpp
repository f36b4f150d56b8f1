// SPDX-License-Identifier: Apache-2.0
// What a session did, in numbers that add up.
#pragma once

#include <belay/types.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace belay {

/// Where the bytes and the time of one version on one rank went. It balances:
///   protected_bytes = untouched + unchanged + duplicate_here + duplicate_elsewhere + written
///   blocking_ns     = settle_ns + detect_ns + stage_ns + wait_ns
struct Ledger {
  Version version = 0;
  std::uint64_t protected_bytes = 0;
  std::uint64_t untouched_bytes = 0;            ///< a tracker says: not written since
  std::uint64_t unchanged_bytes = 0;            ///< same fingerprint in the same place
  std::uint64_t duplicate_here_bytes = 0;       ///< this rank's store holds the block already
  std::uint64_t duplicate_elsewhere_bytes = 0;  ///< enough other nodes hold it
  std::uint64_t written_bytes = 0;              ///< raw bytes of blocks put into the segment
  std::uint64_t carried_bytes = 0;  ///< of written: unchanged, but moved out of an old segment
  std::uint64_t encoded_bytes = 0;  ///< what `written_bytes` became in the segment
  std::uint64_t file_bytes = 0;     ///< everything that went to files: segment, index, manifest

  std::uint64_t settle_ns = 0;    ///< waiting for the former version and agreeing on it
  std::uint64_t detect_ns = 0;    ///< fingerprinting and looking up
  std::uint64_t stage_ns = 0;     ///< copying unsafe blocks
  std::uint64_t wait_ns = 0;      ///< staging was full (or the work is done inline)
  std::uint64_t blocking_ns = 0;  ///< from entry to return of checkpoint()
  std::uint64_t durable_ns = 0;   ///< from entry of checkpoint() until this rank has voted

  bool balances() const {
    return protected_bytes == untouched_bytes + unchanged_bytes + duplicate_here_bytes +
                                  duplicate_elsewhere_bytes + written_bytes &&
           blocking_ns == settle_ns + detect_ns + stage_ns + wait_ns;
  }
};

/// What became of one variable: with which codec, how small, and how fast.
struct CodecUse {
  std::string tier;      ///< "local" or "global"
  std::string variable;  ///< a region's name; on the global tier of all ranks that share a file
  std::string codec;
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t encode_ns = 0;
};

/// This rank's view of a session. Sums are over the session's life.
struct Stats {
  Ledger last;                      ///< of the newest version that was captured
  Ledger total;                     ///< sums over all captured versions
  std::uint64_t captured = 0;       ///< versions captured
  std::uint64_t existing = 0;       ///< of those, known to exist
  std::uint64_t failed = 0;         ///< of those, known not to exist
  std::uint64_t skipped = 0;        ///< calls of checkpoint() that `late = skip` left out
  std::uint64_t sent_bytes = 0;     ///< of blocks that went to other ranks, to be kept there
  std::uint64_t kept_bytes = 0;     ///< of other ranks' blocks that came here to be kept
  std::string last_failure;         ///< why the newest failed one failed
  std::uint64_t table_bytes = 0;    ///< memory of fingerprints and their index
  std::uint64_t staging_bytes = 0;  ///< memory of staging
  std::uint64_t hash_threads = 0;   ///< threads that fingerprint during capture
  std::vector<CodecUse> codecs;     ///< of what this rank has encoded
};

struct RegionInfo {
  std::string name;
  ElementType type;
  Shape shape;
  std::uint64_t bytes = 0;
};

/// A version that can be restored, as this rank holds it.
struct VersionInfo {
  Version version = 0;
  std::uint64_t run = 0;
  Version parent = 0;        ///< 0: none
  std::int64_t time_ns = 0;  ///< when it was captured, since 1970
  std::string level;         ///< "local", "replicas:2", "erasure:4+2"; "+global" if there too
  std::vector<RegionInfo> regions;  ///< of this rank
  Ledger ledger;                    ///< of this rank
};

}  // namespace belay
