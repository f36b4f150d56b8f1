// SPDX-License-Identifier: Apache-2.0
// Facts about the machine that figures belong to.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <filesystem>

namespace belay::bench {

/// Processor, cores, memory, kernel, the file system of `directory`, date.
nlohmann::json describe_machine(const std::filesystem::path& directory);

/// Shared memory seen as files, if so much fits in; else `otherwise`.
std::filesystem::path memory_backed(std::uint64_t bytes, const std::filesystem::path& otherwise);

std::uint64_t available_memory_bytes();
std::uint64_t available_disk_bytes(const std::filesystem::path& directory);
/// VmHWM of this process; restart_memory_peak() makes it the memory that is resident now.
std::uint64_t memory_peak_bytes();
void restart_memory_peak();

}  // namespace belay::bench
