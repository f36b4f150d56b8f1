// SPDX-License-Identifier: Apache-2.0
// A directory that is gone when the test is over; in memory where there is such a place, since
// these tests make thousands of stores.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

namespace belay::crash {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    const bool in_memory = std::filesystem::is_directory("/dev/shm");
    std::string pattern = std::string(in_memory ? "/dev/shm" : "/tmp") + "/belay-test-XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) std::abort();
    path_ = pattern;
  }
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::string& path() const { return path_; }
  void clear() const {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directory(path_);
  }

 private:
  std::string path_;
};

}  // namespace belay::crash
