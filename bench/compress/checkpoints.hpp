// SPDX-License-Identifier: Apache-2.0
// What is compressed: the variables of all ranks of a job, at one moment of its run.
#pragma once

#include "measure/saved_region.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace belay::bench {

struct Variable {
  std::string name;
  ElementType type;
  Shape shape;
  Bytes bytes;

  bool operator==(const Variable&) const = default;
};

using Checkpoint = std::vector<Variable>;  ///< of one rank

struct Moment {
  std::string application;
  std::string when;  ///< early, middle, late
  std::vector<Checkpoint> ranks;

  std::string name() const { return application + " " + when; }
};

std::uint64_t total_bytes(const Checkpoint& checkpoint);
std::uint64_t total_bytes(std::span<const Checkpoint> ranks);

/// One file for each, so that one program can hand it to another. They end the program if that
/// fails.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint);
Checkpoint read_checkpoint(const std::filesystem::path& path);

}  // namespace belay::bench
