// SPDX-License-Identifier: Apache-2.0
// One look at the directories of a store, from names to versions and flaws.
#pragma once

#include "inspect/store_view.hpp"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace belay::inspect {

/// One scan makes one view. Versions that vanish meanwhile are left out; vanished() says whether
/// there were any.
class StoreScan {
 public:
  StoreScan(os::Files& files, std::vector<std::string> stores);

  Result<StoreView> run();
  bool vanished() const { return vanished_; }

 private:
  Result<void> find_nodes(const std::string& store);
  Result<void> list_files(std::size_t node);
  Result<void> list_bundled(NodeView& node);
  void make_tiers();
  void read_records();
  void read_record(NodeView& node, const FoundFile& file);
  void read_manifests();
  bool is_gone(const VersionView& version);
  void read_sizes();
  void read_manifest(std::size_t node, const FoundFile& file);
  void add_part(VersionView& version, PartView part, const Result<Manifest>& manifest);
  void count_identity(const vote::Identity& identity, const NodeView& node,
                      const std::string& file);
  void rank_identities();
  void refuse_strangers(VersionView& version);
  void judge(VersionView& version);
  void miss_votes(VersionView& version);
  void find_closed_run();
  void find_lost_records();
  void find_orphans();

  StoreView view_;
  std::map<VersionKey, VersionView> versions_;
  std::vector<std::pair<vote::Identity, std::vector<Flaw>>> counted_;  ///< with who says so
  bool vanished_ = false;
};

}  // namespace belay::inspect
