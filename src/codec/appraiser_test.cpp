// SPDX-License-Identifier: Apache-2.0
#include "codec/appraiser.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;

constexpr Elements kMeasured{.number = Elements::Number::floating, .bytes = 8};

Bytes raw_of(const std::vector<double>& numbers) {
  Bytes bytes(numbers.size() * sizeof(double));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

/// Smooth, and measured: noise in the lower bytes.
Bytes measured(std::size_t numbers) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> error(0, 1e-6);
  std::vector<double> values(numbers);
  for (std::size_t i = 0; i < numbers; ++i)
    values[i] = 300 + 40 * std::sin(static_cast<double>(i) * 1e-4) + error(random);
  return raw_of(values);
}

class AppraiserTest : public ::testing::Test {
 protected:
  double encoded_part(CodecId id, const Bytes& raw) {
    Bytes to(raw.size());
    return double(codec_of(id)->encode(kMeasured, raw, to, workspace_).value_or(raw.size())) /
           double(raw.size());
  }

  Workspace workspace_;
};

TEST_F(AppraiserTest, TellsSizesFromASmallSample) {
  const Bytes raw = measured(1 << 20);
  const Field field(kMeasured, raw);
  const Piece sample = field.loud_sample(32 << 10, workspace_);
  EXPECT_LE(sample.size(), std::size_t{33} << 10);
  // The workspace's sample is the caller's until the next one.
  const Bytes kept(sample.begin(), sample.end());
  Appraiser appraiser(kMeasured, kept, workspace_);
  const auto near = [&](double told, CodecId id, double part = 0.08) {
    const double actual = encoded_part(id, raw);
    EXPECT_NEAR(told, actual, part * actual) << codec_of(id)->name();
  };
  near(appraiser.leads(Transform::delta1).part, CodecId::delta1_bits);
  near(appraiser.leads(Transform::delta2).part, CodecId::delta2_bits);
  near(appraiser.leads(Transform::context).part, CodecId::context_bits, 0.15);
  near(appraiser.planes(Transform::shuffle).zstd_search.part, CodecId::shuffle_zstd);
  near(appraiser.planes(Transform::delta1).zstd_search.part, CodecId::delta1_zstd);
  near(appraiser.lz4().part, CodecId::lz4);
}

TEST_F(AppraiserTest, KnowsThatASearchPaysOnlyWhereSomethingIsThereAgain) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> speed;
  std::vector<double> speeds(4096);
  for (double& value : speeds) value = speed(random);
  const Bytes once = raw_of(speeds);
  Bytes again = Bytes(once.begin(), once.begin() + 4096);
  while (again.size() < once.size()) again.insert(again.end(), again.begin(), again.begin() + 4096);
  Appraiser of_once(kMeasured, once, workspace_);
  const PlaneAppraisals told_once = of_once.planes(Transform::shuffle);
  EXPECT_NEAR(told_once.zstd_search.part, told_once.zstd.part, 0.02);
  Appraiser of_again(kMeasured, again, workspace_);
  const PlaneAppraisals told_again = of_again.planes(Transform::shuffle);
  EXPECT_LT(told_again.zstd_search.part, told_again.zstd.part / 2);
}

TEST_F(AppraiserTest, SamplesHaveWhatIsNotQuiet) {
  std::vector<double> values(1 << 20, 7);
  for (std::size_t i = 300000; i < 500000; ++i) values[i] = std::sqrt(double(i));
  const Bytes raw = raw_of(values);
  const Field field(kMeasured, raw);
  EXPECT_NEAR(field.loud_part(), 0.19, 0.02);
  const Piece sample = field.loud_sample(64 << 10, workspace_);
  ASSERT_GT(sample.size(), std::size_t{16} << 10);
  std::size_t still = 0;
  for (std::size_t at = 0; at < sample.size(); at += 8) {
    double value = 0;
    std::memcpy(&value, sample.data() + at, 8);
    still += value == 7 ? 1 : 0;
  }
  EXPECT_LT(still, sample.size() / 8 / 100);
}

TEST_F(AppraiserTest, FieldsAreSeenInAllTheirColumns) {
  constexpr std::size_t kRow = 512;  // numbers: 4 KiB
  std::vector<double> values(1 << 20, 7);
  for (std::size_t i = 0; i < values.size(); ++i)
    if (i % kRow < kRow / 4) values[i] = std::sqrt(double(i));
  EXPECT_NEAR(Field(kMeasured, raw_of(values)).loud_part(), 0.25, 0.05);
  EXPECT_EQ(Field(kMeasured, Bytes(8 << 20)).loud_part(), 0);
}

TEST_F(AppraiserTest, SamplesHaveNoPlaceTwiceAndComeFromAllOver) {
  for (const std::size_t numbers : {1u << 14, 1u << 17, 1u << 20}) {
    std::vector<double> values(numbers);
    for (std::size_t i = 0; i < numbers; ++i) values[i] = double(i);
    const Bytes raw = raw_of(values);
    const Piece sample = Field(kMeasured, raw).sample(32 << 10, workspace_);
    std::vector<double> taken(sample.size() / 8);
    std::memcpy(taken.data(), sample.data(), taken.size() * 8);
    for (std::size_t i = 1; i < taken.size(); ++i) ASSERT_LT(taken[i - 1], taken[i]) << numbers;
    EXPECT_GT(taken.back() - taken.front(), double(numbers) / 2) << numbers;
  }
}

TEST_F(AppraiserTest, SamplesOfOneLoudPlaceHaveItOnce) {
  std::vector<double> values(1 << 17, 7);
  for (std::size_t i = 50000; i < 53000; ++i) values[i] = double(i);
  const Bytes raw = raw_of(values);
  const Piece sample = Field(kMeasured, raw).sample(32 << 10, workspace_);
  std::vector<double> taken(sample.size() / 8);
  std::memcpy(taken.data(), sample.data(), taken.size() * 8);
  std::erase(taken, 7);
  ASSERT_GT(taken.size(), 500u);
  for (std::size_t i = 1; i < taken.size(); ++i) ASSERT_LT(taken[i - 1], taken[i]);
}

TEST_F(AppraiserTest, SamplesOfNextToNothingStayWithinIt) {
  for (std::size_t numbers = 1; numbers < 200; ++numbers) {
    std::vector<double> values(numbers, 7);
    for (std::size_t i = 0; i < numbers / 2; ++i) values[i] = double(i);
    const Bytes raw = raw_of(values);
    const auto sample = workspace_.sample(raw.size() + 128);
    std::fill(sample.begin(), sample.end(), std::byte{0xA5});
    const Piece loud = Field(kMeasured, raw).loud_sample(1 << 20, workspace_);
    ASSERT_GE(loud.data(), sample.data()) << numbers;
    ASSERT_LE(loud.data() + loud.size(), sample.data() + std::max<std::size_t>(raw.size(), 64));
    ASSERT_EQ(loud.size() % 8, 0u);
  }
}

}  // namespace
}  // namespace belay::codec
