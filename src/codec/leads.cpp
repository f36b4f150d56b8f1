// SPDX-License-Identifier: Apache-2.0
#include "codec/leads.hpp"

#include "codec/contexts.hpp"
#include "codec/kernels.hpp"
#include "codec/number_loops.hpp"

#include <algorithm>

namespace belay::codec {
namespace {

std::size_t numbers_of(const Layout& layout, std::size_t raw_bytes) {
  return raw_bytes / layout.record_bytes * layout.record_bytes / layout.differences.number_bytes;
}

/// How many bits follow the leads; unset: one is of no number of this width.
std::optional<std::uint64_t> bits_of(std::span<const std::byte> leads, std::size_t number_bytes) {
  std::byte largest{};
  std::uint64_t sum = 0;
  for (const std::byte lead : leads) {
    largest = std::max(largest, lead);
    sum += bits_below(std::to_integer<unsigned>(lead));
  }
  if (std::to_integer<std::size_t>(largest) >= 16 * number_bytes) return {};
  return sum;
}

template <class Visit>
void for_tiles(const Layout& layout, std::size_t numbers, Visit visit) {
  const std::size_t tile = kTileBytes / layout.differences.number_bytes;
  for (std::size_t first = 0; first < numbers; first += tile)
    visit(first, std::min(tile, numbers - first));
}

/// `use` of what makes residuals of numbers, and numbers of residuals.
template <class Use>
void with_residuals(const Layout& layout, std::size_t numbers, Workspace& workspace, Use use) {
  if (layout.by_context) return use(Contexts(layout.differences, numbers, workspace));
  use(Residuals(layout.differences, best_kernels()));
}

struct Packed {
  std::span<const std::byte> leads;
  std::span<const std::byte> bits;
};

/// In memory that is the workspace's scratch.
Packed pack(const Layout& layout, std::span<const std::byte> raw, Workspace& workspace) {
  const std::size_t number = layout.differences.number_bytes;
  const std::size_t numbers = numbers_of(layout, raw.size());
  const Kernels& kernels = best_kernels();
  const auto scratch =
      workspace.scratch(kTileBytes + numbers + numbers * number + Kernels::kBitsRoom);
  const auto tile = scratch.first(kTileBytes);
  const auto leads = scratch.subspan(kTileBytes, numbers);
  std::byte* const bits = leads.data() + numbers;
  std::uint64_t filled = 0;
  with_residuals(layout, numbers, workspace, [&](auto residuals) {
    for_tiles(layout, numbers, [&](std::size_t first, std::size_t count) {
      residuals.take(raw.data(), first, count, tile.data());
      filled = kernels.of(number).pack(count, tile.data(), leads.data() + first, bits, filled);
    });
  });
  return {leads, {bits, static_cast<std::size_t>((filled + 7) / 8)}};
}

}  // namespace

bool append_leads(const Layout& layout, std::span<const std::byte> raw, Filling& filling,
                  Workspace& workspace, Compressor& compressor) {
  const Packed packed = pack(layout, raw, workspace);
  return append_plane(compressor, packed.leads, filling) && filling.append(packed.bits);
}

double guess_leads(const Layout& layout, std::span<const std::byte> raw, Workspace& workspace) {
  const Packed packed = pack(layout, raw, workspace);
  return coded_bytes(packed.leads) + double(packed.bits.size());
}

bool take_leads(const Layout& layout, std::span<const std::byte>& encoded, std::span<std::byte> raw,
                Workspace& workspace, Compressor& compressor) {
  const std::size_t number = layout.differences.number_bytes;
  const std::size_t numbers = numbers_of(layout, raw.size());
  const auto leads = workspace.scratch(numbers);
  if (!take_plane(compressor, encoded, leads)) return false;
  const auto total = bits_of(leads, number);
  if (!total || (*total + 7) / 8 > encoded.size()) return false;
  const auto bits = encoded.first(static_cast<std::size_t>((*total + 7) / 8));
  encoded = encoded.subspan(bits.size());
  if (*total % 8 != 0 && bits.back() >> (*total % 8) != std::byte{}) return false;
  const Kernels& kernels = best_kernels();
  std::uint64_t taken = 0;
  with_residuals(layout, numbers, workspace, [&](auto residuals) {
    for_tiles(layout, numbers, [&](std::size_t first, std::size_t count) {
      taken = kernels.of(number).unpack(count, leads.data() + first, bits, taken,
                                        raw.data() + first * number);
      residuals.put_back(raw.data(), first, count);
    });
  });
  if (layout.differences.big_endian) kernels.of(number).swap(numbers, raw.data());
  return true;
}

}  // namespace belay::codec
