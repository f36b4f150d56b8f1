// SPDX-License-Identifier: Apache-2.0
// Runs every file of a corpus directory, and every cut of it, through a fuzz target.
#include "fuzz/fuzz_target.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace {

std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(file),
                                  std::istreambuf_iterator<char>()};
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
    std::exit(1);
  }
  return bytes;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
    return 2;
  }
  std::error_code error;
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1], error)) {
    if (!entry.is_regular_file()) continue;
    const auto bytes = read_file(entry.path());
    for (std::size_t size = 0; size <= bytes.size(); ++size) {
      const std::vector<std::uint8_t> cut(bytes.begin(),
                                          bytes.begin() + static_cast<std::ptrdiff_t>(size));
      LLVMFuzzerTestOneInput(cut.data(), cut.size());
    }
    ++files;
  }
  std::printf("%zu inputs replayed\n", files);
  if (error) std::fprintf(stderr, "%s: %s\n", argv[1], error.message().c_str());
  return error || files == 0 ? 1 : 0;
}
