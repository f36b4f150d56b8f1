// SPDX-License-Identifier: Apache-2.0
#include "session/shared_extents.hpp"

#include "base/try.hpp"
#include "os/memory.hpp"
#include "session/extent_server.hpp"
#include "session/inquiry.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace belay::session {
namespace {

// That a rank asks for at a time, of all others together; as much is asked of it.
constexpr std::uint64_t kRoundBytes = std::uint64_t{32} << 20;

/// A lost block, and where it is.
struct Sought {
  EntryQuestion question;
  std::size_t block = 0;  ///< among the lost ones
  std::uint64_t extent_bytes = 0;
};

auto content_of(const format::BundledBlock& block) {
  return std::tie(block.fingerprint.low, block.fingerprint.high, block.length);
}
auto content_of(const WantedBlock& block) {
  return std::tie(block.fingerprint.low, block.fingerprint.high, block.length);
}

/// What one rank is asked for, in order; what is before `next` was asked.
struct Queue {
  std::vector<Sought> sought;
  std::size_t next = 0;
  std::uint64_t quota = 0;  ///< bytes at a time
  std::size_t asked = 0;    ///< the first of those that an answer is due for

  /// Equal blocks are asked for once.
  std::size_t end_of(std::size_t first) const {
    std::size_t last = first + 1;
    while (last < sought.size() && sought[last].question == sought[first].question) ++last;
    return last;
  }
  std::vector<EntryQuestion> next_questions() {
    asked = next;
    std::vector<EntryQuestion> questions;
    std::uint64_t bytes = 0, to_read = 0;
    for (; next < sought.size(); next = end_of(next)) {
      const EntryQuestion& question = sought[next].question;
      const bool is_new = questions.empty() || questions.back().extent != question.extent;
      bytes += question.length;
      to_read += is_new ? sought[next].extent_bytes : 0;
      if (!questions.empty() && (bytes > quota || to_read > kRoundBytes)) break;
      questions.push_back(question);
    }
    return questions;
  }
};

/// One rank's side of it.
class Sharing {
 public:
  Sharing(Equipment& equipment, ranks::Group& group, store::Tier& sight,
          const catalog::Whereabouts& whereabouts, const StoreId& store, OpenBundles& bundles,
          ExtentServer& server, std::vector<LostBlock>& lost)
      : equipment_(equipment),
        group_(group),
        sight_(sight),
        whereabouts_(whereabouts),
        store_(store),
        bundles_(bundles),
        server_(server),
        lost_(lost) {}

  Result<void> run() {
    // Who lacks memory wants nothing, but answers.
    const auto found = within_memory([&]() -> Result<void> {
      find_all();
      return {};
    });
    if (!found) queues_.clear();
    BELAY_ASSIGN(const bool any, keep_shared());
    while (any) {
      BELAY_ASSIGN(const bool more, ask_and_answer());
      if (!more) break;
    }
    std::erase_if(lost_, [](const LostBlock& block) { return block.wanted.to == nullptr; });
    return {};
  }

 private:
  void find_all();
  void find_in(catalog::Whereabouts::Place place, store::Bundle& bundle, const SegmentId& id,
               std::vector<std::size_t>& blocks);
  /// Leaves only those of extents that several ranks want. False: nobody wants any.
  Result<bool> keep_shared();
  /// False: nobody asks any more.
  Result<bool> ask_and_answer();
  void take(Queue& queue, std::span<const std::byte> answer);

