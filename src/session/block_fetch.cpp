// SPDX-License-Identifier: Apache-2.0
#include "session/block_fetch.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"
#include "os/memory.hpp"
#include "session/block_server.hpp"
#include "session/inquiry.hpp"

#include <algorithm>
#include <map>

namespace belay::session {
namespace {

// That a rank asks for at a time; those who answer hold as much for each that asks.
constexpr std::uint64_t kRoundBytes = std::uint64_t{16} << 20;

/// A file that may have a block, and who can read it.
struct Candidate {
  Rank keeper = 0;
  StoredFile file;
};

/// A block that is still wanted; candidates before `next` did not have it.
struct Pending {
  LostBlock block;
  const std::vector<Candidate>* candidates = nullptr;
  std::size_t next = 0;

  bool hopeless() const { return next == candidates->size(); }
};

/// One rank's side of the search.
class Fetch {
 public:
  Fetch(Equipment& equipment, ranks::Group& group, const catalog::Whereabouts& whereabouts,
        const Manifest& manifest, BlockServer& server)
      : equipment_(equipment),
        group_(group),
        whereabouts_(whereabouts),
        manifest_(manifest),
        server_(server) {}

  Result<Fetched> run(std::vector<LostBlock> lost) {
    for (LostBlock& block : lost) {
      const auto* candidates = &candidates_for(block.id);
      pending_.push_back({std::move(block), candidates, 0});
    }
    while (true) {
      choose();
      BELAY_ASSIGN(const bool any, ask_and_answer());
      if (!any) break;
    }
    Fetched fetched{{}, std::move(damaged_)};
    for (const StoredFile& file : server_.unreadable())
      fetched.damaged.push_back({file.id, file.kind, file.place});
    for (Pending& block : pending_) fetched.left.push_back(std::move(block.block));
    return fetched;
  }

 private:
  const std::vector<Candidate>& candidates_for(const SegmentId& id);
  void choose();
  Result<bool> ask_and_answer();
  void take(std::vector<Pending*>& asked, std::span<const std::byte> answer);

  Equipment& equipment_;
  ranks::Group& group_;
  const catalog::Whereabouts& whereabouts_;
  const Manifest& manifest_;
  BlockServer& server_;
  std::map<SegmentId, std::vector<Candidate>> candidates_;
  std::vector<Pending> pending_;
  std::map<Rank, std::vector<Pending*>> asked_;  ///< in this round, by keeper
  std::vector<LostFile> damaged_;
};

/// The segment itself and its copies, then those segments of the same version that this manifest
/// counts on: equal blocks of other ranks.
const std::vector<Candidate>& Fetch::candidates_for(const SegmentId& id) {
  const auto [found, is_new] = candidates_.try_emplace(id);
  if (!is_new) return found->second;
  std::vector<SegmentId> ids{id};
  for (const SegmentRef& other : manifest_.segments)
    if (other.id.key == id.key && other.id != id) ids.push_back(other.id);
  for (const SegmentId& each : ids)
    for (const auto& holder : whereabouts_.holders(each))
      if (!whereabouts_.is_global(holder.place))  // read_global() looks there
        found->second.push_back({holder.keeper, {each, holder.kind, holder.place}});
  return found->second;
}

/// Takes as many as fit into a round, and asks each one's next candidate.
void Fetch::choose() {
  asked_.clear();
  std::uint64_t bytes = 0;
  for (Pending& block : pending_) {
    if (block.hopeless()) continue;
    if (bytes > 0 && bytes + block.block.wanted.length > kRoundBytes) break;
    bytes += block.block.wanted.length;
    asked_[(*block.candidates)[block.next].keeper].push_back(&block);
  }
}

void Fetch::take(std::vector<Pending*>& asked, std::span<const std::byte> answer) {
  format::WireReader reader(answer);
  for (Pending* block : asked) {
    const WantedBlock& wanted = block->block.wanted;
    const StoredFile& file = (*block->candidates)[block->next++].file;
    if (reader.field<std::uint8_t>() == 0) continue;
    const auto bytes = reader.bytes(wanted.length);
    if (bytes.size() != wanted.length || equipment_.hasher.hash(bytes) != wanted.fingerprint) {
      damaged_.push_back({file.id, file.kind, file.place});
      continue;
    }
    os::copy_past_cache(wanted.to, bytes.data(), wanted.fits);
    block->block.wanted.to = nullptr;  // it is where it belongs
  }
}

/// False: nobody asks any more.
Result<bool> Fetch::ask_and_answer() {
  Letters questions;
  for (const auto& [keeper, blocks] : asked_) {
    std::vector<BlockQuestion> list;
    for (const Pending* block : blocks)
      list.push_back({(*block->candidates)[block->next].file, block->block.wanted.fingerprint,
                      block->block.wanted.length});
    questions[keeper] = encode_questions(list);
  }
  BELAY_ASSIGN(const auto answers,
               inquire(group_, questions, !questions.empty(),
                       [&](std::span<const std::byte> asked) { return server_.answer(asked); }));
  if (!answers) return false;
  for (const auto& [keeper, answer] : *answers) take(asked_[keeper], answer);
  std::erase_if(pending_, [](const Pending& block) { return block.block.wanted.to == nullptr; });
  return true;
}

}  // namespace

Result<Fetched> fetch_blocks(Equipment& equipment, os::Parallel& readers, ranks::Group& group,
                             const catalog::Whereabouts& whereabouts, const Manifest& manifest,
                             std::vector<LostBlock> lost) {
  BlockServer server(equipment.tier, equipment.hasher, readers, whereabouts, manifest.origin.store,
                     equipment.log);
  return Fetch(equipment, group, whereabouts, manifest, server).run(std::move(lost));
}

}  // namespace belay::session
