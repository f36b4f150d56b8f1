// SPDX-License-Identifier: Apache-2.0
// Writes a golden store: the same bytes on every machine, through the library as programs use it.
// Only what a real store takes from outside (clock, random numbers, host, process) is fixed.
//
//   make_store NAME DIRECTORY     NAME: one of those in main(); DIRECTORY must not exist
#include <belay/belay.hpp>

#include "conformance/thread_ranks.hpp"
#include "inspect/copied_store_test.hpp"
#include "session/seams.hpp"

#include <array>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace belay::golden {

struct Particle {
  double x = 0;
  double y = 0;
  std::uint32_t id = 0;
  float weight = 0;
};

struct Pixel {
  std::uint8_t red = 0, green = 0, blue = 0;
};

}  // namespace belay::golden

template <>
struct belay::TypeName<belay::golden::Particle> {
  static constexpr const char* value = "golden::Particle";
};

namespace belay::golden {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kFirstTimeNs = 1'700'000'000 * kSecond;

/// Durations are zero: the ledgers of golden stores must not depend on how often time is asked.
class FixedClock final : public os::Clock {
 public:
  std::uint64_t now_ns() override { return 0; }
  std::int64_t wall_ns() override { return wall_ns_; }
  void sleep_ns(std::uint64_t) override {}
  void pass_a_minute() { wall_ns_ += 60 * kSecond; }

 private:
  std::int64_t wall_ns_ = kFirstTimeNs;
};

/// The first number names the job in lock files, the next two the store, the fourth is the seed.
class FixedRandom final : public os::Random {
 public:
  explicit FixedRandom(std::uint64_t seed) : numbers_{1, 0x0123456789abcdef, 0xfedcba9876543210} {
    numbers_.push_back(seed);
  }
  std::uint64_t next() override { return numbers_[drawn_++ % numbers_.size()]; }

