// SPDX-License-Identifier: Apache-2.0
#include "codec/whole_codecs.hpp"

#include "base/try.hpp"
#include "codec/compressor.hpp"

#include <cstring>

namespace belay::codec {
namespace {

void copy(std::span<const std::byte> from, std::span<std::byte> to) {
  if (!from.empty()) std::memcpy(to.data(), from.data(), from.size());
}

}  // namespace

std::optional<std::size_t> RawCodec::encode(const Elements&, std::span<const std::byte> raw,
                                            std::span<std::byte> to, Workspace&) const {
  if (to.size() < raw.size()) return {};
  copy(raw, to);
  return raw.size();
}

Result<void> RawCodec::decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                              Workspace&) const {
  if (encoded.size() != raw.size())
    return fail(Code::corruption, "raw: {} bytes where {} belong", encoded.size(), raw.size());
  copy(encoded, raw);
  return {};
}

std::optional<std::size_t> ZstdLongCodec::encode(const Elements&, std::span<const std::byte> raw,
                                                 std::span<std::byte> to,
                                                 Workspace& workspace) const {
  if (raw.empty()) return 0;
  const std::size_t bytes = Zstd(workspace, Zstd::Effort::far).compress(raw, to);
  return bytes > 0 ? std::optional(bytes) : std::nullopt;
}

Result<void> ZstdLongCodec::decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                                   Workspace& workspace) const {
  const bool sound =
      raw.empty() ? encoded.empty() : Zstd(workspace, Zstd::Effort::far).decompress(encoded, raw);
  if (!sound)
    return fail(Code::corruption, "zstd-long: not one sound frame of {} bytes", raw.size());
  return {};
}

}  // namespace belay::codec
