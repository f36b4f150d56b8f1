// SPDX-License-Identifier: Apache-2.0
#include "inspect/store_locks.hpp"

#include "base/try.hpp"
#include "os/host.hpp"

namespace belay::inspect {
namespace {

bool same_nodes(const StoreView& a, const StoreView& b) {
  if (a.nodes().size() != b.nodes().size()) return false;
  for (std::size_t i = 0; i < a.nodes().size(); ++i)
    if (a.nodes()[i].directory != b.nodes()[i].directory) return false;
  return true;
}

}  // namespace

Result<LockedStore> lock_store(os::Files& files, const std::vector<std::string>& stores,
                               const std::string& purpose) {
  const std::string owner =
      fmt::format("host {} pid {} {}", os::host_name(), os::process_id(), purpose);
  for (;;) {
    BELAY_ASSIGN(const auto before, StoreView::open(files, stores));
    std::vector<std::unique_ptr<os::Lock>> locks;
    for (const NodeView& node : before.nodes()) {
      auto lock = files.lock(node.directory + "/" + std::string(format::kLockName), owner);
      if (!lock && lock.error().code() == Code::busy)
        return fail(Code::busy, "{} is in use: {}; try again when that has ended", node.directory,
                    lock.error().message());
      if (!lock) return Unexpected(lock.error());
      locks.push_back(*std::move(lock));
    }
    BELAY_ASSIGN(auto view, StoreView::open(files, stores));
    // A job may have come with a node of its own between the look and the locks.
    if (same_nodes(before, view)) return LockedStore{std::move(locks), std::move(view)};
  }
}

}  // namespace belay::inspect
