// SPDX-License-Identifier: Apache-2.0
// Null pointers and other nonsense are refused with a message that names the call; nothing crashes.
#include "c/c_session_test.hpp"

#include <functional>
#include <limits>
#include <utility>

namespace belay::c {
namespace {

using CNullArguments = CSessionTest;

TEST_F(CNullArguments, EveryCallRefusesANullSession) {
  int number = 0;
  const size_t extent = 1;
  belay_version version = 0;
  belay_stats stats{};
  belay_ledger ledger{};
  belay_version_info info{};
  belay_region_info region{};
  const std::pair<const char*, std::function<int()>> calls[] = {
      {"belay_wait", [&] { return belay_wait(nullptr, &version); }},
      {"belay_close", [&] { return belay_close(nullptr); }},
      {"belay_protect",
       [&] { return belay_protect(nullptr, "n", &number, 1, BELAY_INT, 1, &extent); }},
      {"belay_protect_opaque",
       [&] { return belay_protect_opaque(nullptr, "n", &number, 1, 4, "t", 0, nullptr); }},
      {"belay_protect_dynamic",
       [&] { return belay_protect_dynamic(nullptr, "n", belay_dynamic{}, BELAY_INT); }},
      {"belay_protect_dynamic_opaque",
       [&] { return belay_protect_dynamic_opaque(nullptr, "n", belay_dynamic{}, 4, "t"); }},
      {"belay_protect_serialized",
       [&] { return belay_protect_serialized(nullptr, "n", belay_serializer{}); }},
      {"belay_unprotect", [&] { return belay_unprotect(nullptr, "n"); }},
      {"belay_restore", [&] { return belay_restore(nullptr, nullptr, &version); }},
      {"belay_checkpoint", [&] { return belay_checkpoint(nullptr, &version); }},
      {"belay_begin", [&] { return belay_begin(nullptr); }},
      {"belay_add", [&] { return belay_add(nullptr, "n"); }},
      {"belay_commit", [&] { return belay_commit(nullptr, &version); }},
      {"belay_dump", [&] { return belay_dump(nullptr, nullptr, nullptr, 0, 2, &version); }},
      {"belay_load", [&] { return belay_load(nullptr, 1, nullptr, nullptr, 0); }},
      {"belay_serve", [&] { return belay_serve(nullptr); }},
      {"belay_get_stats", [&] { return belay_get_stats(nullptr, &stats); }},
      {"belay_last_ledger", [&] { return belay_last_ledger(nullptr, &ledger); }},
      {"belay_total_ledger", [&] { return belay_total_ledger(nullptr, &ledger); }},
      {"belay_versions", [&] { return belay_versions(nullptr, nullptr); }},
      {"belay_version_at", [&] { return belay_version_at(nullptr, 0, &info); }},
      {"belay_region_at", [&] { return belay_region_at(nullptr, 0, 0, &region); }},
      {"belay_ledger_at", [&] { return belay_ledger_at(nullptr, 0, &ledger); }},
      {"belay_latest",
       [&] { return belay_latest(nullptr) == 0 ? BELAY_INVALID_ARGUMENT : BELAY_OK; }},
      {"belay_due", [&] { return belay_due(nullptr) == 0 ? BELAY_INVALID_ARGUMENT : BELAY_OK; }},
      {"belay_is_head",
       [&] { return belay_is_head(nullptr) == 0 ? BELAY_INVALID_ARGUMENT : BELAY_OK; }},
  };
  for (const auto& [name, call] : calls) {
    EXPECT_EQ(call(), BELAY_INVALID_ARGUMENT) << name;
    EXPECT_EQ(std::string(belay_message(nullptr)),
              std::string(name) + ": the session is a null pointer");
  }
}

TEST_F(CNullArguments, OfferNothingToCrashOn) {
  belay_free(nullptr);
  belay_options_free(nullptr);
  EXPECT_EQ(belay_remaining(nullptr), 0u);
  expect_refused(belay_open(nullptr, nullptr), {"no place"});
  expect_refused(belay_options_set(nullptr, "keep", "1"), {"belay_options_set"});
  expect_refused(belay_options_on_log(nullptr, nullptr, nullptr), {"belay_options_on_log"});
  expect_refused(belay_write(nullptr, "x", 1), {"belay_write"});
  char byte = 0;
  expect_refused(belay_read(nullptr, &byte, 1), {"belay_read"});
  belay_options* const options = belay_options_new();
  expect_refused(belay_options_set(options, nullptr, "1"), {"name"});
  belay_options_free(options);
}

TEST_F(CNullArguments, AmongRegionsAreRefusedAndKeptForClose) {
  int number = 0;
  const size_t many[40] = {};
  expect_refused(belay_protect(session(), nullptr, &number, 1, BELAY_INT, 0, nullptr),
                 {"belay_protect", "name"});
  expect_refused(belay_protect(session(), "n", nullptr, 1, BELAY_INT, 0, nullptr), {"'n'", "null"});
  expect_refused(belay_protect(session(), "n", &number, 1, BELAY_INT, 1, nullptr), {"extents"});
  expect_refused(belay_protect(session(), "n", &number, 1, BELAY_INT, 40, many), {"40 dimensions"});
  expect_refused(belay_protect(session(), "n", &number, std::numeric_limits<size_t>::max(),
                               BELAY_DOUBLE, 0, nullptr),
                 {"negative"});
  expect_refused(belay_protect(session(), "n", &number, 1, static_cast<belay_type>(99), 0, nullptr),
                 {"type 99"});
  expect_refused(belay_protect(session(), "n", &number, 1, BELAY_OPAQUE, 0, nullptr), {"_opaque"});
  expect_refused(belay_protect_opaque(session(), "n", &number, 1, size_t{1} << 32, "", 0, nullptr),
                 {"too large"});
  expect_refused(belay_protect_opaque(session(), "n", &number, 1, 0, "", 0, nullptr), {"0 bytes"});
  expect_refused(belay_protect_dynamic(session(), "n", belay_dynamic{}, BELAY_INT), {"resize"});
  expect_refused(belay_protect_serialized(session(), "n", belay_serializer{}), {"save"});
  expect_refused(belay_unprotect(session(), nullptr), {"belay_unprotect"});
  expect_refused(belay_add(session(), nullptr), {"belay_add"});
  // The session itself knows of one failure, this layer of another; each is told once.
  expect_refused(belay_wait(session(), nullptr), {"'n'", "null"});
  expect_refused(belay_wait(session(), nullptr), {"belay_protect", "name"});
  EXPECT_EQ(belay_close(session()), BELAY_OK);
}

TEST_F(CNullArguments, AmongBuffersAndAnswersAreRefused) {
  char bytes[4] = {};
  const void* const buffers[] = {bytes, nullptr};
  const size_t sizes[] = {4, 4};
  expect_refused(belay_dump(session(), nullptr, sizes, 1, 2, nullptr), {"belay_dump"});
  expect_refused(belay_dump(session(), buffers, sizes, 2, 2, nullptr), {"belay_dump"});
  expect_refused(belay_load(session(), 1, nullptr, sizes, 1), {"belay_load"});
  expect_refused(belay_get_stats(session(), nullptr), {"no place"});
  belay_stats stats{};
  expect_refused(belay_get_stats(session(), &stats), {"size"});
  belay_restore_options options{};
  expect_refused(belay_restore(session(), &options, nullptr), {"size"});
  options.size = sizeof options;
  options.region_count = 1;
  expect_refused(belay_restore(session(), &options, nullptr), {"region_count"});
  const char* const names[] = {nullptr};
  options.regions = names;
  expect_refused(belay_restore(session(), &options, nullptr), {"name"});
  options.region_count = 0;
  expect_refused(belay_restore(session(), &options, nullptr), {"region_count"});
}

}  // namespace
}  // namespace belay::c
