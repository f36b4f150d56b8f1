// SPDX-License-Identifier: Apache-2.0
#include "compress/checkpoints.hpp"

#include "measure/must.hpp"

#include <nlohmann/json.hpp>

#include <fstream>

namespace belay::bench {
namespace {

using Json = nlohmann::json;

std::vector<std::uint64_t> extents_of(const Shape& shape) {
  return {shape.extents().begin(), shape.extents().end()};
}

}  // namespace

std::uint64_t total_bytes(const Checkpoint& checkpoint) {
  std::uint64_t total = 0;
  for (const Variable& variable : checkpoint) total += variable.bytes.size();
  return total;
}

std::uint64_t total_bytes(std::span<const Checkpoint> ranks) {
  std::uint64_t total = 0;
  for (const Checkpoint& checkpoint : ranks) total += total_bytes(checkpoint);
  return total;
}

// The first line tells what the bytes after it are.
void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint) {
  Json head = Json::array();
  for (const Variable& variable : checkpoint)
    head.push_back({{"name", variable.name},
                    {"kind", static_cast<int>(variable.type.kind)},
                    {"element_bytes", variable.type.bytes},
                    {"extents", extents_of(variable.shape)},
                    {"bytes", variable.bytes.size()}});
  std::ofstream file(path, std::ios::binary);
  file << head << '\n';
  for (const Variable& variable : checkpoint)
    file.write(reinterpret_cast<const char*>(variable.bytes.data()),
               static_cast<std::streamsize>(variable.bytes.size()));
  if (!file.flush()) die(fmt::format("cannot write {}; is there room?", path.string()));
}

Checkpoint read_checkpoint(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head;
  if (!std::getline(file, head)) die(fmt::format("cannot read {}", path.string()));
  Checkpoint checkpoint;
  for (const Json& entry : Json::parse(head)) {
    Variable& variable = checkpoint.emplace_back();
    variable.name = entry.at("name");
    variable.type.kind = static_cast<ElementKind>(entry.at("kind").get<int>());
    variable.type.bytes = entry.at("element_bytes");
    variable.shape = Shape(entry.at("extents").get<std::vector<std::uint64_t>>());
    variable.bytes.resize(entry.at("bytes"));
    if (!file.read(reinterpret_cast<char*>(variable.bytes.data()),
                   static_cast<std::streamsize>(variable.bytes.size())))
      die(fmt::format("{} is shorter than it says", path.string()));
  }
  return checkpoint;
}

}  // namespace belay::bench
