// SPDX-License-Identifier: Apache-2.0
#include "format/shard.hpp"

#include "format/wire.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>

namespace belay::fuzz {
namespace {

constexpr std::size_t kParityField = 64;          // in the description
constexpr std::uint64_t kMostParity = 256 << 10;  // that the target makes room for

/// The input is the description; parity of the length that it names, all zeros, comes before it.
Bytes repaired_shard(View rest) {
  std::uint64_t parity = 0;
  if (rest.size() >= kParityField + sizeof(parity))
    std::memcpy(&parity, rest.data() + kParityField, sizeof(parity));
  Bytes file(format::round_up(std::min(parity, kMostParity), 64));
  const std::uint64_t begin = file.size();
  append(file, rest);
  const std::uint64_t checksum = sum64(file, begin, file.size());
  pad_before_footer(file, format::kShardFooterBytes);
  const std::size_t footer = file.size();
  append_text(file, "DHSYALEB");
  append_field(file, begin);
  append_field(file, std::uint64_t{rest.size()});
  append_field(file, checksum);
  file.resize(footer + 48);
  append_field(file, std::uint64_t{footer + format::kShardFooterBytes});
  append_field(file, sum64(file, footer, file.size()));
  return file;
}

void require_refusal(const Error& error) {
  require(error.code() == Code::corruption || error.code() == Code::unsupported,
          "a refusal is corruption or unsupported");
}

void check_description(const Bytes& file, const format::ShardFooter& footer,
                       const format::ShardDescription& description) {
  require(description.parity_bytes <= footer.description_offset, "the parity is in the file");
  require(description.seat < description.stripe.seats(), "the seat is in the stripe");
  require(description.index < description.stripe.level.shards, "the shard is in the scheme");
  const Bytes end = format::encode_shard_end(description);
  const auto whole = View(file).subspan(description.parity_bytes);
  if (footer.description_offset == format::round_up(description.parity_bytes, 64) &&
      end.size() == whole.size())
    require(std::equal(end.begin(), end.end(), whole.begin()), "there is one encoding");
}

void check(const Bytes& file) {
  if (file.size() < format::kShardFooterBytes) return;
  const auto footer =
      format::decode_shard_footer(View(file).last(format::kShardFooterBytes), file.size());
  if (!footer) return require_refusal(footer.error());
  const auto description = format::decode_shard_description(
      View(file).subspan(footer->description_offset, footer->description_bytes), *footer);
  if (!description) return require_refusal(description.error());
  check_description(file, *footer, *description);
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  const Input input = split(data, size);
  check(input.repaired ? repaired_shard(input.rest) : Bytes(input.rest.begin(), input.rest.end()));
  return 0;
}
