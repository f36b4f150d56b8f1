// SPDX-License-Identifier: Apache-2.0
#include "session/session_test.hpp"

namespace belay::session {
namespace {

class Restore : public SessionTest {
 protected:
  /// Versions 1, 2, 3 with step = 1, 2, 3 and a field of that seed.
  void save_three(const Options& options) {
    auto session = open(options);
    std::uint64_t step = 0;
    std::vector<std::uint64_t> field;
    must(session.protect("step", step));
    must(session.protect("field", field));
    for (step = 1; step <= 3; ++step) {
      field = noise(300 + step, step);
      take(session);
    }
    must(session.close());
  }
  static Options keep_all() {
    Options options = SessionTest::options();
    options.keep = 10;
    return options;
  }

  std::uint64_t step_ = 0;
  std::vector<std::uint64_t> field_;
};

TEST_F(Restore, TakesTheNewestVersion) {
  save_three(options());
  auto session = open();
  EXPECT_EQ(session.latest(), 3u);
  must(session.protect("step", step_));
  must(session.protect("field", field_));
  EXPECT_EQ(must(session.restore()), 3u);
  EXPECT_EQ(step_, 3u);
  EXPECT_EQ(field_, noise(303, 3));
}

TEST_F(Restore, TakesTheVersionThatItIsAskedFor) {
  save_three(keep_all());
  auto session = open(keep_all());
  must(session.protect("step", step_));
  must(session.protect("field", field_));
  for (const Version version : {2u, 1u, 3u}) {
    EXPECT_EQ(must(session.restore(version)), version);
    EXPECT_EQ(step_, version);
    EXPECT_EQ(field_, noise(300 + version, version));
  }
}

TEST_F(Restore, AVersionMadeAfterGoingBackIsTheNewest) {
  save_three(keep_all());
  {
    auto session = open(keep_all());
    must(session.protect("step", step_));
    must(session.protect("field", field_));
    must(session.restore(Version{1}));
    step_ = 100;
    EXPECT_EQ(take(session), 4u);
    EXPECT_EQ(session.versions().front().parent, 1u);
    must(session.close());
  }
  auto session = open(keep_all());
  must(session.protect("step", step_));
  must(session.protect("field", field_));
  EXPECT_EQ(must(session.restore()), 4u);
  EXPECT_EQ(step_, 100u);
  EXPECT_EQ(field_, noise(301, 1));
}

TEST_F(Restore, APrunedVersionAndOneThatNeverWasAreNotFound) {
  save_three(options());
  auto session = open();
  must(session.protect("step", step_));
  must(session.protect("field", field_));
  expect_error(session.restore(Version{1}), Code::not_found, {"version 1", "/store"});
  expect_error(session.restore(Version{77}), Code::not_found, {"version 77", "versions()"});
  EXPECT_EQ(must(session.restore(Version{2})), 2u);
}

TEST_F(Restore, ARestoreBeforeAnyVersionIsNotFound) {
  auto session = open();
  EXPECT_EQ(session.latest(), std::nullopt);
  must(session.protect("step", step_));
  expect_error(session.restore(), Code::not_found, {"no version", "/store"});
  take(session);
}

TEST_F(Restore, OnlyTheNamedRegionsAreFilled) {
  save_three(options());
  auto session = open();
  must(session.protect("step", step_));
  must(session.protect("field", field_));
  must(session.restore({.regions = {"step", "step"}}));
  EXPECT_EQ(step_, 3u);
  EXPECT_TRUE(field_.empty());
}

TEST_F(Restore, NamingARegionThatIsNotProtectedIsAnError) {
  save_three(options());
  auto session = open();
  must(session.protect("step", step_));
  expect_error(session.restore({.regions = {"stop"}}), Code::not_found, {"'stop'", "protect"});
}

TEST_F(Restore, ARegionThatTheVersionLacksIsAnErrorUnlessAllowed) {
  save_three(options());
  auto session = open();
  int extra = 5;
  must(session.protect("step", step_));
  must(session.protect("extra", extra));
  expect_error(session.restore(), Code::not_found, {"'extra'", "'field'", "allow_missing"});
  EXPECT_EQ(session.latest(), 3u);
  must(session.restore({.allow_missing = true}));
  EXPECT_EQ(step_, 3u);
  EXPECT_EQ(extra, 5);
}

TEST_F(Restore, ARegionOfTheVersionThatIsNotProtectedIsWarnedAbout) {
  save_three(options());
  auto session = open();
  must(session.protect("step", step_));
  must(session.restore());
  EXPECT_TRUE(logged("'field'"));
}

TEST_F(Restore, AResizedArrayIsAnErrorUnlessAllowed) {
  save_three(options());
  auto session = open();
  std::vector<std::uint64_t> small(200);
  std::vector<std::uint64_t> large(400, 7);
  must(session.protect("field", std::span<std::uint64_t>(small)));
  expect_error(session.restore(), Code::invalid_argument,
               {"'field'", "2424", "1600", "allow_resized"});
  must(session.restore({.allow_resized = true}));
  const auto saved = noise(303, 3);
  EXPECT_TRUE(std::equal(small.begin(), small.end(), saved.begin()));

  must(session.protect("field", std::span<std::uint64_t>(large)));
  EXPECT_FALSE(session.restore());
  must(session.restore({.allow_resized = true}));
  EXPECT_TRUE(std::equal(saved.begin(), saved.end(), large.begin()));
  EXPECT_EQ(large[303], 7u) << "what the version does not have stays";
}

TEST_F(Restore, AnotherTypeIsAnErrorThatNamesBoth) {
  save_three(options());
  auto session = open();
  double step = 0;
  must(session.protect("step", step));
  expect_error(session.restore(), Code::invalid_argument, {"'step'", "u64", "f64"});
}

TEST_F(Restore, WorksInTheRunningSessionToo) {
  auto session = open();
  must(session.protect("step", step_));
  step_ = 1;
  take(session);
  step_ = 2;
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(step_, 1u);
}

TEST_F(Restore, WaitsForTheVersionInFlight) {
  make_worker_ = [] { return std::make_unique<HeldWorker>(); };
  auto session = open();
  must(session.protect("step", step_));
  step_ = 1;
  must(session.checkpoint());
  step_ = 2;
  EXPECT_EQ(must(session.restore()), 1u);
  EXPECT_EQ(step_, 1u);
}

TEST_F(Restore, RegionsMayAppearDisappearAndBecomeEmpty) {
  std::vector<std::uint64_t> a = noise(200, 1);
  std::vector<std::uint64_t> b = noise(200, 2);
  std::vector<std::uint64_t> c = noise(200, 3);
  {
    auto session = open();
    must(session.protect("a", a));
    must(session.protect("b", b));
    take(session);
    must(session.unprotect("b"));
    must(session.protect("c", c));
    a.clear();
    take(session);
    must(session.close());
  }
  auto session = open();
  std::vector<std::uint64_t> found_a(5);
  std::vector<std::uint64_t> found_c;
  must(session.protect("a", found_a));
  must(session.protect("c", found_c));
  EXPECT_EQ(must(session.restore()), 2u);
  EXPECT_TRUE(found_a.empty());
  EXPECT_EQ(found_c, c);
  must(session.protect("b", b));
  expect_error(session.restore(), Code::not_found, {"'b'"});
}

TEST_F(Restore, ARegionProtectedAgainElsewhereIsFilledThere) {
  save_three(options());
  auto session = open();
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  must(session.protect("step", first));
  must(session.protect("step", second));
  must(session.restore());
  EXPECT_EQ(first, 0u);
  EXPECT_EQ(second, 3u);
  second = 9;
  take(session);
  second = 0;
  must(session.restore());
  EXPECT_EQ(second, 9u);
}

TEST_F(Restore, ASessionWithoutRegionsTakesAndRestoresEmptyVersions) {
  auto session = open();
  EXPECT_EQ(take_ledger(session).protected_bytes, 0u);
  must(session.restore());
}

}  // namespace
}  // namespace belay::session
