// SPDX-License-Identifier: Apache-2.0
// Passing errors up without noise.
#pragma once

#include <belay/result.hpp>

#include <fmt/format.h>

#include <new>

#define BELAY_JOIN_(a, b) a##b
#define BELAY_JOIN(a, b) BELAY_JOIN_(a, b)

/// Returns from the calling function with the error of `expression`, if it has one.
#define BELAY_TRY(expression)                                     \
  do {                                                            \
    if (auto belay_tried = (expression); !belay_tried)            \
      return ::belay::Unexpected(std::move(belay_tried).error()); \
  } while (false)

/// Declares `declaration` with the value of `expression`, or returns its error.
#define BELAY_ASSIGN(declaration, expression) \
  BELAY_ASSIGN_(BELAY_JOIN(belay_result_, __LINE__), declaration, expression)
#define BELAY_ASSIGN_(result, declaration, expression)                \
  auto result = (expression);                                         \
  if (!result) return ::belay::Unexpected(std::move(result).error()); \
  declaration = *std::move(result)

namespace belay {

/// fail(Code::io, "write {}: {}", path, reason)
template <class... Args>
Unexpected fail(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Unexpected(Error(code, fmt::format(format, std::forward<Args>(args)...)));
}

/// The message is short where there is no memory even for a long one.
inline Error out_of_memory() noexcept {
  try {
    return {Code::no_space, "out of memory; free some, or use more nodes"};
  } catch (const std::bad_alloc&) {
    return {Code::no_space, "out of memory"};
  }
}

/// Runs `work`, which returns a Result; a lack of memory becomes an error like any other.
template <class Work>
auto within_memory(Work&& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return Unexpected(out_of_memory());
  }
}

/// The error of `result` with its context in front, if it is one.
template <class T>
Result<T> within(const std::string& context, Result<T> result) {
  if (!result) return Unexpected(result.error().within(context));
  return result;
}

}  // namespace belay
