// SPDX-License-Identifier: Apache-2.0
#include "session/inquiry.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"
#include "os/signals_blocked.hpp"

#include <chrono>
#include <new>
#include <system_error>
#include <thread>

namespace belay::session {

namespace {

Result<std::optional<Letters>> inquire_in_step(
    ranks::Group& group, const Letters& questions, bool busy,
    const std::function<std::vector<std::byte>(std::span<const std::byte>)>& answer) {
  std::vector<std::byte> notice;
  format::WireWriter writer(notice);
  writer.field(static_cast<std::uint8_t>(busy));
  for (const auto& [rank, letter] : questions) writer.field(rank);
  BELAY_ASSIGN(const auto all, group.gather(notice));
  bool any = false;
  std::vector<Rank> askers;
  for (Rank asker = 0; asker < all.size(); ++asker) {
    format::WireReader reader(all[asker]);
    any = reader.field<std::uint8_t>() != 0 || any;
    while (reader.remaining() > 0)
      if (reader.field<Rank>() == group.rank()) askers.push_back(asker);
  }
  if (!any) return std::optional<Letters>();

  std::vector<Rank> asked;
  std::vector<ranks::Message> out;
  for (const auto& [rank, letter] : questions) {
    asked.push_back(rank);
    out.push_back({rank, letter});
  }
  BELAY_ASSIGN(const auto received, group.exchange(out, askers));
  std::vector<std::vector<std::byte>> answers;
  for (const auto& letter : received) answers.push_back(answer(letter));
  out.clear();
  for (std::size_t i = 0; i < askers.size(); ++i) out.push_back({askers[i], answers[i]});
  BELAY_ASSIGN(auto mine, group.exchange(out, asked));
  Letters letters;
  for (std::size_t i = 0; i < asked.size(); ++i) letters[asked[i]] = std::move(mine[i]);
  return std::optional(std::move(letters));
}

}  // namespace

Result<std::optional<Letters>> inquire(
    ranks::Group& group, const Letters& questions, bool busy,
    const std::function<std::vector<std::byte>(std::span<const std::byte>)>& answer) {
  auto answers = within_memory([&] { return inquire_in_step(group, questions, busy, answer); });
  if (answers || answers.error().code() == Code::peer_lost) return answers;
  // The others are somewhere between here and the end of it, and wait in vain.
  try {
    return fail(Code::peer_lost, "this rank is out of step with the others: {}",
                answers.error().message());
  } catch (const std::bad_alloc&) {
    return Unexpected(Error(Code::peer_lost, "out of step"));
  }
}

Result<void> Errand::run(const std::function<Result<void>()>& work) {
  Result<void> done;
  std::thread worker;
  try {
    const os::SignalsBlocked blocked;
    worker = std::thread([&] {
      done = within_memory(work);
      const std::lock_guard lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    });
  } catch (const std::system_error&) {
    return within_memory(
        []() -> Result<void> { return fail(Code::no_space, "the system has no thread to give"); });
  } catch (const std::bad_alloc&) {
    return Unexpected(out_of_memory());
  }
  keep_step();
  worker.join();
  if (lost_) return Unexpected(std::move(*lost_));
  return done;
}

void Errand::keep_step() {
  constexpr auto kPause = std::chrono::milliseconds(50);
  const Letters none;
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_wanted = [&] { return ended_ || (questions_ != nullptr && !answers_); };
    if (lost_)
      changed_.wait(lock, [&] { return ended_; });
    else
      changed_.wait_for(lock, kPause, is_wanted);
    if (ended_) return;
    const Letters* const questions = answers_ ? nullptr : questions_;
    lock.unlock();
    auto answers = inquire(group_, questions == nullptr ? none : *questions, true, answer_);
    lock.lock();
    if (!answers)
      lost_ = std::move(answers).error();
    else if (questions != nullptr)
      answers_ = Result<Letters>(**std::move(answers));
    changed_.notify_all();
  }
}

Result<Letters> Errand::ask(const Letters& questions) {
  std::unique_lock lock(mutex_);
  questions_ = &questions;
  answers_.reset();
  changed_.notify_all();
  changed_.wait(lock, [&] { return answers_ || lost_; });
  questions_ = nullptr;
  if (!answers_) return Unexpected(*lost_);
  return *std::exchange(answers_, {});
}

}  // namespace belay::session
