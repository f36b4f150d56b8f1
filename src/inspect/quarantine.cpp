// SPDX-License-Identifier: Apache-2.0
#include "inspect/quarantine.hpp"

#include "base/try.hpp"

namespace belay::inspect {

Result<void> move_to_quarantine(os::Files& files, const std::string& directory,
                                const std::string& file) {
  const std::string quarantine = directory + "/" + kQuarantineName;
  // Of something else in its place: the store is at fault, not how the tool was called.
  if (auto made = files.make_directory(quarantine); !made)
    return fail(
        made.error().code() == Code::invalid_argument ? Code::corruption : made.error().code(),
        "{}", made.error().message());
  for (int copy = 1;; ++copy) {
    const std::string to =
        copy == 1 ? quarantine + "/" + file : fmt::format("{}/{}.{}", quarantine, file, copy);
    auto moved = files.rename_new(directory + "/" + file, to);
    if (!moved && moved.error().code() == Code::busy) continue;
    BELAY_TRY(moved);
    return files.sync_directory(quarantine);
  }
}

}  // namespace belay::inspect
