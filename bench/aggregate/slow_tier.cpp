// SPDX-License-Identifier: Apache-2.0
#include "aggregate/slow_tier.hpp"

#include "measure/must.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace belay::bench {
namespace {

using Kind = os::Operation::Kind;
constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond +
         static_cast<std::uint64_t>(time.tv_nsec);
}

void sleep_until(std::uint64_t ns) {
  const timespec time{static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) == EINTR) {
  }
}

bool is_of_names(Kind kind) {
  switch (kind) {
    case Kind::create:
    case Kind::open:
    case Kind::touch:
    case Kind::rename:
    case Kind::rename_new:
    case Kind::remove:
    case Kind::sync_directory:
    case Kind::make_directory:
    case Kind::list:
    case Kind::lock:
      return true;
    default:
      return false;
  }
}

}  // namespace

struct SlowTier::State {
  std::atomic<std::uint64_t> bytes_per_s, name_ns;
  std::atomic<std::uint64_t> bytes_free_at_ns, names_free_at_ns;
  std::atomic<std::uint64_t> written_bytes, read_bytes, name_operations;
};

SlowTier::SlowTier(const std::filesystem::path& state, const std::filesystem::path& directory)
    : prefix_(std::filesystem::absolute(directory).string()),
      files_(os::posix_files(), [this](const os::Operation& operation) {
        charge(operation);
        return os::Action{};
      }) {
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);
  const int file = ::open(state.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file < 0 || ::ftruncate(file, sizeof(State)) != 0)
    die(fmt::format("create {}: {}", state.string(), std::strerror(errno)));
  void* const memory = ::mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) die(fmt::format("map {}: {}", state.string(), std::strerror(errno)));
  ::close(file);
  state_ = static_cast<State*>(memory);  // a new file is all zeros: nothing is slow
}

SlowTier::~SlowTier() { ::munmap(state_, sizeof(State)); }

void SlowTier::begin(const Pace& pace) {
  state_->bytes_per_s = pace.bytes_per_s;
  state_->name_ns = pace.name_ns;
  state_->written_bytes = state_->read_bytes = state_->name_operations = 0;
}

Traffic SlowTier::traffic() const {
  return {state_->written_bytes, state_->read_bytes, state_->name_operations};
}

void SlowTier::charge(const os::Operation& operation) {
  if (operation.path.compare(0, prefix_.size(), prefix_) != 0) return;
  if (is_of_names(operation.kind)) {
    ++state_->name_operations;
    wait_turn(state_->names_free_at_ns, state_->name_ns);
  }
  if (operation.kind != Kind::write && operation.kind != Kind::read) return;
  (operation.kind == Kind::write ? state_->written_bytes : state_->read_bytes) += operation.bytes;
  const std::uint64_t rate = state_->bytes_per_s;
  if (rate != 0) wait_turn(state_->bytes_free_at_ns, operation.bytes * kSecond / rate);
}

/// One after another: each takes its share of time behind those that came before.
void SlowTier::wait_turn(std::atomic<std::uint64_t>& free_at_ns, std::uint64_t takes_ns) const {
  if (takes_ns == 0) return;
  const std::uint64_t now = now_ns();
  std::uint64_t free_at = free_at_ns.load(), done = 0;
  do done = std::max(now, free_at) + takes_ns;
  while (!free_at_ns.compare_exchange_weak(free_at, done));
  sleep_until(done);
}

}  // namespace belay::bench
