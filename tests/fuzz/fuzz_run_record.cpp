// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"
#include "fuzz/fuzz_target.hpp"

namespace belay::fuzz {
namespace {

/// The input is a run record without its checksum.
Bytes repaired_record(View rest) {
  Bytes file(rest.begin(), rest.end());
  write_at(file, 12, static_cast<std::uint32_t>(file.size() + 8));
  append_field(file, sum64(file, 0, file.size()));
  return file;
}

void check(const Bytes& file) {
  const auto record = format::decode_run_record(file);
  if (record) {
    require(format::encode_run_record(*record) == file, "there is one encoding");
    return;
  }
  require(record.error().code() == Code::corruption || record.error().code() == Code::unsupported,
          "a refusal is corruption or unsupported");
}

}  // namespace
}  // namespace belay::fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace belay::fuzz;
  const Input input = split(data, size);
  check(input.repaired ? repaired_record(input.rest) : Bytes(input.rest.begin(), input.rest.end()));
  return 0;
}
