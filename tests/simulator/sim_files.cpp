// SPDX-License-Identifier: Apache-2.0
#include "simulator/sim_files.hpp"

#include "base/try.hpp"

#include <string_view>
#include <utility>

namespace belay::simulator {

namespace {

/// The way of every operation of a process to what lies underneath.
struct Passage {
  World* world;
  Process* process;

  /// `operation(torn)` does the work.
  template <class Operation>
  auto pass(const char* what, const std::string& path, std::uint64_t bytes, Operation operation)
      -> decltype(operation(false)) {
    const Fate fate = world->point(*process);
    if (fate == Fate::fails) return killed(what, path);
    world->note(process->rank + 16 * static_cast<std::uint64_t>(what[0]) + 4096 * bytes);
    auto result = operation(fate == Fate::torn_last);
    world->trace("rank {} {}: {} {} {}: {}", process->rank, world->scheduler().task_name(), what,
                 path, bytes, result ? std::string("ok") : result.error().message());
    if (fate == Fate::completes) return result;
    world->strike();
    return killed(what, path);
  }

  static Unexpected killed(const char* what, const std::string& path) {
    return fail(Code::io, "{} {}: Input/output error (the simulated process was killed)", what,
                path);
  }
};

class SimFile final : public os::File {
 public:
  SimFile(Passage passage, std::string path, std::unique_ptr<os::File> under)
      : passage_(passage), path_(std::move(path)), under_(std::move(under)) {}

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return passage_.pass("write", path_, bytes.size(), [&](bool torn) {
      return under_->write(offset, torn ? bytes.first(part_of(bytes.size())) : bytes);
    });
  }
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override {
    return passage_.pass("read", path_, bytes.size(),
                         [&](bool) { return under_->read(offset, bytes); });
  }
  Result<void> sync() override {
    return passage_.pass("sync", path_, 0, [&](bool) { return under_->sync(); });
  }
  Result<void> reserve(std::uint64_t bytes) override {
    return passage_.pass("reserve", path_, bytes, [&](bool) { return under_->reserve(bytes); });
  }
  Result<void> truncate(std::uint64_t bytes) override {
    return passage_.pass("truncate", path_, bytes, [&](bool) { return under_->truncate(bytes); });
  }
  Result<std::uint64_t> size() override {
    return passage_.pass("size", path_, 0, [&](bool) { return under_->size(); });
  }
  Result<void> close() override {
    return passage_.pass("close", path_, 0, [&](bool) { return under_->close(); });
  }

 private:
  std::size_t part_of(std::size_t bytes) const {
    const std::size_t units = bytes / os::kDirectAlignment;
    return units == 0 ? 0 : passage_.world->random().below(units) * os::kDirectAlignment;
  }

  Passage passage_;
  std::string path_;
  std::unique_ptr<os::File> under_;
};

class SimLock final : public os::Lock {
 public:
  SimLock(Process& process, std::unique_ptr<os::Lock> under)
      : process_(&process), under_(std::move(under)) {
    process_->locks.insert(&under_);
  }
  ~SimLock() override { process_->locks.erase(&under_); }

 private:
  Process* process_;
  std::unique_ptr<os::Lock> under_;
};

class SimFiles final : public os::Files {
 public:
  SimFiles(World& world, Process& process, os::Files& under)
      : passage_{&world, &process}, under_(&under) {}

  Result<std::unique_ptr<os::File>> create(const std::string& path, bool direct) override {
    return wrap(
        path, passage_.pass("create", path, 0, [&](bool) { return under_->create(path, direct); }));
  }
  Result<std::unique_ptr<os::File>> create_from(const std::string& retired, const std::string& path,
                                                bool direct) override {
    return wrap(path, passage_.pass("create from", path, 0, [&](bool) {
      return under_->create_from(retired, path, direct);
    }));
  }
  Result<std::unique_ptr<os::File>> open(const std::string& path, bool direct) override {
    return wrap(path,
                passage_.pass("open", path, 0, [&](bool) { return under_->open(path, direct); }));
  }
  Result<std::uint64_t> touch(const std::string& path) override {
    return passage_.pass("touch", path, 0, [&](bool) { return under_->touch(path); });
  }
  Result<void> rename(const std::string& from, const std::string& to) override {
    return passage_.pass("rename to", to, 0,
                         [&](bool) { return removing(from, under_->rename(from, to)); });
  }
  Result<void> rename_new(const std::string& from, const std::string& to) override {
    return passage_.pass("rename_new to", to, 0,
                         [&](bool) { return under_->rename_new(from, to); });
  }
  Result<void> remove(const std::string& path) override {
    return passage_.pass("remove", path, 0,
                         [&](bool) { return removing(path, under_->remove(path)); });
  }
  Result<void> sync_directory(const std::string& path) override {
    return passage_.pass("sync_directory", path, 0,
                         [&](bool) { return under_->sync_directory(path); });
  }
  Result<void> make_directory(const std::string& path) override {
    return passage_.pass("make_directory", path, 0,
                         [&](bool) { return under_->make_directory(path); });
  }
  Result<std::vector<os::DirectoryEntry>> list(const std::string& path) override {
    return passage_.pass("list", path, 0, [&](bool) { return under_->list(path); });
  }
  Result<os::Space> space(const std::string& path) override {
    return passage_.pass("space", path, 0, [&](bool) { return under_->space(path); });
  }
  Result<std::unique_ptr<os::Lock>> lock(const std::string& path,
                                         const std::string& owner) override {
    auto taken = passage_.pass("lock", path, 0, [&](bool) { return under_->lock(path, owner); });
    if (!taken) return taken;
    return std::unique_ptr<os::Lock>(
        std::make_unique<SimLock>(*passage_.process, std::move(*taken)));
  }

 private:
  Result<void> removing(const std::string& path, Result<void> done) const {
    if (done) passage_.world->removed(path);
    return done;
  }
  Result<std::unique_ptr<os::File>> wrap(const std::string& path,
                                         Result<std::unique_ptr<os::File>> opened) {
    if (!opened) return opened;
    return std::unique_ptr<os::File>(std::make_unique<SimFile>(passage_, path, std::move(*opened)));
  }

  Passage passage_;
  os::Files* under_;
};

}  // namespace

std::unique_ptr<os::Files> make_sim_files(World& world, Process& process, os::Files& under) {
  return std::make_unique<SimFiles>(world, process, under);
}

}  // namespace belay::simulator
