// SPDX-License-Identifier: Apache-2.0
#include "codec/choice.hpp"

#include "codec/sampling.hpp"
#include "codec/workspace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Elements kDoubles{.number = Elements::Number::floating, .bytes = 8};

template <class T>
Bytes bytes_of(const std::vector<T>& numbers) {
  Bytes bytes(numbers.size() * sizeof(T));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// Numbers of an extent that is large enough to be sampled by itself.
constexpr std::size_t kLarge = 400000;

/// Smooth, so that differences are small, but without repetition.
Bytes field(std::size_t numbers, double step = 1e-4) {
  std::vector<double> values(numbers);
  for (std::size_t i = 0; i < numbers; ++i)
    values[i] = static_cast<float>(300 + 40 * std::sin(static_cast<double>(i) * step));
  return bytes_of(values);
}

Bytes noise(std::size_t bytes) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> values(bytes / 8);
  for (auto& value : values) value = random();
  return bytes_of(values);
}

Wishes at(double bytes_per_second) {
  Wishes wishes;
  wishes.bytes_per_second = bytes_per_second;
  return wishes;
}

class ChooserTest : public ::testing::Test {
 protected:
  /// Chooses for an extent, encodes it, and tells; the codec's name.
  std::string_view encode(Chooser& chooser, std::string_view variable, const Elements& elements,
                          const Bytes& raw) {
    const Codec& codec = chooser.choose(variable, elements, raw, workspace_);
    Bytes to(raw.size() + 65536);
    const auto bytes = codec.encode(elements, raw, to, workspace_);
    chooser.learn(variable, raw.size(), bytes.value_or(raw.size()), raw.size());
    return codec.name();
  }

  Sampled sampled(const Elements& elements, const Bytes& raw, double bytes_per_second,
                  const Codec* former) {
    return sample(Field(elements, raw), raw.size(), {bytes_per_second, 1}, former, {}, workspace_);
  }

  static std::uint32_t samplings(const Chooser& chooser) {
    std::uint32_t sum = 0;
    for (const Chosen& chosen : chooser.chosen()) sum += chosen.samplings;
    return sum;
  }

  Workspace workspace_;
};

TEST(CodecWishes, AreGoodWithAutoAndEveryCodec) {
  Wishes wishes;
  EXPECT_TRUE(check(wishes));
  for (const Codec* codec : all_codecs()) wishes.rules.emplace_back("*", codec->name());
  wishes.rules.emplace_back("*", "auto");
  EXPECT_TRUE(check(wishes));
}

TEST(CodecWishes, OfUnknownCodecsAreRefusedWithTheNearestName) {
  const auto rule = check({.rules = {{"rho*", "shufle-zstd"}}});
  ASSERT_FALSE(rule);
  EXPECT_EQ(rule.error().code(), Code::invalid_argument);
  EXPECT_NE(rule.error().message().find("did you mean shuffle-zstd?"), std::string::npos);
  EXPECT_NE(rule.error().message().find("\"rho*\""), std::string::npos);
  const auto otherwise = check({.rules = {}, .otherwise = "lz5"});
  ASSERT_FALSE(otherwise);
  EXPECT_NE(otherwise.error().message().find("did you mean lz4?"), std::string::npos);
}

TEST_F(ChooserTest, FollowsTheFirstRuleThatFits) {
  Chooser chooser({.rules = {{"rho[0]", "lz4"}, {"rh?", "delta2-zstd"}, {"u/*", "raw"}},
                   .otherwise = "zstd-long"});
  const Bytes raw = field(100000);
  EXPECT_EQ(encode(chooser, "rho[0]", kDoubles, raw), "lz4");
  EXPECT_EQ(encode(chooser, "rho", kDoubles, raw), "delta2-zstd");
  EXPECT_EQ(encode(chooser, "rho0", kDoubles, raw), "zstd-long");
  EXPECT_EQ(encode(chooser, "u/x/y", kDoubles, raw), "raw");
  EXPECT_EQ(encode(chooser, "u", kDoubles, raw), "zstd-long");
  EXPECT_EQ(samplings(chooser), 0u);
}

TEST_F(ChooserTest, LeavesNoiseAsItIs) {
  Chooser chooser({});
  EXPECT_EQ(encode(chooser, "noise", kDoubles, noise(4 << 20)), "raw");
}

TEST_F(ChooserTest, TakesDifferencesForSmoothFields) {
  Chooser chooser({});
  const auto name = encode(chooser, "t", kDoubles, field(kLarge));
  EXPECT_TRUE(name == "delta1-zstd" || name == "delta2-zstd") << name;
}

