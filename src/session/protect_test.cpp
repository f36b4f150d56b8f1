// SPDX-License-Identifier: Apache-2.0
// Everything that can be protected comes back; what cannot is refused, by the compiler if it can.
#include "session/session_test.hpp"

#include <array>
#include <complex>
#include <cstring>
#include <map>
#include <string_view>

namespace belay::session {

struct Particle {
  double position[3];
  std::int32_t id;
  bool operator==(const Particle&) const = default;
};

}  // namespace belay::session

template <>
struct belay::TypeName<belay::session::Particle> {
  static constexpr const char* value = "Particle";
};

namespace belay::session {
namespace {

template <class T>
concept Protectable = requires(Session& session, T& value) {
  session.protect("name", value);
};

static_assert(Protectable<int> && Protectable<double> && Protectable<bool> && Protectable<char>);
static_assert(Protectable<int[3]> && Protectable<double[2][3]> &&
              Protectable<std::array<float, 4>>);
static_assert(Protectable<std::complex<double>> && Protectable<Particle>);
static_assert(Protectable<std::span<double>> && Protectable<std::span<Particle, 3>>);
static_assert(Protectable<std::vector<int>> && Protectable<std::vector<Particle>>);

static_assert(!Protectable<int*> && !Protectable<const char*> && !Protectable<void (*)()>);
static_assert(!Protectable<int Particle::*>);
static_assert(!Protectable<std::string_view> && !Protectable<std::string>);
static_assert(!Protectable<std::span<const double>> && !Protectable<std::span<int*>>);
static_assert(!Protectable<std::vector<bool>> && !Protectable<std::vector<int*>> &&
              !Protectable<std::vector<std::string>>);
static_assert(!Protectable<std::vector<std::string_view>>);
static_assert(!Protectable<const int> && !Protectable<const int[3]> &&
              !Protectable<const std::array<int, 3>> && !Protectable<const std::vector<int>>);
static_assert(!Protectable<std::unique_ptr<int>> && !Protectable<std::map<int, int>>);

// Arrays of pointers end in a static_assert inside access_value, whose condition is this.
template <class T>
constexpr bool kElementsCanBeSaved = detail::Savable<typename detail::ArrayTraits<T>::Element>;
static_assert(kElementsCanBeSaved<int[2][3]> && kElementsCanBeSaved<std::array<double, 3>>);
static_assert(!kElementsCanBeSaved<int* [3]> && !kElementsCanBeSaved<std::array<char*, 3>> &&
              !kElementsCanBeSaved<std::array<std::string_view, 2>> &&
              !kElementsCanBeSaved<std::array<std::array<int*, 2>, 2>>);

enum class Phase : std::uint16_t { warm_up = 7, run = 600 };

/// A value of every kind.
struct Values {
  bool flag = false;
  char letter = 0;
  std::int8_t i8 = 0;
  std::uint16_t u16 = 0;
  std::int32_t i32 = 0;
  std::uint64_t u64 = 0;
  float f32 = 0;
  double f64 = 0;
  long double wide = 0;
  std::complex<float> c64;
  std::complex<double> c128;
  Phase phase = Phase::warm_up;
  std::byte byte{};
  double matrix[2][3] = {};
  std::array<std::array<std::int16_t, 2>, 4> table{};
  Particle particle{};

