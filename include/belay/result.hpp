// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. A subset of std::expected<T, Error>, so that it can become one.
#pragma once

#include <belay/api.h>

#include <cassert>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

namespace belay {

/// Why a call failed. The list is closed; the message says the rest.
enum class Code {
  not_found,         ///< the version, region or store does not exist
  corruption,        ///< bytes were read that are not what was written
  io,                ///< the operating system refused to read or write
  no_space,          ///< a device, quota or limit is full
  unsupported,       ///< this build, kernel or stage cannot do it
  invalid_argument,  ///< the call, option or name is wrong
  peer_lost,         ///< another rank did not answer within `timeout`
  busy,              ///< another process uses the store
};

/// The code's name as written above, for messages and logs.
BELAY_API const char* name_of(Code code);

/// What went wrong, where, why, and what can be done about it.
class Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }

  /// The same error seen from one level further up: "context: message".
  Error within(const std::string& context) const { return {code_, context + ": " + message_}; }

 private:
  Code code_;
  std::string message_;
};

/// Carries an Error into a Result: `return Unexpected(error)`.
class Unexpected {
 public:
  explicit Unexpected(Error error) : error_(std::move(error)) {}
  Error& error() { return error_; }

 private:
  Error error_;
};

template <class T>
class Result {
 public:
  using value_type = T;

  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Unexpected failure) : state_(std::in_place_index<1>, std::move(failure.error())) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& value() & { return std::get<0>(state_); }
  const T& value() const& { return std::get<0>(state_); }
  T&& value() && { return std::get<0>(std::move(state_)); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  template <class U>
  T value_or(U&& other) const& {
    return has_value() ? value() : static_cast<T>(std::forward<U>(other));
  }

  /// REQUIRES: !has_value()
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class Result<void> {
 public:
  using value_type = void;

  Result() = default;
  Result(Unexpected failure) : error_(std::move(failure.error())) {}

  bool has_value() const { return !error_; }
  explicit operator bool() const { return has_value(); }
  void value() const { assert(has_value()); }

  /// REQUIRES: !has_value()
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

}  // namespace belay
