// SPDX-License-Identifier: Apache-2.0
// Reads stores through the public API and prints what read_store.py prints about the same versions,
// as far as programs can see it: one line of JSON for each store. Opening a store writes to it, so
// give it copies.
//
//   dump_store RANKS APPLICATION STORE...
#include <belay/belay.hpp>

#include "conformance/thread_ranks.hpp"
#include "golden/region_json.hpp"
#include "session/seams.hpp"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace belay::golden {
namespace {

/// Memory for whatever a version says that a region was.
class AnyRegion final : public RegionAccess {
 public:
  AnyRegion(const RegionInfo& info, std::vector<std::byte>& memory)
      : type_(info.type), shape_(info.shape), memory_(&memory) {
    memory.assign(info.bytes, std::byte{0xa5});
  }
  ElementType type() const override { return type_; }
  Shape shape() const override { return shape_; }
  Result<std::span<const std::byte>> view() override {
    return std::span<const std::byte>(*memory_);
  }
  Result<std::span<std::byte>> room(std::uint64_t bytes) override {
    memory_->resize(bytes);
    return std::span<std::byte>(*memory_);
  }

 private:
  ElementType type_;
  Shape shape_;
  std::vector<std::byte>* memory_;
};

/// This rank's part of a version; collective. Null if it cannot be restored.
Json restore_version(Session& session, const VersionInfo& version) {
  std::vector<std::vector<std::byte>> memory(version.regions.size());
  for (std::size_t i = 0; i < memory.size(); ++i) {
    auto access = std::make_unique<AnyRegion>(version.regions[i], memory[i]);
    if (!session.protect(version.regions[i].name, std::move(access))) return nullptr;
  }
  const auto restored = session.restore(version.version);
  Json regions = Json::array();
  for (std::size_t i = 0; i < memory.size(); ++i) {
    regions.push_back(describe(version.regions[i], memory[i]));
    if (!session.unprotect(version.regions[i].name)) return nullptr;
  }
  if (!restored) return nullptr;
  return {{"time_ns", version.time_ns},
          {"written_bytes", version.ledger.written_bytes},
          {"regions", std::move(regions)}};
}

/// What all ranks of one store found.
struct Dump {
  std::mutex mutex;
  std::map<Version, Json> versions;
  std::string error;
};

void dump_rank(std::unique_ptr<ranks::Group>& group, Options options, Dump& dump) {
  session::Seams seams = session::system_seams();
  seams.environment.clear();
  seams.hash_threads = 1;
  seams.read_threads = 1;
  const Rank rank = group->rank();
  auto session = session::open_session(
      seams,
      [&](std::uint64_t, os::Clock&) {
        return Result<std::unique_ptr<ranks::Group>>(std::move(group));
      },
      std::move(options));
  if (!session) {
    const std::lock_guard guard(dump.mutex);
    dump.error = session.error().message();
    return;
  }
  const auto latest = session->latest();
  for (const VersionInfo& version : session->versions()) {
    const Json mine = restore_version(*session, version);
    if (mine.is_null()) continue;
    const std::lock_guard guard(dump.mutex);
    Json& all = dump.versions[version.version];
    all["run"] = version.run;
    all["version"] = version.version;
    all["parent"] = version.parent;
    all["ranks"][std::to_string(rank)] = mine;
  }
  const auto closed = session->close();
  const std::lock_guard guard(dump.mutex);
  if (!closed) dump.error = closed.error().message();
  if (!latest) dump.error = "latest() says that no version was ever taken";
}

void dump_store(Rank ranks, const std::string& application, const std::string& store) {
  Dump dump;
  ranks::play_ranks(ranks, ranks::kPatience, [&](std::unique_ptr<ranks::Group>& group) {
    dump_rank(group, {.store = store, .application = application, .background = "inline"}, dump);
  });
  Json versions = Json::array();
  for (auto& [number, version] : dump.versions) versions.push_back(std::move(version));
  const Json line = {{"versions", std::move(versions)}, {"error", dump.error}};
  std::printf("%s\n", line.dump().c_str());
  std::fflush(stdout);
}

}  // namespace
}  // namespace belay::golden

int main(int count, char** arguments) {
  if (count < 4 || std::atoi(arguments[1]) < 1) {
    std::fprintf(stderr, "use: dump_store RANKS APPLICATION COPY_OF_STORE...\n");
    return 2;
  }
  const auto ranks = static_cast<belay::Rank>(std::atoi(arguments[1]));
  for (int i = 3; i < count; ++i) belay::golden::dump_store(ranks, arguments[2], arguments[i]);
}
