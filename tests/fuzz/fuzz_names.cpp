// SPDX-License-Identifier: Apache-2.0
#include "format/names.hpp"
#include "fuzz/fuzz_target.hpp"

#include <string>

namespace belay::fuzz {
namespace {

std::string make_name(const format::ParsedName& parts) {
  switch (parts.kind) {
    case format::NameKind::segment:
      return format::segment_name({parts.key, parts.rank});
    case format::NameKind::copy:
      return format::copy_name({parts.key, parts.rank});
    case format::NameKind::shard:
      return format::shard_name({parts.key, parts.rank});
    case format::NameKind::bundle:
      return format::bundle_name({parts.key, parts.rank});
    case format::NameKind::manifest:
      return format::manifest_name(parts.key, parts.rank);
    case format::NameKind::run:
      return format::run_name(parts.key.run);
    case format::NameKind::closed:
      return format::closed_name(parts.key);
    case format::NameKind::retired:
      return format::retired_name(parts.key);
  }
  return {};
}

void check(std::string_view name) {
  const auto parts = format::parse_name(name);
  if (!parts) return;
  const std::string made = make_name(*parts);
  require((parts->temporary ? format::temporary_name(made) : made) == name,
          "what parses is what is made");
  require(name.find('/') == std::string_view::npos, "names stay in their directory");
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  belay::fuzz::check({reinterpret_cast<const char*>(data), size});
  return 0;
}
