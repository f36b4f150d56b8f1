// SPDX-License-Identifier: Apache-2.0
#include "os/memory.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

namespace belay::os {
namespace {

constexpr std::size_t kPage = 4096;

/// A mapping of four pages over a file of so many bytes.
class MappedFile {
 public:
  explicit MappedFile(std::size_t bytes) {
    char name[] = "/tmp/belay-memory-XXXXXX";
    const int file = ::mkstemp(name);
    EXPECT_GE(file, 0);
    ::unlink(name);
    EXPECT_EQ(::ftruncate(file, static_cast<off_t>(bytes)), 0);
    mapped_ = ::mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    EXPECT_NE(mapped_, MAP_FAILED);
    ::close(file);
  }
  ~MappedFile() { ::munmap(mapped_, 4 * kPage); }
  std::span<std::byte> bytes() { return {static_cast<std::byte*>(mapped_), 4 * kPage}; }

 private:
  void* mapped_ = nullptr;
};

TEST(AlignedMemory, IsWholePagesOfZerosWhateverLayThereBefore) {
  for (const std::size_t bytes : {std::size_t{1}, kPage, 3 * kPage + 5, std::size_t{300} << 10,
                                  std::size_t{600} << 10, std::size_t{3} << 20})
    for (int turn = 0; turn < 2; ++turn) {
      auto memory = AlignedMemory::allocate(bytes);
      ASSERT_TRUE(memory);
      EXPECT_GE(memory->size(), bytes);
      EXPECT_EQ(memory->size() % kPage, 0u);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->bytes().data()) % kPage, 0u);
      EXPECT_TRUE(std::all_of(memory->bytes().begin(), memory->bytes().end(),
                              [](std::byte byte) { return byte == std::byte{0}; }));
      std::memset(memory->bytes().data(), 0xff, memory->size());
    }
}

TEST(AlignedMemory, SaysWhenThereIsNone) {
  const auto memory = AlignedMemory::allocate(std::size_t{1} << 60);
  ASSERT_FALSE(memory);
  EXPECT_EQ(memory.error().code(), Code::no_space);
}

TEST(Populate, KeepsWhatIsWritten) {
  MappedFile file(4 * kPage);
  file.bytes()[kPage + 7] = std::byte{42};
  ASSERT_TRUE(populate(file.bytes().subspan(5, 3 * kPage)));
  EXPECT_EQ(file.bytes()[kPage + 7], std::byte{42});
  EXPECT_TRUE(populate({}));
}

TEST(Populate, SaysThatThereIsNoMemoryInsteadOfEndingTheProcess) {
  MappedFile file(kPage);  // a write behind its end is a SIGBUS, as on a file system that is full
  const auto made = populate(file.bytes());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::no_space);
}

}  // namespace
}  // namespace belay::os
