// SPDX-License-Identifier: Apache-2.0
#include "crash/scenario.hpp"

#include "base/try.hpp"

namespace belay::crash {

State state_at(std::uint64_t step, Rank rank) {
  State state;
  state.step = step;
  state.field.resize(300 + step * 70 + rank * 13);
  for (std::size_t i = 0; i < state.field.size(); ++i) {
    // Every block changes now and then, most do not between two steps.
    const std::uint64_t age = (step + i / 64) / 3;
    state.field[i] = static_cast<double>(rank * 1000 + age) + static_cast<double>(i) / 7;
  }
  state.table.assign(step % 3 == 1 ? 200 : 900, static_cast<std::uint32_t>(step / 2));
  for (std::size_t i = 0; i < state.table.size(); i += 400)
    state.table[i] = static_cast<std::uint32_t>(step * 31 + rank);
  for (std::uint64_t i = 0; i <= step; ++i)
    state.dictionary["entry " + std::to_string(i)] = static_cast<int>(i * step + rank);
  return state;
}

Result<void> protect(Session& session, State& state) {
  BELAY_TRY(session.protect("step", state.step));
  BELAY_TRY(session.protect("field", state.field));
  BELAY_TRY(session.protect("table", state.table));
  return session.protect(
      "dictionary",
      [&state](Writer& writer) {
        writer.value(state.dictionary.size());
        for (const auto& [name, value] : state.dictionary) {
          writer.text(name);
          writer.value(value);
        }
      },
      [&state](Reader& reader) {
        state.dictionary.clear();
        for (auto left = reader.value<std::size_t>(); left > 0 && !reader.failed(); --left) {
          const std::string name = reader.text();
          state.dictionary[name] = reader.value<int>();
        }
      });
}

Options small_options(const std::string& store) {
  Options options;
  options.store = store;
  options.application = "scenario";
  options.block = 512;
  options.segments = 3;
  options.keep = 2;
  options.staging = "1MiB";
  options.background = "inline";
  options.timeout = "20s";
  return options;
}

Result<Session> open_rank(os::Files& files, std::unique_ptr<ranks::Group> group, Options options) {
  session::Seams seams = session::system_seams();
  seams.files = &files;
  seams.environment.clear();
  seams.hash_threads = 1;
  seams.read_threads = 1;
  auto shared = std::make_shared<std::unique_ptr<ranks::Group>>(std::move(group));
  return session::open_session(
      seams,
      [shared](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
        return std::move(*shared);
      },
      std::move(options));
}

namespace {

Result<Version> take_version(Session& session, std::uint64_t step) {
  if (step % 4 != 2) return session.checkpoint();
  BELAY_TRY(session.begin());
  BELAY_TRY(session.add("table"));
  return session.commit();
}

}  // namespace

Result<std::uint64_t> run_rank(Session& session, Rank rank, State& state, const Hooks& hooks) {
  state = State{};
  BELAY_TRY(protect(session, state));
  if (session.latest()) {
    BELAY_ASSIGN(const Version version, session.restore());
    if (state.step > kLastStep || state != state_at(state.step, rank))
      return fail(Code::corruption, "rank {}: version {} brought back a state that never was", rank,
                  version);
  }
  const std::uint64_t start = state.step;
  while (state.step < kLastStep) {
    state = state_at(state.step + 1, rank);
    auto taken = take_version(session, state.step);
    if (!taken && hooks.failed) hooks.failed(taken.error());
    auto durable = session.wait();
    if (!durable && hooks.failed) hooks.failed(durable.error());
    if (taken && durable && *taken == *durable && hooks.exists) hooks.exists(state.step);
  }
  return start;
}

}  // namespace belay::crash
