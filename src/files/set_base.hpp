// SPDX-License-Identifier: Apache-2.0
// Where a set is while a version is added to it.
#pragma once

#include <belay/result.hpp>

#include <string>

namespace belay::files {

/// The directory of a set. A new one that starts from another is made beside its place, and gets
/// its name when the version is there; without finish() it is removed.
class SetPlace {
 public:
  /// invalid_argument: the set is there, and `base` is another. not_found: the base is no set.
  /// busy: the base is being written.
  static Result<SetPlace> prepare(const std::string& named, const std::string& base);
  SetPlace(SetPlace&& other) noexcept;
  SetPlace& operator=(SetPlace&&) = delete;
  ~SetPlace();

  const std::string& store() const { return store_; }
  Result<void> finish();

 private:
  SetPlace(std::string set, std::string store) : set_(std::move(set)), store_(std::move(store)) {}
  Result<void> start_from(const std::string& base) const;

  std::string set_;
  std::string store_;
};

}  // namespace belay::files
