// SPDX-License-Identifier: Apache-2.0
#include "session/range_rebuild.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"
#include "session/inquiry.hpp"

#include <algorithm>
#include <utility>

namespace belay::session {
namespace {

constexpr std::uint64_t kTaskBytes = 256 << 10;
// That a rank asks for at a time; those who answer hold as much for each that asks.
constexpr std::uint64_t kRoundBytes = std::uint64_t{16} << 20;

using redundancy::StripePart;

}  // namespace

Result<const RangeRebuild::Code*> RangeRebuild::code_of(const Stripe& stripe) {
  auto& made = codes_[&stripe];
  if (!made) {
    BELAY_ASSIGN(auto layout, redundancy::layout_of(stripe));
    BELAY_ASSIGN(auto code, redundancy::ErasureCode::make(layout.scheme()));
    made = std::make_unique<Code>(Code{std::move(layout), std::move(code)});
  }
  return made.get();
}

/// Along codewords, and into pieces of bounded size.
Result<void> RangeRebuild::cut(WantedRange& wanted) {
  BELAY_ASSIGN(const Code* const code, code_of(*wanted.stripe));
  std::uint64_t offset = wanted.offset;
  const std::uint64_t end = wanted.offset + wanted.into.size();
  while (offset < end) {
    const auto piece = code->layout.piece_with({wanted.seat, StripePart::kMember}, offset);
    const std::uint64_t stop = std::min({end, piece.range.end(), offset + kTaskBytes});
    tasks_.push_back({&wanted, {offset, stop - offset}, {}, {}, {}, false});
    offset = stop;
  }
  return {};
}

const catalog::Whereabouts::Holder* RangeRebuild::holder_of(const Stripe& stripe,
                                                            const StripePart& part,
                                                            SegmentId& id) const {
  if (part.is_member()) {
    const StripeMember& member = stripe.members[part.place];
    id = {stripe.key, member.rank};
    for (const auto& holder : whereabouts_.holders(id))
      if (!holder.is_copy() && holder.bytes == member.file_bytes) return &holder;
    return nullptr;
  }
  id = shard_id(stripe.key, stripe.number, part.shard);
  for (const auto& holder : whereabouts_.shards(id))
    if (holder.seat == part.place) return &holder;
  return nullptr;
}

Result<bool> RangeRebuild::plan(Task& task) {
  const Stripe& stripe = *task.wanted->stripe;
  BELAY_ASSIGN(const Code* const code, code_of(stripe));
  while (true) {
    auto steps = redundancy::plan_rebuild(code->layout, {task.wanted->seat, StripePart::kMember},
                                          task.range, task.absent);
    if (!steps && steps.error().code() == ::belay::Code::not_found) return false;
    if (!steps) return Unexpected(steps.error());
    task.step = std::move(steps->front());
    std::vector<Asked> asked;
    std::vector<Rank> keepers;
    bool all = true;
    for (std::size_t i = 0; i < task.step.sources.size() && all; ++i) {
      const auto& source = task.step.sources[i];
      if (source.range.length == 0) continue;
      SegmentId id;
      const auto* const holder = holder_of(stripe, source.part, id);
      if (holder == nullptr) {
        task.absent.push_back(source.part.place);
        all = false;
        break;
      }
      RangeQuestion question{{id, holder->kind, holder->place},
                             0,
                             0,
                             source.range.offset,
                             static_cast<std::uint32_t>(source.range.length)};
      if (source.part.is_member()) {
        question.gap_begin = stripe.members[source.part.place].gap_begin;
        question.gap_bytes = stripe.members[source.part.place].gap_bytes;
      }
      asked.push_back({&task, i, question});
      keepers.push_back(holder->keeper);
    }
    if (!all) continue;
    task.asked = true;
    task.sources.assign(task.step.sources.size(), {});
    for (std::size_t i = 0; i < asked.size(); ++i) asked_[keepers[i]].push_back(asked[i]);
    return true;
  }
}

Result<void> RangeRebuild::plan_round() {
  asked_.clear();
  std::uint64_t bytes = 0;
  for (Task& task : tasks_) {
    if (task.wanted->lost) continue;
    if (bytes >= kRoundBytes) break;
    BELAY_ASSIGN(const bool possible, plan(task));
    if (!possible) task.wanted->lost = true;
    bytes += task.range.length * task.step.sources.size();
  }
  return {};
}

void RangeRebuild::take(std::vector<Asked>& asked, std::span<const std::byte> answer) {
  format::WireReader reader(answer);
  for (Asked& each : asked) {
    const auto& source = each.task->step.sources[each.source];
    const bool there = reader.field<std::uint8_t>() != 0;
    const auto bytes = there ? reader.bytes(source.range.length) : std::span<const std::byte>{};
    if (bytes.size() == source.range.length)
      each.task->sources[each.source].assign(bytes.begin(), bytes.end());
    else
      each.task->absent.push_back(source.part.place);
  }
}

Result<void> RangeRebuild::compute(Task& task) {
  BELAY_ASSIGN(const Code* const code, code_of(*task.wanted->stripe));
  const std::vector<redundancy::Bytes> given(task.sources.begin(), task.sources.end());
  const redundancy::Range& target = task.step.target;
  const auto into = task.wanted->into.subspan(target.offset - task.wanted->offset, target.length);
  const std::uint32_t position = task.step.position;
  const redundancy::MutableBytes rebuilt = into;
  return code->code.rebuild({&position, 1}, task.step.known, given, {&rebuilt, 1});
}

Result<bool> RangeRebuild::ask_and_answer() {
  Letters questions;
  for (const auto& [keeper, list] : asked_) {
    std::vector<RangeQuestion> plain;
    for (const Asked& each : list) plain.push_back(each.question);
    questions[keeper] = encode_questions(plain);
  }
  // A rank that computes everything from zeros asks nobody, but has not ended.
  const bool busy =
      std::any_of(tasks_.begin(), tasks_.end(), [](const Task& t) { return t.asked; });
  BELAY_ASSIGN(const auto answers,
               inquire(group_, questions, busy,
                       [&](std::span<const std::byte> asked) { return server_.answer(asked); }));
  if (!answers) return false;
  for (const auto& [keeper, answer] : *answers) take(asked_[keeper], answer);
  return true;
}

Result<void> RangeRebuild::run(std::vector<WantedRange>& wanted) {
  tasks_.clear();
  Result<void> mine;
  for (WantedRange& range : wanted)
    if (mine) mine = cut(range);
  while (true) {
    if (mine) mine = plan_round();
    if (!mine) {  // but others are answered
      tasks_.clear();
      asked_.clear();
      for (WantedRange& range : wanted) range.lost = true;
    }
    BELAY_ASSIGN(const bool any, ask_and_answer());
    if (!any) return {};
    for (Task& task : tasks_) {
      if (!std::exchange(task.asked, false)) continue;
      const bool complete = [&] {
        for (std::size_t i = 0; i < task.sources.size(); ++i)
          if (task.sources[i].size() != task.step.sources[i].range.length) return false;
        return true;
      }();
      if (!complete || !mine) continue;
      mine = compute(task);
      // What is behind may have to be computed from others.
      const std::uint64_t done = task.step.target.length;
      task.range = {task.range.offset + done, task.range.length - done};
    }
    std::erase_if(tasks_,
                  [](const Task& task) { return task.range.length == 0 || task.wanted->lost; });
  }
}

}  // namespace belay::session
