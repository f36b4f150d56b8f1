// SPDX-License-Identifier: Apache-2.0
// What tests of the C interface share: a session with a store in a directory of its own.
#pragma once

#include <belay/belay.h>

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <stdexcept>
#include <string>

namespace belay::c {

class CSessionTest : public testing::Test {
 protected:
  CSessionTest() {
    std::string pattern = testing::TempDir() + "belay-c-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp " + pattern);
    root_ = pattern;
    session_ = open();
  }
  ~CSessionTest() override {
    belay_free(session_);
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }

  belay_session* open() {
    belay_options* const options = belay_options_new();
    belay_options_set(options, "store", (root_ / "store").c_str());
    belay_options_set(options, "staging", "1MiB");
    belay_session* opened = nullptr;
    const int code = belay_open(&opened, options);
    belay_options_free(options);
    if (code != BELAY_OK) throw std::runtime_error(belay_message(nullptr));
    return opened;
  }
  belay_session* session() { return session_; }

  /// invalid_argument, with all of these words.
  static void expect_refused(int code, std::initializer_list<const char*> words) {
    EXPECT_EQ(code, BELAY_INVALID_ARGUMENT) << belay_code_name(code);
    const std::string message = belay_message(nullptr);
    for (const char* word : words)
      EXPECT_NE(message.find(word), message.npos) << "'" << word << "' is not in: " << message;
  }

 private:
  std::filesystem::path root_;
  belay_session* session_ = nullptr;
};

}  // namespace belay::c
