// SPDX-License-Identifier: Apache-2.0
// checksum.hpp must come before anything that includes xxhash.h.
#include "format/checksum.hpp"

#include "inspect/shard_rebuild.hpp"

#include "base/try.hpp"
#include "inspect/file_rebuild.hpp"
#include "inspect/stripe_reader.hpp"

#include <algorithm>

namespace belay::inspect {
namespace {

Result<void> write_shard(ByteSink& sink, const StripeView& stripe, StripeReader& reader,
                         const redundancy::StripePart& part) {
  format::ShardDescription description{.origin = stripe.origin,
                                       .stripe = stripe.stripe,
                                       .seat = part.place,
                                       .index = part.shard,
                                       .parity_bytes = stripe.layout.bytes_of(part),
                                       .checksums = {}};
  std::vector<std::byte> unit;
  for (std::uint64_t at = 0; at < description.parity_bytes; at += unit.size()) {
    unit.resize(std::min(format::kShardUnit, description.parity_bytes - at));
    BELAY_TRY(reader.read(at, unit));
    description.checksums.push_back(format::checksum64(unit));
    BELAY_TRY(sink.append(unit));
  }
  return sink.append(format::encode_shard_end(description));
}

/// In all stripes of a set, as long as a run lasts, nodes have the same seats.
bool of_same_set(const StripeView& a, const StripeView& b) {
  if (a.stripe.key.run != b.stripe.key.run || a.stripe.level != b.stripe.level ||
      a.stripe.seats() != b.stripe.seats())
    return false;
  for (std::uint32_t seat = 0; seat < a.stripe.seats(); ++seat)
    if (const auto node = a.node_of(seat); node && node == b.node_of(seat)) return true;
  return false;
}

}  // namespace

Result<std::string> ShardRebuild::home_of(const StripeView& stripe, std::uint32_t seat) const {
  if (const auto node = stripe.node_of(seat)) return view.nodes()[*node].directory;
  for (const StripeView& other : view.stripes().all()) {
    const bool same = &other == &stripe || of_same_set(other, stripe);
    if (same && other.node_of(seat)) return view.nodes()[*other.node_of(seat)].directory;
    if (!same || other.stripe.members[seat].empty()) continue;
    if (auto home = homes.directory_of(other.stripe.members[seat].rank, stripe.stripe.key.run))
      return home;
  }
  return fail(Code::not_found,
              "nothing here says which node had seat {} of its stripe; make the directory node-... "
              "of that node anew, empty, and try again",
              seat);
}

Result<void> ShardRebuild::renew(const StripeView& stripe, std::uint32_t seat,
                                 std::uint32_t index) {
  const std::string name = format::shard_name(stripe.shard(index));
  const auto refuse = [&](const std::string& reason) {
    done.refused.push_back(name + ": " + reason);
    return Result<void>();
  };
  const auto home = home_of(stripe, seat);
  if (!home) return refuse(home.error().message());
  if (unreadable.contains({*home, name})) return {};
  const auto node = std::find_if(view.nodes().begin(), view.nodes().end(),
                                 [&](const NodeView& n) { return n.directory == *home; });
  if (node == view.nodes().end()) return refuse("there is no " + *home);
  for (std::uint32_t other = 0; other < stripe.stripe.seats(); ++other)
    if (const auto taken = stripe.node_of(other);
        other != seat && taken && view.nodes()[*taken].directory == *home)
      return refuse(fmt::format("{} has seat {} of its stripe, not {}", *home, other, seat));
  const bool there = std::any_of(node->files.begin(), node->files.end(),
                                 [&](const FoundFile& file) { return file.name == name; });
  const redundancy::StripePart part{seat, index};
  BELAY_ASSIGN(const auto reader, StripeReader::make(view, stripe, part));
  const auto tier = store::make_local_tier(view.files(), *home);
  const auto made = rebuild_file(
      {*tier, view.files(), name, there},
      [&](ByteSink& sink) { return write_shard(sink, stripe, *reader, part); },
      [] { return true; });
  if (!made && made.error().code() == Code::not_found)
    return refuse(*home + ": " + made.error().message());
  if (!made) return Unexpected(made.error());
  if (*made) done.steps.push_back({"moved to quarantine", *home, name, "it is damaged"});
  done.steps.push_back({"made again", *home, name, "from the other files of its stripe"});
  return {};
}

Result<void> ShardRebuild::run(const StripeView& stripe) {
  for (std::uint32_t seat = 0; seat < stripe.stripe.seats(); ++seat)
    for (std::uint32_t index = 0; index < stripe.stripe.level.shards; ++index) {
      const auto& node = stripe.shards[seat][index];
      const std::string name = format::shard_name(stripe.shard(index));
      if (node && !damaged.contains({view.nodes()[*node].directory, name})) continue;
      BELAY_TRY(renew(stripe, seat, index));
    }
  return {};
}

}  // namespace belay::inspect
