// SPDX-License-Identifier: Apache-2.0
// Errors of files: the one mapping from errno to codes, and the texts that all Files share.
#pragma once

#include <belay/result.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace belay::os {

/// ENOSPC, EDQUOT, EFBIG: no_space. ENOENT, ENOTDIR: not_found. EEXIST, EWOULDBLOCK: busy.
/// EOPNOTSUPP, ENOSYS: unsupported. EINVAL: invalid_argument. All others: io.
Code code_of(int error);

/// "write /path: No space left on device (free space or point `store` elsewhere)": what was tried,
/// where, why it failed and, where there is a common remedy, what to do.
Error error_of(int error, std::string_view operation, std::string_view path);

/// The path of an operation with two names, for messages.
std::string from_to(const std::string& from, const std::string& to);

/// corruption: `path` is a link, pipe, directory or device where a regular file belongs.
Error not_regular(std::string_view operation, std::string_view path);

/// invalid_argument: `path` is something else where a directory belongs.
Error not_directory(std::string_view operation, std::string_view path);

/// corruption: `path` is a link where a directory belongs, and would lead out of the store.
Error link_for_directory(std::string_view operation, std::string_view path);

/// io: `directory` belongs to another user than what this process writes into it.
Error foreign_directory(std::string_view operation, std::string_view directory,
                        std::uint64_t its_user, std::uint64_t our_user);

inline constexpr std::size_t kOwnerBytes = 200;  ///< of a lock file, as far as they are shown

/// busy: the message is what the holder of a lock wrote, cut to kOwnerBytes and made printable.
Error lock_held(std::string_view written);

}  // namespace belay::os
