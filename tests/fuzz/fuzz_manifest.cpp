// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"
#include "format/vector_sink.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>

namespace belay::fuzz {
namespace {

/// The input is a manifest without its last zeros and footer.
Bytes repaired_manifest(View rest) {
  Bytes file(rest.begin(), rest.end());
  pad_before_footer(file, 32);
  const std::uint64_t file_bytes = file.size() + 32;
  write_at(file, 16, file_bytes);
  append_text(file, "NAMYALEB");
  append_field(file, file_bytes);
  const auto sum = format::Checksum128::of(file);
  append_field(file, sum.low);
  append_field(file, sum.high);
  return file;
}

void check(const Bytes& file) {
  const auto manifest = format::decode_manifest(file);
  if (!manifest) {
    require(
        manifest.error().code() == Code::corruption || manifest.error().code() == Code::unsupported,
        "a refusal is corruption or unsupported");
    return;
  }
  for (const auto& region : manifest->regions)
    require(region.bytes / manifest->block_bytes <= manifest->fingerprints.size() &&
                region.first_block + manifest->blocks_of(region) <= manifest->fingerprints.size(),
            "regions lie in the block arrays");
  require(manifest->holders.size() == manifest->fingerprints.size(), "each block has a holder");
  for (const std::uint8_t holder : manifest->holders)
    require(holder < manifest->holding_segments(), "holders name holding segments");
  format::VectorSink sink;
  require(format::encode_manifest(*manifest, sink).has_value(), "what decodes can be encoded");
  require(sink.bytes() == file, "there is one encoding");
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  const Input input = split(data, size);
  check(input.repaired ? repaired_manifest(input.rest)
                       : Bytes(input.rest.begin(), input.rest.end()));
  return 0;
}
