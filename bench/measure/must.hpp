// SPDX-License-Identifier: Apache-2.0
// A benchmark has no use for errors: it says what failed and ends.
#pragma once

#include <belay/result.hpp>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

namespace belay::bench {

[[noreturn]] inline void die(const std::string& message) {
  fmt::print(stderr, "bench: {}\n", message);
  std::exit(1);
}

template <class T>
T must(const char* what, Result<T> result) {
  if (!result) die(fmt::format("{}: {}", what, result.error().message()));
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

}  // namespace belay::bench
