// SPDX-License-Identifier: Apache-2.0
#include "os/line.hpp"

#include "os/memory.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

namespace belay::os {
namespace {

constexpr std::uint64_t kPatienceNs = 20'000'000'000;

std::vector<std::byte> pattern(std::size_t bytes) {
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; ++i) made[i] = static_cast<std::byte>(i * 7 + i / 251);
  return made;
}

TEST(Line, MessagesOfAnySizeArriveWholeAndInOrder) {
  auto ends = Line::pair();
  ASSERT_TRUE(ends);
  auto& [here, there] = *ends;
  std::thread sender([&line = here] {
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5} << 20})
      EXPECT_TRUE(line.send(pattern(bytes), kPatienceNs));
  });
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5} << 20}) {
    const auto received = there.receive(kPatienceNs);
    EXPECT_TRUE(received && received->message == pattern(bytes)) << bytes;
  }
  sender.join();
}

TEST(Line, ASilentPeerIsLostAtTheDeadline) {
  auto ends = Line::pair();
  ASSERT_TRUE(ends);
  EXPECT_EQ(ends->first.receive(20'000'000).error().code(), Code::peer_lost);
  // Nobody takes it, so it cannot all be sent.
  EXPECT_EQ(ends->first.send(pattern(32u << 20), 20'000'000).error().code(), Code::peer_lost);
}

TEST(Line, AProcessThatIsKilledHangsUpAtOnceAndSharedMemoryStays) {
  auto listener = Listener::open(system_random());
  ASSERT_TRUE(listener);
  const pid_t child = ::fork();
  if (child == 0) {
    auto file = make_shared_file();
    auto memory = AlignedMemory::map_shared(file->number(), 4096, 8192);
    std::memcpy(memory->bytes().data() + 10, "seen by both", 12);
    auto line = Line::connect(listener->name(), kPatienceNs);
    (void)line->send(pattern(3), kPatienceNs, file->number());
    ::raise(SIGKILL);
  }
  auto line = listener->accept(kPatienceNs);
  ASSERT_TRUE(line) << line.error().message();
  auto received = line->receive(kPatienceNs);
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_TRUE(received->message == pattern(3));
  ASSERT_TRUE(received->descriptor.valid());
  const auto lost = line->receive(kPatienceNs);
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().code(), Code::peer_lost);
  EXPECT_NE(lost.error().message().find("hung up"), std::string::npos) << lost.error().message();
  const auto memory = AlignedMemory::map_shared(received->descriptor.number(), 4096, 4096);
  ASSERT_TRUE(memory);
  EXPECT_EQ(std::memcmp(memory->bytes().data() + 10, "seen by both", 12), 0);
  ::waitpid(child, nullptr, 0);
}

TEST(Line, NobodyListensUnderAnUnknownName) {
  EXPECT_EQ(Line::connect("belay-nobody", kPatienceNs).error().code(), Code::peer_lost);
}

TEST(Line, TheFirstOfManyThatHasSomethingToSayIsFound) {
  auto first = Line::pair();
  auto second = Line::pair();
  ASSERT_TRUE(first && second);
  const Line* lines[] = {&first->first, &second->first};
  auto none = wait_for_any(lines, 1'000'000);
  ASSERT_TRUE(none);
  EXPECT_FALSE(none->has_value());
  ASSERT_TRUE(second->second.send({}, kPatienceNs));
  const auto found = wait_for_any(lines, kPatienceNs);
  ASSERT_TRUE(found && found->has_value());
  EXPECT_EQ(**found, 1u);
}

}  // namespace
}  // namespace belay::os