  void protect(Session& session) {
    must(session.protect("flag", flag));
    must(session.protect("letter", letter));
    must(session.protect("i8", i8));
    must(session.protect("u16", u16));
    must(session.protect("i32", i32));
    must(session.protect("u64", u64));
    must(session.protect("f32", f32));
    must(session.protect("f64", f64));
    must(session.protect("wide", wide));
    must(session.protect("c64", c64));
    must(session.protect("c128", c128));
    must(session.protect("phase", phase));
    must(session.protect("byte", byte));
    must(session.protect("matrix", matrix));
    must(session.protect("table", table));
    must(session.protect("particle", particle));
  }
};

class Protect : public SessionTest {
 protected:
  RegionInfo info_of(Session& session, std::string_view name) {
    for (const VersionInfo& version : session.versions())
      for (const RegionInfo& region : version.regions)
        if (region.name == name) return region;
    throw std::runtime_error("no region " + std::string(name));
  }
};

TEST_F(Protect, ValuesOfEveryKindComeBack) {
  {
    auto session = open();
    Values saved{.flag = true,
                 .letter = 'x',
                 .i8 = -8,
                 .u16 = 65000,
                 .i32 = -2'000'000,
                 .u64 = 1ull << 63,
                 .f32 = 1.5f,
                 .f64 = 0.1,
                 .wide = 1.25L,
                 .c64 = {1, 2},
                 .c128 = {3, -4},
                 .phase = Phase::run,
                 .byte = std::byte{0xab},
                 .matrix = {{1, 2, 3}, {4, 5, 6}},
                 .table = {{{1, 2}, {3, 4}, {5, 6}, {7, 8}}},
                 .particle = {{0.1, 0.2, 0.3}, 9}};
    saved.protect(session);
    take(session);
    must(session.close());
  }
  auto session = open();
  Values found;
  found.protect(session);
  must(session.restore());
  EXPECT_TRUE(found.flag);
  EXPECT_EQ(found.letter, 'x');
  EXPECT_EQ(found.i8, -8);
  EXPECT_EQ(found.u16, 65000);
  EXPECT_EQ(found.i32, -2'000'000);
  EXPECT_EQ(found.u64, 1ull << 63);
  EXPECT_EQ(found.f32, 1.5f);
  EXPECT_EQ(found.f64, 0.1);
  EXPECT_EQ(found.wide, 1.25L);
  EXPECT_EQ(found.c64, (std::complex<float>{1, 2}));
  EXPECT_EQ(found.c128, (std::complex<double>{3, -4}));
  EXPECT_EQ(found.phase, Phase::run);
  EXPECT_EQ(found.byte, std::byte{0xab});
  EXPECT_EQ(found.matrix[1][2], 6);
  EXPECT_EQ(found.table[3][1], 8);
  EXPECT_EQ(found.particle, (Particle{{0.1, 0.2, 0.3}, 9}));
}

TEST_F(Protect, TypesAndShapesAreRecorded) {
  auto session = open();
  Values values;
  values.protect(session);
  std::vector<float> grid(6);
  const short rows = 2;
  const std::size_t columns = 3;
  must(session.protect("grid", std::span<float>(grid), {rows, columns}));
  must(session.protect("line", std::span<float>(grid)));
  take(session);
  EXPECT_EQ(info_of(session, "flag").type, (ElementType{ElementKind::u8, 1, ""}));
  EXPECT_EQ(info_of(session, "i8").type.kind, ElementKind::i8);
  EXPECT_EQ(info_of(session, "u64").type.kind, ElementKind::u64);
  EXPECT_EQ(info_of(session, "c64").type.kind, ElementKind::c64);
  EXPECT_EQ(info_of(session, "c128").type, (ElementType{ElementKind::c128, 16, ""}));
  EXPECT_EQ(info_of(session, "phase").type.kind, ElementKind::u16) << "an enum is its number";
  EXPECT_EQ(info_of(session, "byte").type.kind, ElementKind::bytes);
  EXPECT_EQ(info_of(session, "particle").type,
            (ElementType{ElementKind::opaque, sizeof(Particle), "Particle"}));
  EXPECT_EQ(info_of(session, "f64").shape, Shape());
  EXPECT_EQ(info_of(session, "matrix").shape, Shape(2, 3));
  EXPECT_EQ(info_of(session, "matrix").type.kind, ElementKind::f64);
  EXPECT_EQ(info_of(session, "table").shape, Shape(4, 2));
  EXPECT_EQ(info_of(session, "table").type.kind, ElementKind::i16);
  EXPECT_EQ(info_of(session, "grid").shape, Shape(2, 3));
  EXPECT_EQ(info_of(session, "grid").bytes, 24u);
  EXPECT_EQ(info_of(session, "line").shape, Shape(6));
}

TEST_F(Protect, AVectorIsFollowedThroughGrowthShrinkingAndMoves) {
  std::vector<std::uint64_t> numbers = noise(100, 1);
  {
    auto session = open();
    must(session.protect("numbers", numbers));
    for (const std::size_t size : {100u, 1000u, 17u, 0u, 5000u}) {
      numbers = noise(size, size);
      numbers.shrink_to_fit();  // a new address
      take(session);
      EXPECT_EQ(info_of(session, "numbers").shape, Shape(size));
    }
    must(session.close());
  }
  auto session = open();
  std::vector<std::uint64_t> found;
  must(session.protect("numbers", found));
  must(session.restore());
  EXPECT_EQ(found, numbers);
}

TEST_F(Protect, ASerializerSavesWhatItsSaveFunctionWritesNow) {
  std::map<std::string, std::vector<int>> saved{{"a", {1, 2}}, {"b", {}}};
  const auto protect_map = [](Session& session, std::map<std::string, std::vector<int>>& map) {
    return session.protect(
        "map",
        [&map](Writer& writer) {
          writer.value(map.size());
          for (const auto& [key, values] : map) {
            writer.text(key);
            writer.array(std::span<const int>(values));
          }
        },
        [&map](Reader& reader) {
          map.clear();
          for (auto left = reader.value<std::size_t>(); left > 0 && !reader.failed(); --left) {
            const std::string key = reader.text();
            map[key] = reader.array<int>();
          }
        });
  };
  {
    auto session = open();
    must(protect_map(session, saved));
    take(session);
    saved["c"] = std::vector<int>(1000, 7);
    take(session);
    must(session.close());
  }
  auto session = open();
  std::map<std::string, std::vector<int>> found;
  must(protect_map(session, found));
  must(session.restore());
  EXPECT_EQ(found, saved);
}

TEST_F(Protect, ALoadFunctionThatReadsTooMuchIsAnErrorOfTheRestore) {
  auto session = open();
  must(session.protect(
      "short", [](Writer& writer) { writer.value(1); },
      [](Reader& reader) { reader.value<double>(); }));
  take(session);
  const auto refused = session.restore();
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message().find("past the end"), std::string::npos)
      << refused.error().message();
  EXPECT_EQ(session.latest(), 1u) << "the version is not to blame";
}

TEST_F(Protect, AShapeThatDoesNotFitTheMemoryIsRefused) {
  auto session = open();
  std::vector<double> grid(12);
  const std::span<double> memory(grid);
  expect_error(session.protect("grid", memory, {3, 5}), Code::invalid_argument, {"'grid'", "12"});
  expect_error(session.protect("grid", memory, {-3, -4}), Code::invalid_argument, {"'grid'"});
  expect_error(session.protect("grid", memory, {1ull << 62, 1ull << 62, 12}),
               Code::invalid_argument, {"'grid'"});
  expect_error(session.protect("grid", memory, Shape(std::vector<std::uint64_t>(33, 1))),
               Code::invalid_argument, {"dimensions"});
  must(session.protect("grid", memory, {3, 1, 4}));
  must(session.protect("nothing", std::span<double>(), {0, 7}));
}

TEST_F(Protect, HostileNamesAreRefusedAndStrangeOnesComeBack) {
  int value = 1;
  {
    auto session = open();
    for (const std::string& name :
         {std::string(), std::string("a\nb"), std::string("a\0b", 3), std::string("\xff\xfe"),
          std::string(256, 'x'), std::string("\x1b[31m")})
      expect_error(session.protect(name, value), Code::invalid_argument, {"region"});
    for (const char* name : {"../../etc/passwd", "a b", "größe", ".", "%s{}", "temperature[0]"})
      must(session.protect(name, value));
    EXPECT_FALSE(session.wait());  // as of ignored calls
    take(session);
    must(session.close());
  }
  auto session = open();
  int found = 0;
  must(session.protect("../../etc/passwd", found));
  must(session.restore());
  EXPECT_EQ(found, 1);
  for (const std::string& path : memory_.paths())
    EXPECT_TRUE(path.starts_with("/store/node-host-a/")) << path;
}

TEST_F(Protect, UnprotectingWhatIsNotProtectedIsAnError) {
  auto session = open();
  expect_error(session.unprotect("x"), Code::not_found, {"'x'"});
}

TEST_F(Protect, ManySmallRegionsComeBack) {
  std::vector<std::array<char, 100>> saved(10'000);
  for (std::size_t i = 0; i < saved.size(); ++i) {
    saved[i].fill(static_cast<char>(i));
    std::memcpy(saved[i].data(), &i, sizeof i);
  }
  {
    auto session = open();
    for (std::size_t i = 0; i < saved.size(); ++i)
      must(session.protect("region " + std::to_string(i), saved[i]));
    EXPECT_EQ(take_ledger(session).protected_bytes, 1'000'000u);
    must(session.close());
  }
  auto session = open();
  std::vector<std::array<char, 100>> found(saved.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    must(session.protect("region " + std::to_string(i), found[i]));
  must(session.restore());
  EXPECT_EQ(found, saved);
  EXPECT_EQ(take_ledger(session).written_bytes, 0u);
}

TEST_F(Protect, ASessionThatWasMovedFromSaysSo) {
  Session first = open();
  int value = 1;
  must(first.protect("value", value));
  take(first);
  Session second = std::move(first);
  // NOLINTBEGIN(bugprone-use-after-move): that is what is tested
  const auto expect_moved = [](const auto& result) {
    expect_error(result, Code::invalid_argument, {"moved from"});
  };
  expect_moved(first.protect("value", value));
  expect_moved(first.unprotect("value"));
  expect_moved(first.restore());
  expect_moved(first.restore(1));
  expect_moved(first.checkpoint());
  expect_moved(first.begin());
  expect_moved(first.add("value"));
  expect_moved(first.commit());
  expect_moved(first.wait());
  expect_moved(first.close());
  expect_moved(first.dump({}, 1));
  expect_moved(first.load(1, {}));
  EXPECT_FALSE(first.due());
  EXPECT_FALSE(first.latest());
  EXPECT_TRUE(first.versions().empty());
  EXPECT_EQ(first.stats().captured, 0u);
  // NOLINTEND(bugprone-use-after-move)
  EXPECT_EQ(take(second), 2u);
  must(second.close());
}

}  // namespace
}  // namespace belay::session
