// SPDX-License-Identifier: Apache-2.0
#include "format/manifest_stream.hpp"
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

/// As who does not hold all of it reads it.
Result<format::ManifestHead> read_in_parts(const Bytes& file) {
  const auto header = View(file).first(std::min(file.size(), format::kManifestHeaderBytes));
  const auto front = format::manifest_front_bytes(header, file.size());
  if (!front) return Unexpected(front.error());
  require(*front <= file.size(), "the front is in the file");
  auto head = format::decode_manifest_head(View(file).first(*front), file.size());
  if (!head) return head;
  format::ManifestCheck whole;
  for (std::size_t at = 0; at < file.size(); at += 1000)
    whole.take(View(file).subspan(at, std::min<std::size_t>(1000, file.size() - at)));
  if (auto checked = whole.finish(); !checked) return Unexpected(checked.error());
  const std::uint64_t end = head->holder_offset(head->blocks);
  require(end <= file.size(), "the tables are in the file");
  const auto holders = View(file).subspan(end - head->blocks, head->blocks);
  if (auto checked = format::check_holders(Code::corruption, head->head, holders); !checked)
    return Unexpected(checked.error());
  return head;
}

void check(const Bytes& file) {
  const auto manifest = format::decode_manifest(file);
  const auto in_parts = read_in_parts(file);
  require(in_parts.has_value() || !manifest.has_value(), "parts are refused only if all of it is");
  if (manifest)
    require(in_parts->blocks == manifest->fingerprints.size() &&
                in_parts->head.regions.size() == manifest->regions.size(),
            "parts say what all of it does");
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
