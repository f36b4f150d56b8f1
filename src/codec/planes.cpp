// SPDX-License-Identifier: Apache-2.0
#include "codec/planes.hpp"

#include "codec/kernels.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace belay::codec {
namespace {

/// A plane this large is looked at in some places before it is compressed.
constexpr std::size_t kProbedBytes = 32 << 10;
constexpr std::size_t kProbes = 4;
constexpr std::size_t kMostProbeBytes = 4 << 10;

/// The planes of an extent, at the same distance from each other.
class Planes {
 public:
  /// Planes whose distance is a power of two would all want the same lines of the cache.
  static std::size_t distance(std::size_t records) { return (records / 64 + 2) * 64; }

  /// REQUIRES: `memory` has distance(records) for each plane, or they are one.
  Planes(std::span<std::byte> memory, std::size_t records) : memory_(memory), records_(records) {}

  std::span<std::byte> operator[](std::size_t b) const {
    return memory_.subspan(b * distance(records_), records_);
  }

 private:
  std::span<std::byte> memory_;
  std::size_t records_;
};

/// Makes records into planes and back.
class Shuffler {
 public:
  Shuffler(const Layout& layout, std::size_t raw_bytes)
      : layout_(layout),
        records_(raw_bytes / layout.record_bytes),
        tile_records_(std::max<std::size_t>(kTileBytes / layout.record_bytes / 32 * 32, 32)),
        kernels_(best_kernels()),
        residuals_(layout.differences, kernels_) {}

  std::size_t records() const { return records_; }

  /// Of memory for the planes, and what it takes to make them.
  std::size_t scratch_bytes() const {
    const std::size_t tile = std::min(tile_records_, records_) * layout_.record_bytes;
    return Planes::distance(records_) * layout_.record_bytes + tile;
  }

  /// From the raw bytes to planes in `scratch`.
  void shuffle(std::span<const std::byte> raw, std::span<std::byte> scratch) const {
    const std::size_t record = layout_.record_bytes;
    const std::size_t distance = Planes::distance(records_);
    if (layout_.differences.strides == 0)
      return kernels_.shuffle(record, records_, raw.data(), distance, scratch.data());
    std::byte* const tile = scratch.data() + distance * record;
    const std::size_t per_record = record / layout_.differences.number_bytes;
    for_tiles([&](std::size_t first, std::size_t count) {
      residuals_.take(raw.data(), first * per_record, count * per_record, tile);
      kernels_.shuffle(record, count, tile, distance, scratch.data() + first);
    });
  }

  /// The inverse.
  void unshuffle(std::span<const std::byte> scratch, std::span<std::byte> raw) const {
    const std::size_t record = layout_.record_bytes;
    const Differences& differences = layout_.differences;
    const std::size_t per_record = differences.strides ? record / differences.number_bytes : 0;
    for_tiles([&](std::size_t first, std::size_t count) {
      kernels_.unshuffle(record, count, scratch.data() + first, Planes::distance(records_),
                         raw.data() + first * record);
      if (per_record) residuals_.put_back(raw.data(), first * per_record, count * per_record);
    });
    if (differences.big_endian)
      kernels_.of(differences.number_bytes).swap(records_ * per_record, raw.data());
  }

 private:
  template <class Visit>
  void for_tiles(Visit visit) const {
    for (std::size_t first = 0; first < records_; first += tile_records_)
      visit(first, std::min(tile_records_, records_ - first));
  }

  const Layout& layout_;
  const std::size_t records_;
  const std::size_t tile_records_;
  const Kernels& kernels_;
  const Residuals residuals_;
};

bool is_constant(std::span<const std::byte> plane) {
  return std::memcmp(plane.data(), plane.data() + 1, plane.size() - 1) == 0;
}

/// What suits a plane.
enum class Way { store, symbols, search };

/// Judged by pieces from all over it. Most of what a number has in its low bytes is noise, and is
/// not worth the time to try it all; of what is between noise and quiet, most has no repetitions
/// but chance ones, which cost time and bytes.
Way way_for(Compressor& compressor, std::span<const std::byte> plane) {
  if (plane.size() < kProbedBytes) return Way::search;
  const std::size_t probe = std::min(plane.size() / 32, kMostProbeBytes);
  const std::size_t step = (plane.size() - probe) / (kProbes - 1);
  std::array<std::byte, kProbes * kMostProbeBytes> memory, to;
  for (std::size_t i = 0; i < kProbes; ++i)
    std::memcpy(memory.data() + i * probe, plane.data() + i * step, probe);
  const auto pieces = std::span(memory).first(kProbes * probe);
  const auto compressed = [&](auto way) {
    const std::size_t bytes = (compressor.*way)(pieces, to);
    return bytes == 0 ? pieces.size() : bytes;
  };
  const std::size_t searched = compressed(&Compressor::compress);
  const std::size_t counted = compressed(&Compressor::compress_symbols);
  if (std::min(searched, counted) > pieces.size() / 100 * 99) return Way::store;
  return counted < searched + searched / 50 ? Way::symbols : Way::search;
}

/// n log2 n.
float times_its_log(std::size_t n) {
  static const auto kFew = [] {
    std::array<float, 1024> few{};
    for (std::size_t i = 2; i < few.size(); ++i)
      few[i] = static_cast<float>(double(i) * std::log2(double(i)));
    return few;
  }();
  if (n < kFew.size()) return kFew[n];
  return static_cast<float>(double(n) * std::log2(double(n)));
}

}  // namespace

