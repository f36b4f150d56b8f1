// SPDX-License-Identifier: Apache-2.0
// Makes a store for the tests of the tool, and beside it what must be in it, written without Belay.
//
//   make_cli_store DIRECTORY [HASH]
//
// DIRECTORY/store is a store of three versions, two ranks on two nodes, all numeric types, NaNs and
// infinities; DIRECTORY/expected/VERSION-RANK-REGION holds the bytes of each region.
#include <belay/belay.hpp>

#include "conformance/thread_ranks.hpp"
#include "session/seams.hpp"

#include <complex>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <tuple>
#include <vector>

namespace belay::cli {
namespace {

constexpr std::size_t kElements = 1500;

struct Body {
  double mass = 0;
  float spin = 0;
  std::uint32_t id = 0;
};

void must(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "make_cli_store: %s\n", result.error().message().c_str());
  std::exit(1);
}
template <class T>
T must(Result<T> result) {
  must(result ? Result<void>{} : Result<void>(Unexpected(result.error())));
  return *std::move(result);
}

template <class T>
struct Array {
  const char* name;
  std::vector<T> values = std::vector<T>(kElements);
};

/// A rank's memory: one array of each numeric type, and some that are none.
struct Memory {
  std::tuple<Array<std::int8_t>, Array<std::int16_t>, Array<std::int32_t>, Array<std::int64_t>,
             Array<std::uint8_t>, Array<std::uint16_t>, Array<std::uint32_t>, Array<std::uint64_t>,
             Array<float>, Array<double>, Array<std::complex<float>>, Array<std::complex<double>>>
      numbers = {{"i8"},  {"i16"}, {"i32"}, {"i64"}, {"u8"},  {"u16"},
                 {"u32"}, {"u64"}, {"f32"}, {"f64"}, {"c64"}, {"c128"}};
  std::vector<Body> bodies = std::vector<Body>(40);
  std::vector<double> growing = std::vector<double>(100, 1.5);
  std::uint64_t step = 0;
};

template <class T>
T random_bits(std::mt19937_64& random) {
  if constexpr (requires { typename T::value_type; }) {
    using Part = typename T::value_type;
    return {random_bits<Part>(random), random_bits<Part>(random)};
  } else if constexpr (std::is_floating_point_v<T>) {
    const auto kind = random() % 40;
    if (kind == 0) return std::numeric_limits<T>::quiet_NaN();
    return static_cast<T>(std::ldexp(static_cast<double>(random()), -60) - 8);
  } else {
    return static_cast<T>(random());
  }
}

/// Changes every element in the first call, later only some near the middle.
void change(Memory& memory, std::mt19937_64& random, bool all) {
  const auto one = [&](auto& array) {
    using T = typename std::decay_t<decltype(array.values)>::value_type;
    for (std::size_t i = all ? 0 : 700; i < (all ? kElements : 760); ++i)
      array.values[i] = random_bits<T>(random);
  };
  std::apply([&](auto&... arrays) { (one(arrays), ...); }, memory.numbers);
  ++memory.step;
  memory.growing.push_back(static_cast<double>(memory.step));
  memory.bodies[memory.step].id += 7;
}

void write_file(const std::string& path, const void* bytes, std::size_t count) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr || (count > 0 && std::fwrite(bytes, count, 1, file) != 1) ||
      std::fclose(file) != 0) {
    std::perror(path.c_str());
    std::exit(1);
  }
}

void write_expected(const Memory& memory, const std::string& prefix) {
  const auto write = [&](const char* name, const auto& values) {
    write_file(prefix + name, values.data(), values.size() * sizeof(values[0]));
  };
  std::apply([&](const auto&... arrays) { (write(arrays.name, arrays.values), ...); },
             memory.numbers);
  write("bodies", memory.bodies);
  write("growing", memory.growing);
  write_file(prefix + "step", &memory.step, sizeof(memory.step));
}

void protect(Session& session, Memory& memory) {
  const auto one = [&](auto& array) {
    using T = typename std::decay_t<decltype(array.values)>::value_type;
    must(session.protect(array.name, std::span<T>(array.values), {30, 50}));
  };
  std::apply([&](auto&... arrays) { (one(arrays), ...); }, memory.numbers);
  must(session.protect("bodies", memory.bodies));
  must(session.protect("growing", memory.growing));
  must(session.protect("step", memory.step));
}

void play_rank(std::unique_ptr<ranks::Group>& group, const std::string& directory,
               const std::string& hash) {
  const Rank rank = group->rank();
  session::Seams seams = session::system_seams();
  seams.hash_threads = 1;
  seams.environment.clear();
  const Options options{.store = directory + "/store",
                        .application = "cli",
                        .block = 1536,
                        .hash = hash,
                        .keep = 5,
                        .background = "inline",
                        .ranks_per_node = 1};
  Session session = must(session::open_session(
      seams,
      [&](std::uint64_t, os::Clock&) {
        return Result<std::unique_ptr<ranks::Group>>(std::move(group));
      },
      options));
  Memory memory;
  std::mt19937_64 random(rank + 1);
  protect(session, memory);
  for (int i = 0; i < 3; ++i) {
    change(memory, random, i == 0);
    const Version version = must(session.checkpoint());
    write_expected(memory, directory + "/expected/" + std::to_string(version) + "-" +
                               std::to_string(rank) + "-");
  }
  must(session.close());
}

}  // namespace
}  // namespace belay::cli

int main(int count, char** arguments) {
  using namespace belay;
  if (count < 2 || count > 3) {
    std::fprintf(stderr, "use: make_cli_store DIRECTORY [HASH]\n");
    return 2;
  }
  const std::string directory = arguments[1];
  const std::string hash = count == 3 ? arguments[2] : "xxh3";
  std::filesystem::create_directories(directory + "/expected");
  ranks::play_ranks(2, ranks::kPatience, [&](std::unique_ptr<ranks::Group>& group) {
    cli::play_rank(group, directory, hash);
  });
}