TEST_F(ChooserTest, TakesAllDimensionsWhereThatIsSmallest) {
  constexpr std::size_t kRow = 1000;
  std::mt19937_64 random(3);
  std::vector<std::uint32_t> rows(kRow * kRow);
  std::vector<std::uint32_t> along(kRow);
  for (auto& value : along) value = static_cast<std::uint32_t>(random());
  for (std::size_t y = 0; y < kRow; ++y)
    for (std::size_t x = 0; x < kRow; ++x)
      rows[y * kRow + x] = along[x] + static_cast<std::uint32_t>(y * y * 977 + random() % 4);
  Chooser chooser({});
  const auto name = encode(
      chooser, "map",
      {.number = Elements::Number::integer, .bytes = 4, .dimensions = 2, .shape = {kRow, kRow}},
      bytes_of(rows));
  EXPECT_TRUE(name == "lorenzo-zstd" || name == "lorenzo-bits") << name;
}

TEST_F(ChooserTest, TakesAllDimensionsOfWideRowsAndPlanes) {
  std::mt19937_64 random(4);
  const auto table = [&](std::size_t numbers) {
    std::vector<std::uint32_t> values(numbers);
    for (auto& value : values) value = static_cast<std::uint32_t>(random());
    return values;
  };
  const auto chosen = [&](const Elements& elements, const std::vector<std::uint32_t>& values) {
    Chooser chooser({});
    return std::string(encode(chooser, "map", elements, bytes_of(values))).substr(0, 7);
  };
  constexpr std::size_t kWide = 8192, kRowsHere = 128;
  const auto along = table(kWide), across = table(kRowsHere);
  std::vector<std::uint32_t> rows(kWide * kRowsHere);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = along[i % kWide] + across[i / kWide];
  EXPECT_EQ(chosen({.number = Elements::Number::integer,
                    .bytes = 4,
                    .dimensions = 2,
                    .shape = {kRowsHere, kWide}},
                   rows),
            "lorenzo");
  // Of which differences in two dimensions are noise.
  constexpr std::size_t kSide = 80;
  const auto xy = table(kSide * kSide), yz = table(kSide * kSide), xz = table(kSide * kSide);
  std::vector<std::uint32_t> cube;
  for (std::size_t z = 0; z < kSide; ++z)
    for (std::size_t y = 0; y < kSide; ++y)
      for (std::size_t x = 0; x < kSide; ++x)
        cube.push_back(xy[y * kSide + x] + yz[z * kSide + y] + xz[z * kSide + x]);
  EXPECT_EQ(chosen({.number = Elements::Number::integer,
                    .bytes = 4,
                    .dimensions = 3,
                    .shape = {kSide, kSide, kSide}},
                   cube),
            "lorenzo");
}

TEST_F(ChooserTest, TakesDifferencesOfAWalkAndKeepsAFormerChoiceThatIsAsGood) {
  std::mt19937_64 random(5);
  std::vector<std::uint32_t> walk(50000, 1u << 30);
  for (std::size_t i = 1; i < walk.size(); ++i)
    walk[i] = walk[i - 1] + static_cast<std::uint32_t>(random() % 201) - 100;
  const Bytes raw = bytes_of(walk);
  const Elements elements{.number = Elements::Number::integer, .bytes = 4};
  const auto best = [&](std::string_view former) {
    return sampled(elements, raw, 1e5, codec_named(former)).best->name();
  };
  EXPECT_EQ(best("raw").substr(0, 7), "delta1-");
  EXPECT_EQ(best("shuffle-lz4").substr(0, 7), "delta1-");
  EXPECT_EQ(best(best("raw")), best("raw"));
}

TEST_F(ChooserTest, WritesRawWhereNoCodecIsAsFastAsTheDevice) {
  Chooser chooser(at(1e12));
  EXPECT_EQ(encode(chooser, "t", kDoubles, field(kLarge)), "raw");
  EXPECT_EQ(encode(chooser, "small", kDoubles, field(100)), "raw");
}

TEST_F(ChooserTest, DoesNotSampleWhatIsSmall) {
  Chooser chooser({});
  EXPECT_EQ(encode(chooser, "step", kDoubles, field(1)), "shuffle-zstd");
  EXPECT_EQ(encode(chooser, "none", kDoubles, {}), "shuffle-zstd");
  EXPECT_EQ(samplings(chooser), 0u);
}

