// SPDX-License-Identifier: Apache-2.0
// Whose store it is: locks, runs, hosts, applications, and files of others.
#include "format/manifest.hpp"
#include "session/session_test.hpp"
#include "store/tier.hpp"

namespace belay::session {
namespace {

class StoreIdentity : public SessionTest {
 protected:
  void save_one(const Options& options) {
    auto session = open(options);
    must(session.protect("step", step_));
    take(session);
    must(session.close());
  }
  void put(const std::string& path, std::string_view text) {
    must(memory_.make_directory(path.substr(0, path.rfind('/'))));
    const auto file = must(memory_.create(path, false));
    must(file->write(0, std::as_bytes(std::span(text.data(), text.size()))));
    must(file->sync());
  }
  void copy(const std::string& from, const std::string& to) {
    const auto bytes = must(memory_.peek(from));
    put(to, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }

  std::uint64_t step_ = 1;
};

TEST_F(StoreIdentity, AStoreInUseIsBusyAfterTenSecondsAndSaysByWhom) {
  auto first = open();
  const auto second = try_open();
  expect_error(second, Code::busy, {"/store/node-host-a", "host host-a", "pid 4711", "`store`"});
  EXPECT_GE(clock_.slept_ns(), 9'000'000'000u);
  EXPECT_LE(clock_.slept_ns(), 12'000'000'000u);
  must(first.close());
  EXPECT_TRUE(try_open());
}

TEST_F(StoreIdentity, AStoreThatIsReleasedInTimeIsOpened) {
  auto first = std::make_unique<Session>(open());
  std::uint64_t looks = 0;
  clock_.on_look = [&] {
    if (++looks == 20) first.reset();
  };
  EXPECT_TRUE(try_open());
  clock_.on_look = nullptr;
  EXPECT_LT(clock_.slept_ns(), 9'000'000'000u);
}

TEST_F(StoreIdentity, AnotherApplicationIsRefusedAndChangesNothing) {
  save_one(options());
  const auto before = memory_.paths();
  Options other = options();
  other.application = "other";
  expect_error(try_open(other), Code::invalid_argument, {"'test'", "'other'", "`store`"});
  EXPECT_EQ(memory_.paths(), before);
  EXPECT_TRUE(try_open());
}

TEST_F(StoreIdentity, AMixtureOfStoresIsRefusedAndChangesNothing) {
  save_one(options());
  Options other = options();
  other.store = "/other";
  save_one(other);
  save_one(other);
  copy("/other/node-host-a/manifest-000002-0000000002-000000",
       "/store/node-host-a/manifest-000002-0000000002-000000");
  const auto before = memory_.paths();
  expect_error(try_open(), Code::invalid_argument, {"mixture"});
  EXPECT_EQ(memory_.paths(), before);
}

TEST_F(StoreIdentity, AStraysRunRecordIsAMixtureToo) {
  save_one(options());
  Options other = options();
  other.store = "/other";
  save_one(other);
  copy("/other/node-host-a/run-000001", "/store/node-host-a/run-000009");
  expect_error(try_open(), Code::invalid_argument, {"mixture"});
}

TEST_F(StoreIdentity, ForeignFilesAreLeftAlone) {
  save_one(options());
  const std::vector<std::string> foreign = {
      "/store/notes.txt",
      "/store/node-host-a/README",
      "/store/node-host-a/manifest-1-1-0",
      "/store/node-host-a/segment-000001-0000000001-000000.bak",
      "/store/node-host-a/..hidden",
      "/store/node-host-a/directory/file",
      "/store/nodes/file"};
  for (const std::string& path : foreign) put(path, "not Belay's");
  {
    auto session = open();
    must(session.protect("step", step_));
    step_ = 0;
    must(session.restore());
    EXPECT_EQ(step_, 1u);
    for (int i = 0; i < 5; ++i) take(session);
    must(session.close());
  }
  for (const std::string& path : foreign) EXPECT_TRUE(memory_.peek(path)) << path;
}

TEST_F(StoreIdentity, AChangedHostNameFindsItsVersionsAndRetiresThemLater) {
  std::vector<std::uint64_t> numbers = noise(20 * kPerBlock, 1);
  {
    auto session = open();
    must(session.protect("numbers", numbers));
    take(session);
    must(session.close());
  }
  host_ = "host-b";
  {
    auto session = open();
    EXPECT_EQ(session.latest(), 1u);
    std::vector<std::uint64_t> found;
    must(session.protect("numbers", found));
    must(session.restore());
    EXPECT_EQ(found, numbers);
    EXPECT_EQ(take_ledger(session).written_bytes, 0u) << "the old directory's blocks are safe";
    for (int i = 0; i < 4; ++i) {
      found = noise(20 * kPerBlock, 10u + static_cast<unsigned>(i));
      take(session);
    }
    must(session.close());
  }
  for (const std::string& path : memory_.paths()) {
    const bool old_version = path.find("node-host-a/manifest-") != std::string::npos ||
                             path.find("node-host-a/segment-") != std::string::npos;
    EXPECT_FALSE(old_version) << path;
  }
  host_ = "host-c";
  EXPECT_EQ(open().latest(), 6u);
}

TEST_F(StoreIdentity, AnAdoptedDirectoryIsLockedToo) {
  save_one(options());
  const auto lock = must(memory_.lock("/store/node-host-a/lock", "host host-a pid 1"));
  host_ = "host-b";
  expect_error(try_open(), Code::busy, {"node-host-a", "pid 1"});
}

TEST_F(StoreIdentity, AStragglerOfAnEarlierRunStopsAtItsNextVersion) {
  auto session = open();
  must(session.protect("step", step_));
  take(session);
  // A later run has claimed the store; this process has not noticed yet.
  const auto tier = store::make_local_tier(memory_, "/store/node-host-a");
  const auto record = must(format::decode_run_record(
      must(store::read_whole(*tier, format::run_name(1), format::check_run_record_front))));
  RunRecord later = record;
  later.run = 2;
  must(store::put_whole(*tier, format::run_name(2), format::encode_run_record(later), true));
  step_ = 2;
  expect_error(session.checkpoint(), Code::busy, {"run 2", "run 1"});
  EXPECT_EQ(session.latest(), 1u);
  EXPECT_FALSE(memory_.peek("/store/node-host-a/manifest-000001-0000000002-000000"));
}

TEST_F(StoreIdentity, DamagedRunRecordsAreWarnedAboutAndTheVersionsComeBack) {
  save_one(options());
  for (const std::string& path : files_named("run-")) must(memory_.flip(path, 300));
  must(memory_.flip("/store/node-host-a/settled", 300));
  auto session = open();
  EXPECT_TRUE(logged("run-000001"));
  EXPECT_EQ(session.latest(), 1u);
  must(session.protect("step", step_));
  step_ = 0;
  must(session.restore());
  EXPECT_EQ(step_, 1u);
  take(session);
}

TEST_F(StoreIdentity, AStoreOfWhichNothingCanBeReadIsNotOpened) {
  save_one(options());
  for (const std::string& path : memory_.paths())
    if (!path.ends_with("lock") && !must(memory_.peek(path)).empty()) must(memory_.flip(path, 70));
  expect_error(try_open(), Code::corruption, {"move it away"});
}

TEST_F(StoreIdentity, AnEmptyRunRecordOfAKilledOpeningIsNoTrace) {
  put("/store/node-host-a/run-000001.tmp", "");
  auto session = open();
  EXPECT_EQ(session.latest(), std::nullopt);
  must(session.protect("step", step_));
  take(session);
}

TEST_F(StoreIdentity, HostileApplicationsAndNodesAreRefused) {
  for (const std::string& name :
       {std::string("a\nb"), std::string("\xff"), std::string(256, 'x')}) {
    Options hostile = options();
    hostile.application = name;
    expect_error(try_open(hostile), Code::invalid_argument, {"application"});
  }
  for (const std::string& name : {std::string("../up"), std::string(".."), std::string("a/b"),
                                  std::string("a\0b", 3), std::string(251, 'x')}) {
    Options hostile = options();
    hostile.node = name;
    expect_error(try_open(hostile), Code::invalid_argument, {"node"});
  }
  EXPECT_TRUE(memory_.paths().empty());
}

TEST_F(StoreIdentity, ANodeNameReplacesTheHosts) {
  Options named = options();
  named.node = "rack 7";
  save_one(named);
  EXPECT_FALSE(files_named("manifest-").empty());
  for (const std::string& path : memory_.paths())
    EXPECT_TRUE(path.starts_with("/store/node-rack 7/")) << path;
}

TEST_F(StoreIdentity, WrongOptionsAreRefusedBeforeAnythingIsWritten) {
  Options wrong = options();
  wrong.block = "13";
  expect_error(try_open(wrong), Code::invalid_argument, {"block", "13"});
  wrong = options();
  wrong.redundancy = "replicas:2";
  expect_error(try_open(wrong), Code::invalid_argument, {"redundancy", "nodes"});
  EXPECT_TRUE(memory_.paths().empty());
}

}  // namespace
}  // namespace belay::session
