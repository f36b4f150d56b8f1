// SPDX-License-Identifier: Apache-2.0
// The table of contents of a packed set. Inputs are taken as they are: it has no checksum of its
// own, since blocks are verified before it is read.
#include "files/contents.hpp"

#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <set>

namespace belay::fuzz {
namespace {

void check_file(const files::PackedFile& file) {
  require(files::check_path(file.path).has_value(), "paths stay below a directory");
  std::uint64_t sum = 0;
  for (const files::PackedRegion& region : file.regions)
    for (const files::Range& range : region.ranges) {
      require(range.offset <= file.bytes && range.length <= file.bytes - range.offset,
              "ranges are in their file");
      sum += range.length;
    }
  require(sum == file.bytes, "ranges are all of the file");
}

void check_skeleton(const files::PackedFile& file, std::set<std::string>& names) {
  std::set<std::string> variables;
  for (const files::PackedRegion& region : file.regions) {
    require(names.insert(region.region).second, "names are unique");
    variables.insert(region.variable);
  }
  require(file.in_skeleton.size() <= files::kMostVariables, "variables are not too many");
  for (const files::SkeletonEntry& entry : file.in_skeleton) {
    require(names.insert(entry.name).second, "names are unique");
    require(!entry.variable.empty() && variables.insert(entry.variable).second,
            "a variable is in one place");
    require(entry.array.makes_sense() && entry.bytes <= file.bytes, "variables make sense");
  }
}

void check(View bytes) {
  const auto contents = files::decode_contents(bytes);
  if (!contents) {
    require(
        contents.error().code() == Code::corruption || contents.error().code() == Code::unsupported,
        "a refusal is corruption or unsupported");
    return;
  }
  std::set<std::string> names;
  for (const files::PackedFile& file : contents->files) {
    check_file(file);
    check_skeleton(file, names);
  }
  const auto again = files::decode_contents(files::encode_contents(*contents));
  require(again && again->files.size() == contents->files.size(), "what was read can be written");
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  check(std::as_bytes(std::span(data, size)));
  return 0;
}
