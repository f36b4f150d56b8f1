// SPDX-License-Identifier: Apache-2.0
// Names that try to leave the store, or to do harm where they are shown: of regions, applications,
// nodes and stores, from code, environment and file.
#include "session/session_test.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace belay::session {
namespace {

namespace fs = std::filesystem;

enum class Source { code, environment, file };
constexpr Source kSources[] = {Source::code, Source::environment, Source::file};

const std::string kNul("a\0b", 3);
const std::string k300Bytes(300, 'x');
const std::string kControl = "a\x1b[31m\nb";

class HostileNames : public SessionTest {
 protected:
  HostileNames() {
    std::string pattern = testing::TempDir() + "belay-names-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
    fs::create_directories(inner());
    before_ = fs::current_path();
    fs::current_path(inner());
  }
  ~HostileNames() override {
    fs::current_path(before_);
    std::error_code ignored;
    fs::remove_all(root_, ignored);
  }
  fs::path inner() const { return root_ / "a" / "b"; }
  std::string absolute() const { return root_ / "escaped"; }

  /// Opens a store in inner() with one more option, said by `source`.
  Result<Session> open_with(Source source, const std::string& option, const std::string& value) {
    Seams seams = system_seams();
    seams.clock = &clock_;
    seams.hash_threads = 1;
    Options options = SessionTest::options();
    options.store = {};
    options.application = {};
    seams.environment.clear();
    if (option != "store") seams.environment.push_back({"BELAY_STORE", "store"});
    std::string variable = "BELAY_" + option;
    std::transform(variable.begin(), variable.end(), variable.begin(), ::toupper);
    if (source == Source::environment) seams.environment.push_back({variable, value});
    if (source == Source::file) {
      std::ofstream(root_ / "belay.toml") << option << " = " << toml_text(value) << "\n";
      seams.environment.push_back({"BELAY_CONFIG", root_ / "belay.toml"});
    }
    if (source == Source::code && option == "store") options.store = value;
    if (source == Source::code && option == "application") options.application = value;
    if (source == Source::code && option == "node") options.node = value;
    return open_session(
        seams,
        [](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
          return ranks::make_solo_group();
        },
        std::move(options));
  }

  static std::string toml_text(const std::string& value) {
    std::string text = "\"";
    for (const char c : value)
      text += c < ' ' ? fmt::format("\\u{:04x}", static_cast<unsigned>(c)) : std::string(1, c);
    return text + "\"";
  }

  void refused(const std::string& option, const std::string& value) {
    for (const Source source : kSources) {
      const auto opened = open_with(source, option, value);
      expect_error(opened, Code::invalid_argument, {option.c_str(), "must be"});
      if (opened) continue;
      for (const char c : opened.error().message()) EXPECT_TRUE(c >= ' ') << "shown raw";
    }
    EXPECT_TRUE(fs::is_empty(inner()));
    expect_nothing_outside();
  }

  void expect_nothing_outside() {
    for (const auto& entry : fs::directory_iterator(root_))
      EXPECT_TRUE(entry.path() == root_ / "a" || entry.path() == root_ / "belay.toml") << entry;
    EXPECT_EQ(std::distance(fs::directory_iterator(root_ / "a"), {}), 1);
  }

  /// Saves and restores under this name of an application, from each source.
  void works_as_application(const std::string& name) {
    for (const Source source : kSources) {
      int value = 7;
      {
        auto session = must(open_with(source, "application", name));
        must(session.protect("value", value));
        take(session);
        must(session.close());
      }
      value = 0;
      auto session = must(open_with(source, "application", name));
      must(session.protect("value", value));
      must(session.restore());
      EXPECT_EQ(value, 7);
      fs::remove_all(inner() / "store");
    }
    expect_nothing_outside();
  }

