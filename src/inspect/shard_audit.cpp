// SPDX-License-Identifier: Apache-2.0
#include "inspect/shard_audit.hpp"

#include "base/try.hpp"
#include "inspect/stripes.hpp"
#include "store/shard_file.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace belay::inspect {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

class ShardAudit {
 public:
  ShardAudit(const StoreView& view, const SegmentUses& uses,
             const std::function<void(std::uint64_t)>& advance)
      : view_(view), uses_(uses), advance_(advance) {}

  ShardFindings run() {
    for (std::size_t node = 0; node < view_.nodes().size(); ++node)
      for (const FoundFile& file : view_.nodes()[node].files)
        if (file.regular && file.parsed && !file.parsed->temporary &&
            file.parsed->kind == format::NameKind::shard)
          look_at(node, file);
    for (const StripeView& stripe : view_.stripes().all())
      if (uses_.of_shard(stripe.shard(0)) == SegmentUse::needed) find_missing_of(stripe);
    return std::move(found_);
  }

 private:
  void look_at(std::size_t node, const FoundFile& file) {
    const SegmentId id{file.parsed->key, file.parsed->rank};
    if (uses_.of_shard(id) == SegmentUse::unneeded) return;
    const auto done = read(node, id);
    ++found_.files;
    found_.bytes += file.bytes;
    advance_(file.bytes);
    if (done || done.error().code() == Code::not_found) return;  // or retired meanwhile
    damaged_[id].insert(node);
    found_.damaged.push_back({.code = done.error().code(),
                              .directory = view_.nodes()[node].directory,
                              .file = file.name,
                              .reason = done.error().message()});
  }

  Result<void> read(std::size_t node, const SegmentId& id) {
    const std::string& directory = view_.nodes()[node].directory;
    BELAY_ASSIGN(auto shard, store::ShardFile::open(store::place_in(view_.tier(node), directory),
                                                    id, view_.identities().front().store));
    const auto& description = shard.description();
    const StripeView* const stripe = view_.stripes().of_shard(id);
    if (stripe == nullptr || stripe->stripe != description.stripe ||
        stripe->shards[description.seat][description.index] != node)
      return fail(Code::corruption, "{}/{}: other shards say something else about its stripe",
                  directory, format::shard_name(id));
    buffer_.resize(kBufferBytes);
    for (std::uint64_t at = 0; at < description.parity_bytes; at += buffer_.size()) {
      const auto bytes = std::min<std::uint64_t>(buffer_.size(), description.parity_bytes - at);
      BELAY_TRY(shard.read(at, std::span(buffer_).first(bytes)));
    }
    return {};
  }

  void find_missing_of(const StripeView& stripe) {
    for (std::uint32_t index = 0; index < stripe.stripe.level.shards; ++index) {
      // A damaged one may not say any more whose it is.
      std::set<std::size_t> nameless = damaged_[stripe.shard(index)];
      for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat)
        if (const auto node = stripe.node_of(seat)) nameless.erase(*node);
      for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat) {
        if (stripe.shards[seat][index]) continue;
        const auto node = stripe.node_of(seat);
        const auto taken = !node && !nameless.empty() ? nameless.begin() : nameless.end();
        const bool told =
            node ? damaged_[stripe.shard(index)].contains(*node) : taken != nameless.end();
        if (taken != nameless.end()) nameless.erase(taken);
        if (told) continue;
        found_.missing.push_back({.code = Code::not_found,
                                  .directory = node ? view_.nodes()[*node].directory : "",
                                  .file = format::shard_name(stripe.shard(index)),
                                  .reason = fmt::format("the shard of seat {} is missing", seat)});
      }
    }
  }

  const StoreView& view_;
  const SegmentUses& uses_;
  const std::function<void(std::uint64_t)>& advance_;
  std::map<SegmentId, std::set<std::size_t>> damaged_;  ///< by shard: nodes
  std::vector<std::byte> buffer_;
  ShardFindings found_;
};

}  // namespace

Result<ShardFindings> audit_shards(const StoreView& view, const SegmentUses& uses,
                                   const std::function<void(std::uint64_t)>& advance) {
  if (view.identities().empty()) return ShardFindings{};
  return ShardAudit(view, uses, advance).run();
}

}  // namespace belay::inspect
