// SPDX-License-Identifier: Apache-2.0
#include "session/hand_over.hpp"

#include "session/session_test.hpp"

namespace belay::session {
namespace {

Manifest manifest_of_three_blocks() {
  Manifest manifest;
  manifest.origin = {{1, 2}, 3, {4, 5}, 1, 3};
  manifest.application = "test";
  manifest.block_bytes = kBlock;
  manifest.level = Level::replicas(2);
  manifest.regions.push_back(
      {"numbers", element_type<double>(), Shape(160), 160 * sizeof(double), 0});
  manifest.fingerprints = {{1, 1}, {2, 2}, {3, 3}};
  manifest.holders = {0, 0, 0};
  manifest.segments.push_back({.id = {{4, 5}, 1}, .file_bytes = 4096, .copies = 1, .nodes = 2});
  return manifest;
}

Order example_order() {
  Order order;
  order.manifest = manifest_of_three_blocks();
  order.directory = "/store/node-7";
  order.nodes = {0, 1, 2};
  order.copies = 2;
  order.start_ns = 99;
  order.own_segment = 0;
  order.counted_on = {{.id = {{4, 3}, 2}, .file_bytes = 77, .copies = 1, .nodes = 2}};
  order.pieces = {{.at = 128, .block = 2, .region = 0, .length = 256}};
  return order;
}

std::span<const std::byte> body_of(const std::vector<std::byte>& message) {
  return std::span(message).subspan(1);
}

TEST(HandOver, AnOrderArrivesAsItWasGiven) {
  const Order order = example_order();
  const auto message = must(encode_order(order));
  EXPECT_EQ(notice_of(message), Notice::order);
  const Order read = must(decode_order(body_of(message)));
  EXPECT_EQ(read.manifest.fingerprints, order.manifest.fingerprints);
  EXPECT_EQ(read.manifest.level, order.manifest.level);
  EXPECT_EQ(read.directory, order.directory);
  EXPECT_EQ(read.nodes, order.nodes);
  EXPECT_EQ(read.copies, order.copies);
  EXPECT_EQ(read.start_ns, order.start_ns);
  EXPECT_EQ(read.counted_on, order.counted_on);
  ASSERT_EQ(read.pieces.size(), 1u);
  EXPECT_EQ(read.pieces[0].at, 128u);
  EXPECT_EQ(read.pieces[0].length, 256u);
}

TEST(HandOver, AReportArrivesAsItWasGiven) {
  Outcome outcome;
  outcome.voted = true;
  outcome.manifest = manifest_of_three_blocks();
  outcome.shares = {{10, 8, 3, {{2, 30}}}, {0, 0, 0, {}}, {40, 30, 0, {{0, 1}, {1, 2}}}};
  outcome.keepers = {{1}, {2}, {}};
  outcome.kept.copies = {{{4, 5}, 2}};
  outcome.kept.manifests = {{{4, 5}, 0}, {{4, 5}, 2}};
  outcome.kept.shards = {{{4, 5}, 256}};
  const Outcome read = must(decode_report(body_of(must(encode_report(outcome)))));
  EXPECT_TRUE(read.voted);
  EXPECT_EQ(read.manifest.segments, outcome.manifest.segments);
  EXPECT_EQ(read.kept.shards, outcome.kept.shards);
  ASSERT_EQ(read.shares.size(), 3u);
  EXPECT_EQ(read.shares[0].natural_bytes, 3u);
  EXPECT_EQ(read.shares[2].parcels.size(), 2u);
  EXPECT_EQ(read.shares[2].parcels[1].bytes, 2u);
  EXPECT_EQ(read.keepers, outcome.keepers);
  EXPECT_EQ(read.kept.copies, outcome.kept.copies);
  EXPECT_EQ(read.kept.manifests, outcome.kept.manifests);
}

TEST(HandOver, AFailureArrivesWithItsReason) {
  Outcome outcome;
  outcome.error = Error(Code::no_space, "the disk is full");
  const Outcome read = must(decode_report(body_of(must(encode_report(outcome)))));
  EXPECT_FALSE(read.voted);
  ASSERT_TRUE(read.error);
  EXPECT_EQ(read.error->code(), Code::no_space);
  EXPECT_EQ(read.error->message(), "the disk is full");
}

TEST(HandOver, WhatIsCutOrPointsNowhereIsCorruption) {
  const auto whole = must(encode_order(example_order()));
  for (std::size_t bytes = 1; bytes < whole.size(); ++bytes)
    EXPECT_FALSE(decode_order(std::span(whole).subspan(1, bytes - 1))) << bytes;
  Order wrong = example_order();
  wrong.pieces[0].block = 3;
  expect_error(decode_order(body_of(must(encode_order(wrong)))), Code::corruption, {"blocks"});
  const auto report = must(encode_report({.voted = false,
                                          .error = Error(Code::io, "text"),
                                          .manifest = {},
                                          .shares = {},
                                          .keepers = {},
                                          .kept = {}}));
  for (std::size_t bytes = 1; bytes < report.size(); ++bytes)
    EXPECT_FALSE(decode_report(std::span(report).subspan(1, bytes - 1))) << bytes;
}

}  // namespace
}  // namespace belay::session