TEST_F(ChooserTest, RemembersAChoiceForTheVariable) {
  Chooser chooser({});
  const Bytes raw = field(kLarge);
  const auto first = encode(chooser, "t", kDoubles, raw);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(encode(chooser, "t", kDoubles, raw), first);
  EXPECT_EQ(encode(chooser, "t", kDoubles, field(10)), first);
  EXPECT_EQ(samplings(chooser), 1u);
}

TEST_F(ChooserTest, SamplesAnewWhenTheElementsChangeButNotWhenTheirNumberDoes) {
  Chooser chooser({});
  Elements elements = kDoubles;
  elements.dimensions = 1;
  for (std::uint64_t count = kLarge; count < kLarge + 10; ++count) {
    elements.shape[0] = count;
    encode(chooser, "x", elements, field(count));
  }
  EXPECT_EQ(samplings(chooser), 1u);
  elements.bytes = 4;
  encode(chooser, "x", elements, field(kLarge));
  EXPECT_EQ(samplings(chooser), 2u);
}

TEST_F(ChooserTest, SamplesAnewWhenAMuchLargerExtentComes) {
  Chooser chooser({});
  for (const auto& [bytes, expected] :
       {std::pair(3200000u, 1u), {9600000u, 1u}, {12800000u, 2u}, {13000000u, 2u}, {80000u, 2u}}) {
    encode(chooser, "t", kDoubles, noise(bytes));
    EXPECT_EQ(samplings(chooser), expected) << bytes;
  }
}

TEST_F(ChooserTest, TakesAsManyDifferencesAsMakeItSmaller) {
  std::vector<std::uint64_t> cubic(kLarge);
  for (std::size_t i = 0; i < cubic.size(); ++i) cubic[i] = i * i * i * 1001;
  Chooser chooser({});
  EXPECT_EQ(encode(chooser, "cubic", kDoubles, bytes_of(cubic)), "delta3-zstd");
}

TEST_F(ChooserTest, WritesRawUnlessACodecSavesMoreThanAFewPerCent) {
  constexpr std::size_t kRecord = 64;
  const Elements records{.bytes = kRecord};
  for (const std::size_t constant : {1u, 4u}) {
    Bytes raw = noise(4 << 20);
    for (std::size_t i = 0; i < raw.size(); ++i)
      if (i % kRecord < constant) raw[i] = {};
    Chooser chooser({});
    EXPECT_EQ(encode(chooser, "records", records, raw) == "raw", constant == 1) << constant;
  }
}

TEST_F(ChooserTest, TriesASmallPartOfAVariable) {
  const Bytes raw = field(60000);
  EXPECT_LE(Field(kDoubles, raw).sample(1e9, workspace_).size(), raw.size() / 4);
}

TEST_F(ChooserTest, TakesExtentsThatArePartsOfARecord) {
  for (const std::size_t bytes : {40000u, 262144u, 4000000u})
    for (const std::size_t record :
         {bytes / 4 - 1, bytes / 4 + 1, bytes - 1, bytes + 1, 3 * bytes}) {
      Chooser chooser({});
      const Elements records{.bytes = static_cast<std::uint32_t>(record)};
      const Bytes raw = noise(bytes);
      for (int i = 0; i < 4; ++i) encode(chooser, "records", records, raw);
      EXPECT_LE(Field(records, raw).sample(1e9, workspace_).size(), bytes / 4);
    }
}

