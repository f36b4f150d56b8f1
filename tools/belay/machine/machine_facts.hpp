// SPDX-License-Identifier: Apache-2.0
// Facts about the machine that figures and findings belong to.
#pragma once

#include <cstdint>
#include <string>

namespace belay::tool {

std::string kernel_release();   ///< "Linux 6.18.0"
std::string processor_model();  ///< empty where the kernel does not tell
/// The widest vector instructions of this processor that the hash knows.
std::string widest_vectors();
std::uint64_t total_memory_bytes();
/// What can be had without pushing others out, and within the limit of the control group.
std::uint64_t available_memory_bytes();

}  // namespace belay::tool