bool Filling::append(std::span<const std::byte> bytes) {
  if (room().size() < bytes.size()) return false;
  if (!bytes.empty()) std::memcpy(room().data(), bytes.data(), bytes.size());
  filled += bytes.size();
  return true;
}

bool append_plane(Compressor& compressor, std::span<const std::byte> plane, Filling& filling) {
  std::uint32_t stored = 0;
  if (filling.room().size() < sizeof stored) return false;
  const auto room = filling.room().subspan(sizeof stored);
  const bool constant = is_constant(plane);
  const Way way = constant ? Way::store : way_for(compressor, plane);
  if (way != Way::store)
    stored =
        static_cast<std::uint32_t>(way == Way::search ? compressor.compress(plane, room)
                                                      : compressor.compress_symbols(plane, room));
  if (stored == 0 || stored >= plane.size()) {
    const auto copied = plane.first(constant ? 1 : plane.size());
    if (room.size() < copied.size()) return false;
    std::memcpy(room.data(), copied.data(), copied.size());
    stored = static_cast<std::uint32_t>(copied.size());
  }
  std::memcpy(filling.room().data(), &stored, sizeof stored);
  filling.filled += sizeof stored + stored;
  return true;
}

bool take_plane(Compressor& compressor, std::span<const std::byte>& encoded,
                std::span<std::byte> plane) {
  std::uint32_t stored = 0;
  if (encoded.size() < sizeof stored) return false;
  std::memcpy(&stored, encoded.data(), sizeof stored);
  encoded = encoded.subspan(sizeof stored);
  if (stored > encoded.size() || stored > plane.size()) return false;
  const auto from = encoded.first(stored);
  encoded = encoded.subspan(stored);
  if (stored == plane.size())
    std::memcpy(plane.data(), from.data(), stored);
  else if (stored == 1)
    std::memset(plane.data(), std::to_integer<int>(from[0]), plane.size());
  else
    return compressor.decompress(from, plane);
  return true;
}

double coded_bytes(std::span<const std::byte> plane) {
  // Equal bytes in a row would wait for each other's count.
  std::array<std::array<std::uint32_t, 256>, 4> counts{};
  for (std::size_t i = 0; i < plane.size(); ++i)
    ++counts[i % 4][std::to_integer<std::size_t>(plane[i])];
  // A short plane shows frequencies that are less even than they are (Miller and Madow 1955).
  constexpr float kRare = 0.72f;
  float bits = times_its_log(plane.size());
  int rare = -1;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::uint32_t count =
        counts[0][byte] + counts[1][byte] + counts[2][byte] + counts[3][byte];
    bits -= times_its_log(count);
    rare += count > 0;
  }
  return double(std::max(bits, 0.0f) + kRare * static_cast<float>(rare)) / 8;
}

bool for_planes(const Layout& layout, std::span<const std::byte> raw, Workspace& workspace,
                const std::function<bool(std::span<const std::byte> plane)>& visit) {
  if (layout.is_plain()) return visit(raw);
  const Shuffler shuffler(layout, raw.size());
  if (shuffler.records() == 0) return true;
  const auto scratch = workspace.scratch(shuffler.scratch_bytes());
  shuffler.shuffle(raw, scratch);
  const Planes planes(scratch, shuffler.records());
  for (std::size_t b = 0; b < layout.record_bytes; ++b)
    if (!visit(planes[b])) return false;
  return true;
}

bool append_planes(const Layout& layout, std::span<const std::byte> raw, Filling& filling,
                   Workspace& workspace, Compressor& compressor) {
  return for_planes(layout, raw, workspace, [&](std::span<const std::byte> plane) {
    return append_plane(compressor, plane, filling);
  });
}

bool take_planes(const Layout& layout, std::span<const std::byte>& encoded,
                 std::span<std::byte> raw, Workspace& workspace, Compressor& compressor) {
  if (layout.is_plain()) return take_plane(compressor, encoded, raw);
  const Shuffler shuffler(layout, raw.size());
  if (shuffler.records() == 0) return true;
  const auto scratch = workspace.scratch(shuffler.scratch_bytes());
  const Planes planes(scratch, shuffler.records());
  for (std::size_t b = 0; b < layout.record_bytes; ++b)
    if (!take_plane(compressor, encoded, planes[b])) return false;
  shuffler.unshuffle(scratch, raw);
  return true;
}

}  // namespace belay::codec
