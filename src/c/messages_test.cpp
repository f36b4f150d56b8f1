// SPDX-License-Identifier: Apache-2.0
// Failures: their codes, where their texts are found, and functions of the program that misbehave.
#include "c/c_session_test.hpp"

#include "c/handle.hpp"

#include <thread>
#include <vector>

namespace belay::c {
namespace {

using CMessages = CSessionTest;

TEST_F(CMessages, CodesHaveTheNamesOfTheCppInterface) {
  EXPECT_STREQ(belay_code_name(BELAY_OK), "ok");
  EXPECT_STREQ(belay_code_name(BELAY_NOT_FOUND), "not_found");
  EXPECT_STREQ(belay_code_name(BELAY_BUSY), "busy");
  EXPECT_STREQ(belay_code_name(-1), "unknown");
  EXPECT_STREQ(belay_code_name(9), "unknown");
}

TEST_F(CMessages, StayWithTheirSessionAndTheirThread) {
  EXPECT_STREQ(belay_message(session()), "");
  EXPECT_EQ(belay_unprotect(session(), "nothing"), BELAY_NOT_FOUND);
  const std::string mine = belay_message(session());
  EXPECT_NE(mine.find("nothing"), mine.npos);
  EXPECT_EQ(belay_message(nullptr), mine);
  std::thread([] {
    EXPECT_STREQ(belay_message(nullptr), "") << "another thread has failed at nothing";
    EXPECT_NE(belay_close(nullptr), BELAY_OK);
  }).join();
  EXPECT_EQ(belay_message(nullptr), mine);
  EXPECT_NE(belay_close(nullptr), BELAY_OK);
  EXPECT_NE(belay_message(nullptr), mine);
  EXPECT_EQ(belay_message(session()), mine) << "another session's failure is not this one's";
}

TEST_F(CMessages, AreGivenForWhateverIsThrown) {
  EXPECT_EQ(run(nullptr, []() -> Result<void> { throw std::bad_alloc(); }), BELAY_NO_SPACE);
  EXPECT_EQ(run(nullptr, []() -> Result<void> { throw std::runtime_error("odd"); }), BELAY_IO);
  EXPECT_STREQ(belay_message(nullptr), "odd");
  EXPECT_EQ(run(nullptr, []() -> Result<void> { throw 1; }), BELAY_IO);
}

/// A vector that C functions stand for, which may misbehave.
struct Numbers {
  std::vector<int> values = std::vector<int>(100, 7);
  bool throws = false;
  bool refuses = false;
  bool lies = false;
  int elsewhere[4] = {};

  static void* view(size_t* count, void* user) {
    auto& self = *static_cast<Numbers*>(user);
    if (self.throws) throw std::runtime_error("no view today");
    *count = self.values.size();
    return self.values.data();
  }
  static void* resize(size_t count, void* user) {
    auto& self = *static_cast<Numbers*>(user);
    if (self.refuses) return nullptr;
    if (self.lies) return self.elsewhere;
    self.values.resize(count);
    return self.values.data();
  }
  belay_dynamic memory() { return {view, resize, this}; }
};

class CDynamic : public CSessionTest {
 protected:
  CDynamic() {
    EXPECT_EQ(belay_protect_dynamic(session(), "numbers", numbers_.memory(), BELAY_INT), BELAY_OK);
    EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_OK);
    EXPECT_EQ(belay_wait(session(), nullptr), BELAY_OK);
    numbers_.values.assign(3, 0);
  }
  Numbers numbers_;
};

TEST_F(CDynamic, MemoryIsResizedWhenItComesBack) {
  EXPECT_EQ(belay_restore(session(), nullptr, nullptr), BELAY_OK) << belay_message(session());
  EXPECT_EQ(numbers_.values, std::vector<int>(100, 7));
}

TEST_F(CDynamic, MemoryMayBecomeEmpty) {
  numbers_.values = {};
  EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_OK) << belay_message(session());
  EXPECT_EQ(belay_wait(session(), nullptr), BELAY_OK);
  numbers_.values.assign(5, 5);
  EXPECT_EQ(belay_restore(session(), nullptr, nullptr), BELAY_OK) << belay_message(session());
  EXPECT_TRUE(numbers_.values.empty());
}

TEST_F(CDynamic, MemoryThatCannotGrowIsNoSpace) {
  numbers_.refuses = true;
  EXPECT_EQ(belay_restore(session(), nullptr, nullptr), BELAY_NO_SPACE);
  EXPECT_NE(std::string(belay_message(session())).find("100 elements"), std::string::npos)
      << belay_message(session());
}

TEST_F(CDynamic, FunctionsThatDisagreeAreFound) {
  numbers_.lies = true;
  expect_refused(belay_restore(session(), nullptr, nullptr), {"numbers", "same memory"});
}

TEST_F(CDynamic, AFunctionThatThrowsFailsItsVersionOnly) {
  numbers_.throws = true;
  expect_refused(belay_checkpoint(session(), nullptr), {"numbers", "no view today"});
  numbers_.throws = false;
  EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_OK) << belay_message(session());
}

int ignore_the_end(belay_reader* reader, void*) {
  char byte = 1;
  while (belay_read(reader, &byte, 1) == BELAY_OK) {
  }
  EXPECT_EQ(byte, 0) << "past the end there are zeros";
  return 0;
}

TEST_F(CMessages, OfALoadFunctionThatReadsTooMuchComeFromTheRestore) {
  const belay_serializer serializer = {
      [](belay_writer* writer, void*) { return belay_write(writer, "four", 4); }, ignore_the_end,
      nullptr};
  EXPECT_EQ(belay_protect_serialized(session(), "text", serializer), BELAY_OK);
  EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_OK);
  expect_refused(belay_restore(session(), nullptr, nullptr), {"text", "past the end"});
}

TEST_F(CMessages, OfASaveFunctionThatLostBytesFailTheVersion) {
  const belay_serializer serializer = {[](belay_writer* writer, void*) {
                                         EXPECT_EQ(belay_write(writer, nullptr, 4),
                                                   BELAY_INVALID_ARGUMENT);
                                         EXPECT_EQ(belay_write(writer, nullptr, 0), BELAY_OK);
                                         return 0;
                                       },
                                       [](belay_reader*, void*) -> int { throw 1; }, nullptr};
  EXPECT_EQ(belay_protect_serialized(session(), "text", serializer), BELAY_OK);
  EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_NO_SPACE);
}

TEST_F(CMessages, OfFunctionsThatThrowAreErrorsLikeAnyOther) {
  const belay_serializer serializer = {[](belay_writer*, void*) { return 0; },
                                       [](belay_reader*, void*) -> int { throw 1; }, nullptr};
  EXPECT_EQ(belay_protect_serialized(session(), "text", serializer), BELAY_OK);
  EXPECT_EQ(belay_checkpoint(session(), nullptr), BELAY_OK);
  expect_refused(belay_restore(session(), nullptr, nullptr), {"load function threw"});
}

}  // namespace
}  // namespace belay::c