  Equipment& equipment_;
  ranks::Group& group_;
  store::Tier& sight_;
  const catalog::Whereabouts& whereabouts_;
  const StoreId store_;
  OpenBundles& bundles_;
  ExtentServer& server_;
  std::vector<LostBlock>& lost_;
  std::map<Rank, Queue> queues_;  ///< by who reads it for all
};

void Sharing::find_all() {
  std::map<SegmentId, std::vector<std::size_t>> wanted;
  for (std::size_t i = 0; i < lost_.size(); ++i) wanted[lost_[i].id].push_back(i);
  for (auto& [id, blocks] : wanted)
    for (const auto& holder : whereabouts_.holders(id)) {
      if (!holder.is_copy() || !whereabouts_.in_sight(holder.place)) continue;
      auto& place = store::place_in(sight_, whereabouts_.directory(holder.place));
      auto having = place.bundles_with(id);
      // The newest first: it has again what was found damaged in an older one.
      for (auto bundle = having.rbegin(); bundle != having.rend(); ++bundle) {
        find_in(holder.place, **bundle, id, blocks);
        bundles_.add(holder.place, std::move(*bundle));
      }
    }
  for (auto& [reader, queue] : queues_)
    std::sort(queue.sought.begin(), queue.sought.end(),
              [](const Sought& a, const Sought& b) { return a.question < b.question; });
}

/// Takes those that it finds out of `blocks`.
void Sharing::find_in(catalog::Whereabouts::Place place, store::Bundle& bundle, const SegmentId& id,
                      std::vector<std::size_t>& blocks) {
  const auto& members = bundle.rider().manifests;
  const Origin& origin = bundle.header().origin;
  // Its ranks are asked: they must be those of this job.
  const bool ours = origin.store == store_ && origin.ranks == group_.size() &&
                    bundle.rider().find_manifest(group_.rank());
  if (blocks.empty() || !ours) return;
  auto stored = bundle.blocks_of(*bundle.rider().find(id));
  if (!stored) return;
  std::sort(stored->begin(), stored->end(),
            [](const auto& a, const auto& b) { return content_of(a) < content_of(b); });
  std::erase_if(blocks, [&](std::size_t block) {
    const WantedBlock& wanted = lost_[block].wanted;
    const auto found = std::lower_bound(
        stored->begin(), stored->end(), wanted,
        [](const auto& a, const WantedBlock& b) { return content_of(a) < content_of(b); });
    if (found == stored->end() || content_of(*found) != content_of(wanted)) return false;
    if (found->entry == format::kNotInBundle) return false;
    const auto entry = bundle.place_of(found->entry);
    // Raw ones give a part without the rest.
    if (!entry || entry->codec == CodecId::raw) return true;
    const ExtentName name{place, bundle.id(), entry->extent};
    Queue& queue = queues_[members[entry->extent % members.size()].rank];
    queue.quota = kRoundBytes / members.size();
    queue.sought.push_back({{name, found->entry, wanted.length}, block, entry->extent_bytes});
    return true;
  });
}

Result<bool> Sharing::keep_shared() {
  Letters letters;
  std::map<Rank, std::vector<ExtentName>> names;
  for (const auto& [reader, queue] : queues_) {
    auto& list = names[reader];
    for (const Sought& sought : queue.sought)
      if (list.empty() || list.back() != sought.question.extent)
        list.push_back(sought.question.extent);
    letters[reader] = encode_names(list);
  }
  BELAY_ASSIGN(const auto heard, inquire(group_, letters, !letters.empty(),
                                         [&](auto asked) { return server_.hear(asked); }));
  if (!heard) return false;
  BELAY_ASSIGN(const auto told, inquire(group_, letters, !letters.empty(),
                                        [&](auto asked) { return server_.tell_shared(asked); }));
  for (auto& [reader, queue] : queues_) {
    const auto& list = names[reader];
    const auto& shared = told->at(reader);
    std::erase_if(queue.sought, [&](const Sought& sought) {
      const auto found = std::lower_bound(list.begin(), list.end(), sought.question.extent);
      const auto number = static_cast<std::size_t>(found - list.begin());
      return number >= shared.size() || shared[number] == std::byte{0};
    });
  }
  return true;
}

Result<bool> Sharing::ask_and_answer() {
  Letters letters;
  for (auto& [reader, queue] : queues_) {
    const auto questions = queue.next_questions();
    if (!questions.empty()) letters[reader] = encode_questions(questions);
  }
  BELAY_ASSIGN(const auto answers, inquire(group_, letters, !letters.empty(),
                                           [&](auto asked) { return server_.answer(asked); }));
  if (!answers) return false;
  for (const auto& [reader, answer] : *answers) take(queues_[reader], answer);
  return true;
}

void Sharing::take(Queue& queue, std::span<const std::byte> answer) {
  struct Due {
    std::size_t first, last, begin;
  };
  std::vector<Due> all;
  std::size_t begin = 0;
  for (std::size_t first = queue.asked; first < queue.next; first = all.back().last) {
    const std::size_t bytes = 1 + std::size_t{queue.sought[first].question.length};
    if (begin + bytes > answer.size()) break;
    all.push_back({first, queue.end_of(first), begin});
    begin += bytes;
  }
  equipment_.parallel.run(all.size(), [&](std::size_t i) {
    const auto [first, last, at] = all[i];
    if (answer[at] == std::byte{0}) return;
    const auto bytes = answer.subspan(at + 1, queue.sought[first].question.length);
    const WantedBlock& any = lost_[queue.sought[first].block].wanted;
    if (equipment_.hasher.hash(bytes) != any.fingerprint) return;
    for (std::size_t each = first; each < last; ++each) {
      WantedBlock& wanted = lost_[queue.sought[each].block].wanted;
      if (wanted.fingerprint != any.fingerprint)
        continue;  // a bundle that says they are equal lies
      os::copy_past_cache(wanted.to, bytes.data(), wanted.fits);
      wanted.to = nullptr;  // it is where it belongs
    }
  });
}

}  // namespace

Result<std::vector<std::shared_ptr<store::Bundle>>> share_extents(
    Equipment& equipment, os::Parallel& readers, ranks::Group& group, store::Tier& sight,
    const catalog::Whereabouts& whereabouts, const StoreId& store, std::vector<LostBlock>& lost) {
  OpenBundles bundles(sight, whereabouts);
  ExtentServer server(bundles, readers);
  BELAY_TRY(Sharing(equipment, group, sight, whereabouts, store, bundles, server, lost).run());
  return bundles.take();
}

}  // namespace belay::session