TEST_F(ChooserTest, SamplesAnewOnceTheRatioHasDrifted) {
  Chooser chooser({});
  const Bytes smooth = field(kLarge);
  const Bytes rough = noise(8 * kLarge);
  const auto first = encode(chooser, "t", kDoubles, smooth);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(encode(chooser, "t", kDoubles, smooth), first);
  EXPECT_EQ(encode(chooser, "t", kDoubles, rough), "raw") << "at once: it is looked at";
  EXPECT_EQ(samplings(chooser), 2u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(encode(chooser, "t", kDoubles, rough), "raw");
  EXPECT_EQ(encode(chooser, "t", kDoubles, smooth), first);
  EXPECT_EQ(samplings(chooser), 3u);
}

TEST_F(ChooserTest, SamplesWhatHasGrownLoudBeforeItIsEncoded) {
  std::vector<std::uint64_t> still(kLarge, 5);
  for (std::size_t i = 0; i < kLarge / 10; ++i) still[i] = i * i * 977;
  Chooser chooser({});
  for (int i = 0; i < 4; ++i) encode(chooser, "t", kDoubles, bytes_of(still));
  EXPECT_EQ(samplings(chooser), 1u);
  encode(chooser, "t", kDoubles, noise(8 * kLarge));
  EXPECT_EQ(samplings(chooser), 2u);
}

TEST_F(ChooserTest, TakesTheSmallestAtAGlanceWhereThereIsLittle) {
  Chooser chooser({});
  std::vector<std::uint64_t> ramp(40000);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = i * 1000003;
  EXPECT_EQ(encode(chooser, "ramp", kDoubles, bytes_of(ramp)), "context-bits");
  EXPECT_EQ(encode(chooser, "noise", kDoubles, noise(8 * ramp.size())), "shuffle-zstd");
  EXPECT_EQ(samplings(chooser), 0u);
}

TEST_F(ChooserTest, GlancesAgainWhenThatHasDrifted) {
  Chooser chooser({});
  std::vector<std::uint64_t> ramp(40000);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = i * 1000003;
  encode(chooser, "t", kDoubles, noise(8 * ramp.size()));
  EXPECT_EQ(encode(chooser, "t", kDoubles, noise(8 * ramp.size())), "shuffle-zstd");
  encode(chooser, "t", kDoubles, bytes_of(ramp));
  EXPECT_EQ(encode(chooser, "t", kDoubles, bytes_of(ramp)), "context-bits");
}

TEST_F(ChooserTest, GlancesFartherAtNoise) {
  const Bytes block = noise(150 << 10);  // so that pieces of a sample have nothing in common
  Bytes again;
  while (again.size() < (400 << 10)) again.insert(again.end(), block.begin(), block.end());
  Chooser chooser({});
  EXPECT_EQ(encode(chooser, "again", kDoubles, again), "context-bits");
  EXPECT_NE(encode(chooser, "once", kDoubles, noise(again.size())), "context-bits");
}

TEST_F(ChooserTest, SamplesOnceWhatComesInLargeAndSmallExtents) {
  Chooser chooser({});
  const Bytes raw = field(kLarge);
  for (int i = 0; i < 20; ++i)
    for (const std::size_t numbers : {kLarge, std::size_t{5000}, std::size_t{25}})
      encode(chooser, "t", kDoubles, field(numbers));
  EXPECT_EQ(samplings(chooser), 1u);
}

TEST_F(ChooserTest, SamplesRarelyWhereShapesAlternate) {
  Chooser chooser({});
  const Bytes raw = field(64000);
  Elements elements = kDoubles;
  elements.dimensions = 2;
  for (std::uint64_t i = 0; i < 200; ++i) {
    elements.shape = {raw.size() / 8 / (100 + i % 2 * 60), 100 + i % 2 * 60};
    encode(chooser, "patches", elements, raw);
  }
  EXPECT_LE(samplings(chooser), 8u);
}

TEST_F(ChooserTest, LearnsNothingAboutSpeedFromWhatIsLeftRaw) {
  Chooser chooser(at(1.5e9)), other(at(1.5e9));
  const Bytes raw = noise(2 << 20);
  for (int i = 0; i < 60; ++i) {
    const std::string name = "noise" + std::to_string(i);
    EXPECT_EQ(chooser.choose(name, kDoubles, raw, workspace_).name(), "raw");
    chooser.learn(name, raw.size(), raw.size(), 0);
  }
  EXPECT_EQ(encode(chooser, "t", kDoubles, field(kLarge)),
            encode(other, "t", kDoubles, field(kLarge)));
}

TEST_F(ChooserTest, SamplesWhatIsLittleEachTimeOnceItHasBecomeMuch) {
  Chooser chooser({});
  const Bytes raw = field(40000);
  for (int i = 0; i < 60; ++i) encode(chooser, "t", kDoubles, raw);
  EXPECT_EQ(samplings(chooser), 1u);
}

TEST_F(ChooserTest, LooksWhereAFieldIsNotQuiet) {
  std::vector<std::uint64_t> front(2 << 20, 5);
  for (std::size_t i = 1200000; i < 1400000; ++i) front[i] = i * i * 977;
  const auto name = sampled(kDoubles, bytes_of(front), 1e8, nullptr).best->name();
  EXPECT_TRUE(name == "delta2-zstd" || name == "delta3-zstd") << name;
}

TEST_F(ChooserTest, FindsTheFewPlacesWhereAFieldIsNotQuiet) {
  std::vector<std::uint64_t> still(1 << 20, 5);
  for (std::size_t block = 30000; block < still.size(); block += 65536)
    for (std::size_t i = 0; i < 100; ++i) still[block + i] = i * i * 1000003;
  const auto name = sampled(kDoubles, bytes_of(still), 1e6, nullptr).best->name();
  EXPECT_TRUE(name.substr(0, 6) == "delta2" || name.substr(0, 6) == "delta3") << name;
}

TEST_F(ChooserTest, HoldsAgainstACodecWhatItFailedToReach) {
  Chooser chooser({});
  const Bytes raw = field(kLarge);
  const Codec& first = chooser.choose("t", kDoubles, raw, workspace_);
  chooser.learn("t", raw.size(), raw.size() / 10 * 9, raw.size());
  EXPECT_EQ(&chooser.choose("t", kDoubles, raw, workspace_), &first);
  chooser.learn("t", raw.size(), raw.size() / 5, raw.size());
  EXPECT_NE(&chooser.choose("t", kDoubles, raw, workspace_), &first);
  EXPECT_EQ(samplings(chooser), 2u);
}

TEST_F(ChooserTest, SamplesRarelyWhereTheRatioNeverRests) {
  Chooser chooser({});
  const Bytes smooth = field(30000);
  const Bytes steep = field(30000, 0.3);
  for (int i = 0; i < 400; ++i) encode(chooser, "t", kDoubles, i / 3 % 2 ? smooth : steep);
  EXPECT_LE(samplings(chooser), 12u);
}

TEST_F(ChooserTest, SamplesAnewWhenTheDeviceBecomesFast) {
  Chooser chooser(at(100e6));
  const Bytes raw = field(kLarge);
  EXPECT_NE(encode(chooser, "t", kDoubles, raw), "raw");
  chooser.set_bandwidth(1e13);
  for (int i = 0; i < 2; ++i) encode(chooser, "t", kDoubles, raw);
  EXPECT_EQ(encode(chooser, "t", kDoubles, raw), "raw");
}

TEST_F(ChooserTest, TakesAnyBandwidth) {
  for (const double odd : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
    Chooser chooser(at(odd));
    encode(chooser, "t", kDoubles, field(kLarge));
    EXPECT_EQ(samplings(chooser), 1u);
    for (int i = 0; i < 4; ++i)
      encode(chooser, "t", kDoubles, i % 2 ? field(kLarge) : noise(8 * kLarge));
  }
}

TEST_F(ChooserTest, TellsWhatCameOfItByName) {
  Chooser chooser({.rules = {{"b", "raw"}}});
  const Bytes raw = field(kLarge);
  encode(chooser, "b", kDoubles, raw);
  encode(chooser, "a", kDoubles, raw);
  encode(chooser, "a", kDoubles, raw);
  chooser.learn("unknown", 1, 1, 1);
  const auto chosen = chooser.chosen();
  ASSERT_EQ(chosen.size(), 2u);
  EXPECT_EQ(chosen[0].variable, "a");
  EXPECT_EQ(chosen[0].raw_bytes, 2 * raw.size());
  EXPECT_LT(chosen[0].encoded_bytes, raw.size());
  EXPECT_EQ(chosen[0].encode_ns, 2 * raw.size());
  EXPECT_EQ(chosen[0].samplings, 1u);
  EXPECT_EQ(chosen[1].codec, codec_named("raw"));
  EXPECT_EQ(chosen[1].encoded_bytes, raw.size());
}

TEST_F(ChooserTest, ServesThreadsAtOnce) {
  Chooser chooser({});
  const Bytes raw = field(20000);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Workspace workspace;
      for (int i = 0; i < 20; ++i) {
        const std::string name = i % 2 ? "shared" : "own" + std::to_string(t);
        chooser.choose(name, kDoubles, raw, workspace);
        chooser.learn(name, raw.size(), raw.size() / 2, 1);
        chooser.set_bandwidth(200e6);
        chooser.chosen();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(chooser.chosen().size(), 5u);
}

TEST_F(ChooserTest, SamplesOnceForThreadsAtOnce) {
  Chooser chooser({});
  const Bytes raw = field(kLarge), rough = noise(8 * kLarge);
  const auto all_choose = [&](const Bytes& bytes) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        Workspace workspace;
        chooser.choose("t", kDoubles, bytes, workspace);
        chooser.learn("t", bytes.size(), bytes.size() / 4, bytes.size());
      });
    for (std::thread& thread : threads) thread.join();
  };
  all_choose(raw);
  EXPECT_EQ(samplings(chooser), 1u);
  for (int i = 0; i < 4; ++i) all_choose(rough);
  EXPECT_GE(samplings(chooser), 2u) << "patience is that of one sampling";
}

}  // namespace
}  // namespace belay::codec
