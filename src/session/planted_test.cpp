// SPDX-License-Identifier: Apache-2.0
// Links, pipes, devices, directories and sockets where files of a store belong: a session neither
// follows them, nor waits for them, nor loses what it saved; what it cannot do it says with the
// name.
#include "session/session_test.hpp"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace belay::session {
namespace {

namespace fs = std::filesystem;

/// Puts a thing of this kind at `path`; false if this user may not.
using Plant = bool (*)(const fs::path& path, const fs::path& outside);

struct Kind {
  const char* name;
  Plant plant;
};

bool plant_socket(const fs::path& path, const fs::path&) {
  const int directory = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const int endpoint = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // By way of the descriptor, since the address has room for short paths only.
  const std::string name =
      "/proc/self/fd/" + std::to_string(directory) + "/" + path.filename().string();
  const bool fits = name.size() < sizeof address.sun_path;
  if (fits) name.copy(address.sun_path, sizeof address.sun_path - 1);
  const bool bound =
      fits && ::bind(endpoint, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  ::close(endpoint);
  ::close(directory);
  return bound;
}

constexpr Kind kKinds[] = {
    {"a link to a file outside",
     [](const fs::path& path, const fs::path& outside) {
       fs::create_symlink(outside / "file", path);
       return true;
     }},
    {"a link to a directory outside",
     [](const fs::path& path, const fs::path& outside) {
       fs::create_symlink(outside / "directory", path);
       return true;
     }},
    {"a link to nothing",
     [](const fs::path& path, const fs::path& outside) {
       fs::create_symlink(outside / "nothing", path);
       return true;
     }},
    {"a pipe",
     [](const fs::path& path, const fs::path&) { return ::mkfifo(path.c_str(), 0600) == 0; }},
    {"a directory",
     [](const fs::path& path, const fs::path&) { return fs::create_directory(path); }},
    {"a full directory",
     [](const fs::path& path, const fs::path&) {
       return fs::create_directories(path / "manifest-000001-0000000002-000000");
     }},
    {"a socket", plant_socket},
    {"a device",
     [](const fs::path& path, const fs::path&) {
       return ::mknod(path.c_str(), S_IFCHR | 0600, ::makedev(1, 5)) == 0;  // endless zeros
     }},
};

/// What was there when a session with two versions had been closed, and what the next one makes.
constexpr const char* kOld[] = {"run-000001", "settled", "closed-000001-0000000002",
                                "manifest-000001-0000000002-000000",
                                "segment-000001-0000000002-000000"};
constexpr const char* kNew[] = {"run-000002",
                                "run-000002.tmp",
                                "settled.tmp",
                                "manifest-000002-0000000003-000000",
                                "manifest-000002-0000000003-000000.tmp",
                                "segment-000002-0000000003-000000",
                                "closed-000002-0000000003",
                                "closed-000002-0000000003.tmp"};

class Planted : public SessionTest {
 protected:
  /// A store with two versions, and things outside of it that must stay as they are.
  void start() {
    // A hundred stores: where syncs cost nothing, if there is such a place.
    const bool memory = ::access("/dev/shm", W_OK) == 0;
    std::string pattern = (memory ? "/dev/shm/" : testing::TempDir()) + "belay-planted-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    root_ = pattern;
    files_ = &os::posix_files();
    fs::create_directories(outside() / "directory");
    std::ofstream(outside() / "file") << "mine";
    auto session = open(real_options());
    must(session.protect("numbers", numbers_));
    for (saved_.clear(); saved_.size() < 2; saved_.push_back(numbers_)) {
      ++numbers_[0];
      take(session);
    }
    must(session.close());
  }
  void end() {
    EXPECT_EQ(fs::file_size(outside() / "file"), 4u);
    EXPECT_TRUE(fs::is_empty(outside() / "directory"));
    EXPECT_FALSE(fs::exists(outside() / "nothing"));
    EXPECT_EQ(std::distance(fs::directory_iterator(outside()), {}), 2);
    fs::remove_all(root_);
  }
  Options real_options() const {
    Options options = SessionTest::options();
    options.store = store();
    return options;
  }
  fs::path store() const { return root_ / "store"; }
  fs::path node() const { return store() / "node-host-a"; }
  fs::path outside() const { return root_ / "outside"; }

  /// Plants every kind of thing at `place` in a store of its own each time, and calls `look`.
  void each_kind(const fs::path& place, const std::function<void()>& look) {
    for (const Kind& kind : kKinds) {
      start();
      const fs::path path = store() / place;
      if (fs::exists(path)) fs::rename(path, root_ / "moved away");
      if (kind.plant(path, outside())) {
        SCOPED_TRACE(testing::Message() << kind.name << " at " << place);
        look();
      }
      end();
    }
  }

  /// Says where the thing is, unless all goes well in spite of it.
  template <class T>
  void expect_clear(const Result<T>& result, const fs::path& place) {
    if (result) return;
    const std::string& message = result.error().message();
    EXPECT_NE(message.find(place.filename().string()), std::string::npos) << message;
    EXPECT_NE(message.find("move it away"), std::string::npos) << message;
  }

  fs::path root_;
  std::vector<std::uint64_t> numbers_ = noise(20 * kPerBlock, 1);
  std::vector<std::vector<std::uint64_t>> saved_;
};

TEST_F(Planted, InThePlaceOfAnOldFileOpenCheckpointAndRestoreNeitherFollowNorWait) {
  for (const char* name : kOld) {
    each_kind(fs::path("node-host-a") / name, [&] {
      auto session = open(real_options());
      std::vector<std::uint64_t> found;
      must(session.protect("numbers", found));
      const Version restored = must(session.restore());
      const bool version_is_lost =
          std::string_view(name).find("0000000002-000000") != std::string_view::npos;
      EXPECT_EQ(restored, version_is_lost ? 1u : 2u);
      EXPECT_EQ(found, saved_[restored - 1]);
      ++found[1];
      EXPECT_GT(take(session), restored);
      must(session.close());
    });
  }
}

TEST_F(Planted, InThePlaceOfANewFileOpenCheckpointAndRestoreNeitherFollowNorWait) {
  for (const char* name : kNew) {
    each_kind(fs::path("node-host-a") / name, [&] {
      std::vector<std::uint64_t> found;
      {
        auto session = try_open(real_options());
        expect_clear(session, name);
        if (!session) return;
        must(session->protect("numbers", found));
        EXPECT_EQ(must(session->restore()), 2u);
        EXPECT_EQ(found, saved_[1]);
        ++found[1];
        expect_clear(session->checkpoint(), name);
        expect_clear(session->wait(), name);
        expect_clear(session->close(), name);
      }
      // Whatever failed has cost nothing that was there.
      auto session = try_open(real_options());
      expect_clear(session, name);
      if (!session) return;
      std::vector<std::uint64_t> again;
      must(session->protect("numbers", again));
      const Version restored = must(session->restore());
      EXPECT_EQ(again, restored == 2 ? saved_[1] : found);
    });
  }
}

TEST_F(Planted, InThePlaceOfTheLockIsRefusedAsCorruption) {
  each_kind("node-host-a/lock", [&] {
    expect_error(try_open(real_options()), Code::corruption, {"lock", "not a regular file"});
  });
}

TEST_F(Planted, InThePlaceOfTheNodesDirectoryNothingIsWrittenElsewhere) {
  each_kind("node-host-a", [&] {
    const bool directory = fs::symlink_status(node()).type() == fs::file_type::directory;
    const auto opened = try_open(real_options());
    if (directory) return expect_clear(opened, node());
    ASSERT_FALSE(opened);
    const Code code = fs::is_symlink(node()) ? Code::corruption : Code::invalid_argument;
    expect_error(opened, code, {node().c_str(), "move it away"});
  });
}

TEST_F(Planted, InThePlaceOfAnotherNodesDirectoryIsPassedOver) {
  each_kind("node-host-b", [&] {
    auto session = open(real_options());
    std::vector<std::uint64_t> found;
    must(session.protect("numbers", found));
    EXPECT_EQ(must(session.restore()), 2u);
    EXPECT_EQ(found, saved_[1]);
  });
}

TEST_F(Planted, InThePlaceOfTheStoreWhatIsNoDirectoryIsRefused) {
  for (const Kind& kind : kKinds) {
    start();
    Options options = real_options();
    options.store = root_ / "planted";
    if (kind.plant(root_ / "planted", outside())) {
      SCOPED_TRACE(kind.name);
      // The path of a store is the user's own: a link to a directory is as good as one.
      if (!fs::is_directory(root_ / "planted"))
        expect_error(try_open(options),
                     fs::is_symlink(root_ / "planted") && !fs::exists(root_ / "planted")
                         ? Code::not_found
                         : Code::invalid_argument,
                     {"planted"});
      else
        EXPECT_TRUE(try_open(options));
    }
    fs::remove_all(outside() / "directory" / "node-host-a");
    end();
  }
}

}  // namespace
}  // namespace belay::session