 private:
  std::vector<std::uint64_t> numbers_;
  std::size_t drawn_ = 0;
};

/// What a golden store is made with; one for each rank.
struct Scene {
  std::string host = "golden-host";
  std::uint64_t pid = 1;
  std::uint64_t seed = 0;
  Options options = {};
  FixedClock clock = {};
};

[[noreturn]] void die(const Error& error) {
  std::fprintf(stderr, "make_store: %s\n", error.message().c_str());
  std::exit(1);
}

void must(const Result<void>& result) {
  if (!result) die(result.error());
}
template <class T>
T must(Result<T> result) {
  if (!result) die(result.error());
  return *std::move(result);
}

Session open_fixed(Scene& scene, const session::MakeGroup& make_group) {
  FixedRandom random(scene.seed);
  session::Seams seams = session::system_seams();
  seams.clock = &scene.clock;
  seams.random = &random;
  seams.hash_threads = 1;
  seams.read_threads = 1;
  seams.host = scene.host;
  seams.pid = scene.pid;
  seams.environment.clear();
  return must(session::open_session(seams, make_group, scene.options));
}

Session open_solo(Scene& scene) {
  return open_fixed(scene, [](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
    return ranks::make_solo_group();
  });
}

template <class T>
T number(int value) {
  if constexpr (requires { typename T::value_type; }) {
    using Part = typename T::value_type;
    return {static_cast<Part>(value), static_cast<Part>(-value)};
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
std::vector<T> counted(std::size_t count, int step = 1) {
  std::vector<T> values;
  for (std::size_t i = 0; i < count; ++i)
    values.push_back(number<T>(static_cast<int>(i % 101) * step));
  return values;
}

/// A program's memory with every kind of region.
struct Program {
  std::int64_t step = 0;
  bool flag = true;
  std::vector<std::int8_t> i8 = counted<std::int8_t>(100, -1);
  std::vector<std::int16_t> i16 = counted<std::int16_t>(100, -7);
  std::vector<std::int32_t> i32 = counted<std::int32_t>(200, -70000);
  std::vector<std::uint8_t> u8 = counted<std::uint8_t>(513);
  std::vector<std::uint16_t> u16 = counted<std::uint16_t>(256, 3);
  std::vector<std::uint32_t> u32 = counted<std::uint32_t>(128, 5);
  std::vector<std::uint64_t> u64 = counted<std::uint64_t>(65, 11);
  std::vector<std::complex<float>> c64 = counted<std::complex<float>>(30);
  std::vector<std::complex<double>> c128 = counted<std::complex<double>>(40);
  std::vector<double> plane = counted<double>(12 * 20, 2);
  float volume[4][5][6] = {};
  std::vector<std::byte> copy;
  std::vector<double> zeros = std::vector<double>(400);
  std::vector<double> nothing;
  std::vector<Particle> particles;
  std::array<Pixel, 7> pixels = {};
  std::vector<float> late = counted<float>(150, -1);
  std::map<std::string, std::int32_t> mesh = {{"inlet", 3}, {"outlet", 4}};

  Program() {
    float value = 0;
    for (auto& slab : volume)
      for (auto& row : slab)
        for (float& cell : row) cell = value += 0.25f;
    add_particles(20);
    mirror();
  }
  void add_particles(std::size_t count) {
    while (count-- > 0) {
      const auto id = static_cast<std::uint32_t>(particles.size());
      particles.push_back({0.5 * id, -0.25 * id, id, 1.5f});
    }
  }
  /// `copy` has the content of `plane`: every block of it is a duplicate.
  void mirror() {
    const auto bytes = std::as_bytes(std::span<const double>(plane));
    copy.assign(bytes.begin(), bytes.end());
  }
};

void protect_all(Session& session, Program& p) {
  must(session.protect("step", p.step));
  must(session.protect("flag", p.flag));
  must(session.protect("kinds/i8", p.i8));
  must(session.protect("kinds/i16", p.i16));
  must(session.protect("kinds/i32", p.i32));
  must(session.protect("kinds/u8", p.u8));
  must(session.protect("kinds/u16", p.u16));
  must(session.protect("kinds/u32", p.u32));
  must(session.protect("kinds/u64", p.u64));
  must(session.protect("kinds/c64", p.c64));
  must(session.protect("kinds/c128", p.c128));
  must(session.protect("plane", std::span<double>(p.plane), {12, 20}));
  must(session.protect("volume", p.volume));
  must(session.protect("copy of \"plane\"", p.copy));
  must(session.protect("zeros", p.zeros));
  must(session.protect("nothing", p.nothing));
  must(session.protect("particles", p.particles));
  must(session.protect("pixels", p.pixels));
  const auto save = [&p](Writer& writer) {
    writer.value(static_cast<std::uint64_t>(p.mesh.size()));
    for (const auto& [name, number] : p.mesh) {
      writer.text(name);
      writer.value(number);
    }
  };
  const auto load = [&p](Reader& reader) {
    p.mesh.clear();
    for (auto left = reader.value<std::uint64_t>(); left > 0 && !reader.failed(); --left) {
      const std::string name = reader.text();
      p.mesh[name] = reader.value<std::int32_t>();
    }
  };
  must(session.protect("maill\u00e9", save, load));
}

void take_version(Session& session, Scene& scene) {
  scene.clock.pass_a_minute();
  must(session.checkpoint());
}

/// Two versions in one run, the third in the next: parents and segments of an earlier run.
void make_store_1(const std::string& directory) {
  Scene scene{.seed = 0x9e3779b97f4a7c15};
  scene.options = {
      .store = directory, .application = "golden", .block = 512, .keep = 3, .background = "inline"};
  Program program;
  Session first = open_solo(scene);
  protect_all(first, program);
  take_version(first, scene);

  program.step = 1;
  program.plane[70] = -1.5;
  program.zeros[150] = 1;
  program.add_particles(30);
  program.mesh["wall"] = 5;
  must(first.unprotect("kinds/i8"));
  must(first.protect("late", std::span<float>(program.late), {10, 15}));
  take_version(first, scene);
  must(first.close());

  Program restarted;
  Session second = open_solo(scene);
  protect_all(second, restarted);
  must(second.unprotect("kinds/i8"));
  must(second.protect("late", std::span<float>(restarted.late), {10, 15}));
  must(second.restore());
  restarted.step = 2;
  restarted.mirror();
  restarted.add_particles(40);
  restarted.zeros.resize(500);
  restarted.nothing.assign(1, 2.5);
  take_version(second, scene);
  must(second.close());
}

void play_rank(std::unique_ptr<ranks::Group>& group, const std::string& directory) {
  const Rank rank = group->rank();
  Scene scene{.seed = 7};
  scene.options = {.store = directory,
                   .application = "golden",
                   .block = 512,
                   .hash = "sha256",
                   .keep = 3,
                   .background = "inline",
                   .ranks_per_node = 2};
  Session session = open_fixed(scene, [&](std::uint64_t, os::Clock&) {
    return Result<std::unique_ptr<ranks::Group>>(std::move(group));
  });
  std::int32_t number = static_cast<std::int32_t>(rank);
  std::vector<double> own = counted<double>(100 + 30 * rank, static_cast<int>(rank) + 1);
  std::vector<std::uint16_t> shared = counted<std::uint16_t>(300, 9);
  must(session.protect("number", number));
  must(session.protect("own", own));
  must(session.protect("shared", shared));
  take_version(session, scene);
  number += 10;
  own[rank] = 0.125;
  if (rank == 1) own.resize(200);
  take_version(session, scene);
  must(session.close());
}

void make_ranks_1(const std::string& directory) {
  ranks::play_ranks(3, ranks::kPatience,
                    [&](std::unique_ptr<ranks::Group>& group) { play_rank(group, directory); });
}

/// The example of docs/format.md.
void make_example_1(const std::string& directory) {
  Scene scene{.host = "n17", .pid = 4711, .seed = 42};
  scene.options = {.store = directory, .application = "heat", .block = 512, .background = "inline"};
  Session session = open_solo(scene);
  std::int64_t step = 42;
  must(session.protect("step", step));
  must(session.checkpoint());
  must(session.close());
}

/// Of format 2, file by file.
void make_copies_2(const std::string& directory) {
  for (const inspect::MadeFile& made : inspect::CopiedStore::files()) {
    const auto node = std::filesystem::path(directory) / ("node-" + made.node);
    std::filesystem::create_directories(node);
    std::ofstream file(node / made.name, std::ios::binary);
    file.write(reinterpret_cast<const char*>(made.bytes.data()),
               static_cast<std::streamsize>(made.bytes.size()));
    if (!file.flush()) die(Error(Code::io, "cannot write " + made.name));
  }
}

/// A version of erasure:2+2 on four nodes, and one of what changed. Some blocks are natural copies.
void play_striped_rank(std::unique_ptr<ranks::Group>& group, const std::string& directory) {
  const Rank rank = group->rank();
  Scene scene{.seed = 11};
  scene.options = {.store = directory,
                   .application = "golden",
                   .block = 512,
                   .keep = 3,
                   .background = "inline",
                   .redundancy = "erasure:2+2",
                   .ranks_per_node = 1};
  Session session = open_fixed(scene, [&](std::uint64_t, os::Clock&) {
    return Result<std::unique_ptr<ranks::Group>>(std::move(group));
  });
  std::vector<double> own = counted<double>(100 + 300 * rank, static_cast<int>(rank) + 1);
  std::vector<std::uint16_t> shared = counted<std::uint16_t>(700, 9);
  must(session.protect("own", own));
  must(session.protect("shared", shared));
  take_version(session, scene);
  own[rank] = 0.125;
  take_version(session, scene);
  must(session.close());
}

void make_stripes_2(const std::string& directory) {
  ranks::play_ranks(4, ranks::kPatience, [&](std::unique_ptr<ranks::Group>& group) {
    play_striped_rank(group, directory);
  });
}

/// Segments with every codec.
void make_codecs_3(const std::string& directory) {
  Scene scene{.seed = 13};
  scene.options = {.store = directory,
                   .application = "golden",
                   .block = 512,
                   .keep = 3,
                   .background = "inline",
                   .local_codec =
                       "kinds/i*=delta1-zstd,kinds/u*=delta2-zstd,kinds/c*=shuffle-lz4,plane="
                       "lorenzo-zstd,volume=delta3-zstd,zeros=lz4,copy*=zstd-long,step=raw,"
                       "shuffle-zstd"};
  Program program;
  program.plane.resize(12 * 20);
  Session session = open_solo(scene);
  protect_all(session, program);
  take_version(session, scene);
  program.step = 1;
  program.plane[70] = -1.5;
  program.zeros.assign(900, 2.5);
  program.add_particles(300);
  take_version(session, scene);
  must(session.close());
}

/// Three ranks on two nodes, and their versions on the global tier.
void play_bundled_rank(std::unique_ptr<ranks::Group>& group, const std::string& directory) {
  const Rank rank = group->rank();
  Scene scene{.seed = 17};
  scene.options = {.store = directory + ".local",
                   .application = "golden",
                   .block = 512,
                   .keep = 2,
                   .background = "inline",
                   .levels = "local:1,global:1",
                   .global = directory,
                   .aggregate = 2,
                   .codec = "own=delta1-zstd,shared=lorenzo-zstd,raw",
                   .ranks_per_node = 2};
  Session session = open_fixed(scene, [&](std::uint64_t, os::Clock&) {
    return Result<std::unique_ptr<ranks::Group>>(std::move(group));
  });
  std::int32_t number = static_cast<std::int32_t>(rank);
  std::vector<double> own = counted<double>(1000 + 300 * rank, static_cast<int>(rank) + 1);
  std::vector<std::uint16_t> shared = counted<std::uint16_t>(3000, 9);
  must(session.protect("number", number));
  must(session.protect("own", own));
  must(session.protect("shared", std::span<std::uint16_t>(shared), {30, 100}));
  for (int version = 0; version < 3; ++version) {
    number += 10;
    own[200 * rank] = 0.125 * version;
    take_version(session, scene);
  }
  must(session.close());
}

void make_bundles_3(const std::string& directory) {
  ranks::play_ranks(3, ranks::kPatience, [&](std::unique_ptr<ranks::Group>& group) {
    play_bundled_rank(group, directory);
  });
  std::filesystem::remove_all(directory + ".local");
}

/// Who held it says nothing about the store.
void remove_locks(const std::string& directory) {
  for (const auto& node : std::filesystem::directory_iterator(directory))
    std::filesystem::remove(node.path() / "lock");
}

}  // namespace
}  // namespace belay::golden

int main(int count, char** arguments) {
  using namespace belay::golden;
  const std::map<std::string, void (*)(const std::string&)> makers = {
      {"store-1", make_store_1},    {"ranks-1", make_ranks_1},     {"example-1", make_example_1},
      {"copies-2", make_copies_2},  {"stripes-2", make_stripes_2}, {"codecs-3", make_codecs_3},
      {"bundles-3", make_bundles_3}};
  if (count != 3 || !makers.contains(arguments[1]) || std::filesystem::exists(arguments[2])) {
    std::fprintf(stderr, "use: make_store NAME NEW_DIRECTORY, where NAME is one of");
    for (const auto& [name, make] : makers) std::fprintf(stderr, " %s", name.c_str());
    std::fprintf(stderr, "\n");
    return 2;
  }
  makers.at(arguments[1])(arguments[2]);
  remove_locks(arguments[2]);
}