  void region_refused(const std::string& name) {
    auto session = must(open_with(Source::code, "application", "test"));
    int value = 1;
    std::vector<int> vector;
    const auto save = [](Writer&) {};
    const auto load = [](Reader&) {};
    for (const auto& done :
         {session.protect(name, value), session.protect(name, vector),
          session.protect(name, std::span<int>(&value, 1), {1}), session.protect(name, save, load)})
      expect_error(done, Code::invalid_argument, {"region"});
    expect_error(session.unprotect(name), Code::not_found, {"unprotect"});
    EXPECT_FALSE(session.restore({.regions = {name}}));
    expect_nothing_outside();
  }

  /// Only a name, and never a path.
  void region_comes_back(const std::string& name) {
    int value = 7;
    {
      auto session = must(open_with(Source::code, "application", "test"));
      must(session.protect(name, value));
      take(session);
      must(session.close());
    }
    auto session = must(open_with(Source::code, "application", "test"));
    value = 0;
    must(session.protect(name, value));
    must(session.restore());
    EXPECT_EQ(value, 7);
    expect_nothing_outside();
  }

  fs::path root_;
  fs::path before_;
};

TEST_F(HostileNames, ARegionNamedLikeAPathUpwardsIsOnlyAName) {
  region_comes_back("../../escaped");
}
TEST_F(HostileNames, ARegionNamedLikeAnAbsolutePathIsOnlyAName) { region_comes_back(absolute()); }
TEST_F(HostileNames, ARegionWithNulIsRefused) { region_refused(kNul); }
TEST_F(HostileNames, ARegionOf300BytesIsRefused) { region_refused(k300Bytes); }
TEST_F(HostileNames, ARegionWithControlCharactersIsRefused) { region_refused(kControl); }

TEST_F(HostileNames, AnApplicationNamedLikeAPathUpwardsIsOnlyAName) {
  works_as_application("../../escaped");
}
TEST_F(HostileNames, AnApplicationNamedLikeAnAbsolutePathIsOnlyAName) {
  works_as_application(absolute());
}
TEST_F(HostileNames, AnApplicationWithNulIsRefused) { refused("application", kNul); }
TEST_F(HostileNames, AnApplicationOf300BytesIsRefused) { refused("application", k300Bytes); }
TEST_F(HostileNames, AnApplicationWithControlCharactersIsRefused) {
  refused("application", kControl);
}

TEST_F(HostileNames, ANodeNamedLikeAPathUpwardsIsRefused) { refused("node", "../../escaped"); }
TEST_F(HostileNames, ANodeNamedLikeAnAbsolutePathIsRefused) { refused("node", absolute()); }
TEST_F(HostileNames, ANodeWithNulIsRefused) { refused("node", kNul); }
TEST_F(HostileNames, ANodeOf300BytesIsRefused) { refused("node", k300Bytes); }
TEST_F(HostileNames, ANodeWithControlCharactersIsRefused) { refused("node", kControl); }

TEST_F(HostileNames, AStoreUpwardsOrAbsoluteIsWhereItsPathSays) {
  for (const Source source : kSources) {
    for (const std::string& path : {std::string("../../escaped"), absolute()}) {
      must(open_with(source, "store", path));
      EXPECT_TRUE(fs::is_directory(root_ / "escaped"));
      EXPECT_TRUE(fs::is_empty(inner()));
      fs::remove_all(root_ / "escaped");
      expect_nothing_outside();
    }
  }
}
TEST_F(HostileNames, AStoreWithNulIsRefused) { refused("store", kNul); }
TEST_F(HostileNames, AStoreOf300BytesIsTooLongForTheFileSystem) {
  for (const Source source : kSources)
    expect_error(open_with(source, "store", k300Bytes), Code::io,
                 {"File name too long", "choose a shorter `store`"});
  EXPECT_TRUE(fs::is_empty(inner()));
}
TEST_F(HostileNames, AStoreWithControlCharactersIsRefused) { refused("store", kControl); }

}  // namespace
}  // namespace belay::session
