// SPDX-License-Identifier: Apache-2.0
// A place of immutable files: put, get, list, remove. Local storage is the first; all pass
// tests/conformance/tier_conformance.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "os/files.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace belay::store {

class Bundle;

/// Thread-safe. Names are plain file names, never paths.
class Tier {
 public:
  virtual ~Tier() = default;

  /// A new file; busy if the name is taken. Durable once File::sync() and then sync_names() have
  /// succeeded; nobody may refer to it before.
  virtual Result<std::unique_ptr<os::File>> create(const std::string& name) = 0;
  virtual Result<std::unique_ptr<os::File>> open(const std::string& name) = 0;
  /// Gives a finished file its real name, atomically and durably. With `exclusive`: busy if the
  /// name is taken. After a failure the name may or may not be there.
  virtual Result<void> publish(const std::string& temporary, const std::string& name,
                               bool exclusive) = 0;
  /// Size of a file, which is marked as used; not_found if it is gone.
  virtual Result<std::uint64_t> touch(const std::string& name) = 0;
  virtual Result<void> remove(const std::string& name) = 0;
  // Large files in memory, where pages that are there already save half of a write.
  /// remove(), but the file may stay until create_large() has taken its memory, or to
  /// drop_retired(). REQUIRES: nobody needs it, and all that named it is durably gone.
  virtual Result<void> retire(const std::string& name) { return remove(name); }
  /// create(), perhaps with the memory of a retired file of the same kind: then it is longer than
  /// nothing at first, and is to be truncated to what was written.
  virtual Result<std::unique_ptr<os::File>> create_large(const std::string& name) {
    return create(name);
  }
  /// Removes retired files that are still there; returns how many. Those that cannot go are tried
  /// again the next time; an error if that is all of them.
  virtual Result<std::size_t> drop_retired() { return std::size_t{0}; }
  /// Makes new and removed names durable.
  virtual Result<void> sync_names() = 0;
  /// Regular files only, sorted.
  virtual Result<std::vector<std::string>> list() = 0;
  virtual Result<os::Space> space() = 0;
  /// For messages: where this is.
  virtual const std::string& place() const = 0;
  /// What it is made of, if that is several. Copies may be in more than one under the same name.
  virtual std::vector<Tier*> places() { return {this}; }
  /// Bundles that have blocks of this segment, by rising version, as far as they can be opened.
  virtual std::vector<std::shared_ptr<Bundle>> bundles_with(const SegmentId& segment) {
    static_cast<void>(segment);
    return {};
  }
};

/// The one of its places that is this directory; the tier itself if none is.
Tier& place_in(Tier& tier, std::string_view directory);

/// A directory that exists.
std::unique_ptr<Tier> make_local_tier(os::Files& files, std::string directory);

/// Is a file of this size, which begins so, worth the memory that all of it would take?
using CheckFront = Result<void> (*)(std::span<const std::byte> front, std::uint64_t file_bytes);

/// The whole content of a file. `check_front` is asked about those of more than a MiB: one that was
/// stretched, perhaps without taking space on disk, must not take memory.
Result<std::vector<std::byte>> read_whole(Tier& tier, const std::string& name,
                                          CheckFront check_front);
/// Writes a small file under a temporary name and makes its contents durable.
Result<void> prepare_whole(Tier& tier, const std::string& name, std::span<const std::byte> bytes);
/// The same, and publishes it.
Result<void> put_whole(Tier& tier, const std::string& name, std::span<const std::byte> bytes,
                       bool exclusive);

}  // namespace belay::store
