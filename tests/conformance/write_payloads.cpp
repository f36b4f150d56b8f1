// SPDX-License-Identifier: Apache-2.0
// write_payloads DIRECTORY: for some arrays the file NAME, and for each codec what it makes of it,
// NAME.ID, so that a reader of docs/format.md can be held against them.
#include "codec/codec.hpp"
#include "codec/workspace.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace belay::codec {
namespace {

using Bytes = std::vector<std::byte>;
using Number = Elements::Number;

struct Array {
  const char* name;
  Elements elements;
  std::size_t bytes;
};

const Array kArrays[] = {
    {"f64",
     {.number = Number::floating, .bytes = 8, .dimensions = 3, .shape = {20, 20, 21}},
     8 * 8400 + 3},
    {"f32-big-endian",
     {.number = Number::floating,
      .bytes = 4,
      .big_endian = true,
      .dimensions = 2,
      .shape = {500, 600}},
     1'200'000},
    {"c64-half-a-number-too-many",
     {.number = Number::floating, .bytes = 4, .parts = 2, .dimensions = 2, .shape = {50, 60}},
     24004},
    {"records-of-12", {.bytes = 12}, 50005},
    {"half-at-rest", {.number = Number::floating, .bytes = 4}, 100'003},
    {"records-of-12-half-at-rest", {.bytes = 12}, 50005},
    {"bytes", {}, 100'000},
    {"one", {.number = Number::integer, .bytes = 8}, 8},
    {"none", {}, 0},
};

Bytes content_of(const Array& array) {
  Bytes bytes(array.bytes);
  const bool floats = array.elements.bytes != 8;
  const std::size_t width = floats ? 4 : 8;
  for (std::size_t i = 0; (i + 1) * width <= bytes.size(); ++i) {
    const bool at_rest = std::string_view(array.name).ends_with("half-at-rest");
    const double value =
        at_rest && i / 500 % 2 == 1 ? 1.5 : std::sin(static_cast<double>(i) * 0.01);
    const auto small = static_cast<float>(value);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &small, 4);
    if (array.elements.big_endian) bits = __builtin_bswap32(bits);
    if (floats)
      std::memcpy(bytes.data() + i * width, &bits, width);
    else
      std::memcpy(bytes.data() + i * width, &value, width);
  }
  return bytes;
}

bool write(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  return static_cast<bool>(file.flush());
}

bool write_all(const std::string& directory) {
  Workspace workspace;
  for (const Array& array : kArrays) {
    const Bytes raw = content_of(array);
    const std::string path = directory + "/" + array.name;
    if (!write(path, raw)) return false;
    for (const Codec* codec : all_codecs()) {
      Bytes to(raw.size() + raw.size() / 8 + 4096);
      const auto bytes = codec->encode(array.elements, raw, to, workspace);
      const std::string id = std::to_string(static_cast<unsigned>(codec->id()));
      if (!bytes || !write(path + "." + id, std::span(to).first(*bytes))) return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace belay::codec

int main(int argc, char** argv) {
  if (argc == 2 && belay::codec::write_all(argv[1])) return 0;
  std::fprintf(stderr, "usage: %s DIRECTORY, which must be writable\n", argv[0]);
  return 1;
}
