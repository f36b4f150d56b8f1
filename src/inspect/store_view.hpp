// SPDX-License-Identifier: Apache-2.0
// A store seen from outside: its nodes, files and versions, and what is wrong with them. Takes no
// lock and changes nothing, so that it may look at a store that a job is writing.
#pragma once

#include <belay/result.hpp>

#include "base/nouns.hpp"
#include "format/names.hpp"
#include "os/files.hpp"
#include "store/tier.hpp"
#include "vote/needs.hpp"
#include "vote/survey.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace belay::inspect {

/// Something that is not as it should be. Where it concerns a version, rank or region, it says so.
struct Flaw {
  Code code = Code::corruption;           ///< not_found: a file is missing
  std::string directory = {};             ///< of the node; empty: no one knows where it should be
  std::string file = {};                  ///< name in that directory
  std::vector<std::string> bundles = {};  ///< files that this one lies in; empty: in none
  std::string reason = {};
  std::optional<VersionKey> version = {};
  std::optional<Rank> rank = {};
  std::string region = {};   ///< empty: not about one region
  std::uint64_t blocks = 0;  ///< of that region
};

/// Something in a node's directory that has a name of Belay's. What has none is nobody's business.
struct FoundFile {
  std::string name;
  std::optional<format::ParsedName> parsed;  ///< unset: `settled` or its temporary
  bool regular = true;
  std::uint64_t bytes = 0;
  /// There is no such file: it lies in these, whose bytes count. Empty: a file of its own.
  std::vector<std::string> bundles = {};

  bool bundled() const { return !bundles.empty(); }
};

/// One directory `<store>/node-<node>/`.
struct NodeView {
  std::string name;                   ///< of the node, without "node-"
  std::string directory;              ///< with the store's path in front
  std::vector<FoundFile> files = {};  ///< by name
  bool settled = false;
  Run highest_record = 0;
};

/// One rank's part of a version.
struct PartView {
  Rank rank = 0;
  std::size_t node = 0;                   ///< where its manifest lies
  std::uint64_t manifest_bytes = 0;       ///< of the file
  std::optional<Manifest> manifest = {};  ///< without its block arrays; unset: unreadable
};

class Stripes;

enum class VersionState {
  whole,       ///< every rank has voted, and every segment is there with its size
  incomplete,  ///< votes are missing: it is being made or removed, or a job was killed meanwhile
  damaged,     ///< it has flaws
};
const char* name_of(VersionState state);

struct VersionView {
  VersionKey key;
  VersionState state = VersionState::whole;
  Rank ranks = 0;               ///< that must vote; 0: no manifest of it can be read
  std::vector<PartView> parts;  ///< by rank; one for each manifest that was found
  std::vector<Flaw> flaws;

  const PartView* part(Rank rank) const;
  /// Of any part that can be read; nullptr if there is none.
  const Manifest* any_manifest() const;
  Ledger ledger_sum() const;
  std::uint64_t blocking_max_ns() const;  ///< how long the slowest rank was in checkpoint()
  std::int64_t time_ns() const;           ///< of the last rank's capture
};

/// Move-only. References into it stay good for as long as it lives. `files` must outlive it.
class StoreView {
 public:
  /// Looks at the node directories of all `stores`. Files that vanish underneath, because a running
  /// job retires a version, are no flaw: it looks again. not_found if there is no node directory.
  static Result<StoreView> open(os::Files& files, const std::vector<std::string>& stores);

  const std::vector<std::string>& stores() const { return stores_; }
  const std::vector<NodeView>& nodes() const { return nodes_; }
  const std::vector<VersionView>& versions() const { return versions_; }  ///< newest first
  const std::vector<Flaw>& flaws() const { return flaws_; }  ///< of files that are of no version
  /// Most files first; more than one is a mixture of stores. Empty: no file says whose it is.
  const std::vector<vote::Identity>& identities() const { return identities_; }
  bool mixed() const { return mixed_; }
  /// The last run has ended with close(), so that nothing may be unfinished.
  bool closed() const { return closed_run_ != 0; }

  const VersionView* find(VersionKey key) const;
  const VersionView* newest_whole() const;  ///< but for dumps, which nobody chooses by himself
  /// Versions are known to have existed, though perhaps none can be read: what a session's latest()
  /// would say.
  bool has_existed() const;
  /// No rank is without a trace: all nodes are in view.
  bool sees_all_ranks() const;
  /// Everything wrong: `flaws()` and those of all versions.
  std::vector<Flaw> all_flaws() const;

  /// What of a node's directory is there under this name; nullptr: nothing.
  const FoundFile* find_file(const std::string& directory, const std::string& name) const;
  /// Says of flaws in what lies in bundles which these are.
  void name_bundles(std::vector<Flaw>& flaws) const;

  /// For reading: the node's own files first, then those of all others.
  store::Tier& tier(std::size_t node) const { return *tiers_[node]; }
  /// Is this manifest still there? Readers open all files of a version first, then ask.
  bool still_listed(const PartView& part, VersionKey key) const;
  /// The whole manifest, with its block arrays.
  Result<Manifest> load(const PartView& part, VersionKey key) const;
  os::Files& files() const { return *files_; }
  const Stripes& stripes() const { return *stripes_; }

 private:
  friend class StoreScan;
  explicit StoreView(os::Files& files) : files_(&files) {}

  os::Files* files_;
  std::vector<std::string> stores_;
  std::vector<NodeView> nodes_;
  std::vector<std::unique_ptr<store::Tier>> tiers_;  ///< by node
  std::vector<VersionView> versions_;
  std::shared_ptr<const Stripes> stripes_;
  std::vector<Flaw> flaws_;
  std::vector<vote::Identity> identities_;
  bool mixed_ = false;
  Run closed_run_ = 0;  ///< 0: the last run did not end with close(), or has not
};

/// What a segment or shard is to the manifests that are there. Who counts on a member of a stripe
/// counts on the whole stripe.
enum class SegmentUse {
  needed,
  unneeded,  ///< no manifest counts on it: unfinished, or left over
  unknown,   ///< a manifest that cannot be read may count on it
};

class SegmentUses {
 public:
  explicit SegmentUses(const StoreView& view);  ///< which must outlive this
  SegmentUse of(const SegmentId& id) const;
  SegmentUse of_shard(const SegmentId& shard) const;

 private:
  const Stripes& stripes_;
  vote::Needs needs_;
  VersionKey newest_unread_;
};

}  // namespace belay::inspect
