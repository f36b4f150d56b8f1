// SPDX-License-Identifier: Apache-2.0
// Where a set is while a version is added to it.
#pragma once

#include <belay/result.hpp>

#include "os/descriptor.hpp"
#include "os/files.hpp"

#include <optional>
#include <string>

namespace belay::files {

/// not_found, and what to do, unless this is a directory with a store in it.
Result<void> check_set(const std::string& set);

/// Of why a set cannot be opened: the store that is there is a program's.
Error explain_failure(os::Files& files, const std::string& set, const Error& error);

/// The directory of a set. A new one that starts from another is made beside its place, and gets
/// its name when the version is there; without finish() it is removed, and if this process is
/// killed, by the next that starts this set from a base.
class SetPlace {
 public:
  /// With a set that is there: goes on with it. invalid_argument: it was not started from `base`.
  /// not_found: the base is no set. busy: the base is being written. `files` must outlive it.
  static Result<SetPlace> prepare(os::Files& files, const std::string& named,
                                  const std::string& base);
  SetPlace(SetPlace&& other) noexcept;
  SetPlace& operator=(SetPlace&&) = delete;
  ~SetPlace();

  const std::string& store() const { return store_; }
  Result<void> finish();

 private:
  SetPlace(os::Files& files, std::string set, std::string store)
      : files_(&files), set_(std::move(set)), store_(std::move(store)) {}
  Result<void> start_from(const std::string& base);

  os::Files* files_;
  std::string set_;
  std::string store_;
  std::optional<os::Descriptor> lock_;  ///< of the directory while it has not got its name
};

}  // namespace belay::files
