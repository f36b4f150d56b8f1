// SPDX-License-Identifier: Apache-2.0
// Layouts found by a child process, whose death, silence or nonsense costs a layout and nothing
// else: the library that reads HDF5 files has holes, and the files may come from anywhere.
#pragma once

#include "files/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace belay::files {

struct ChildLimits {
  std::uint64_t file_ns = 20'000'000'000;                 ///< for one file
  std::uint64_t memory_bytes = std::uint64_t{1} << 30;    ///< beyond what it starts with
  std::uint64_t answer_bytes = std::uint64_t{128} << 20;  ///< for one file
};

struct FileToRead {
  std::string path;
  std::uint64_t bytes = 0;
};

/// One layout for each file, in their order; every one has passed check_layout(). Where no layout
/// can be had, it has no variables and `remark` says why. REQUIRES: this process has one thread.
std::vector<Layout> find_layouts(const std::vector<FileToRead>& files,
                                 const ChildLimits& limits = {});

// What the child says.
void put_layout(std::vector<std::byte>& to, const Layout& layout);
/// corruption: these bytes are not what put_layout() writes.
Result<Layout> get_layout(std::span<const std::byte> from);

}  // namespace belay::files
