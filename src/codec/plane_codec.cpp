// SPDX-License-Identifier: Apache-2.0
#include "codec/plane_codec.hpp"

#include "base/try.hpp"
#include "codec/compressor.hpp"
#include "codec/kernels.hpp"
#include "codec/quiet_groups.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace belay::codec {
namespace {

constexpr std::size_t kMostRawBytes = std::size_t{1} << 30;
/// Of residuals, which go from one loop to the next within the first cache.
constexpr std::size_t kTileBytes = 16 << 10;
/// A plane this large is looked at in some places before it is compressed.
constexpr std::size_t kProbedBytes = 32 << 10;
constexpr std::size_t kProbes = 8;
constexpr std::size_t kMostProbeBytes = 2 << 10;

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

/// Whether the compressor can do nothing with pieces from all over a plane. Most of what a number
/// has in its low bytes is so, and is then not worth the time to try it all.
bool is_noise(Compressor& compressor, std::span<const std::byte> plane) {
  if (plane.size() < kProbedBytes) return false;
  const std::size_t probe = std::min(plane.size() / 64, kMostProbeBytes);
  const std::size_t step = (plane.size() - probe) / (kProbes - 1);
  std::array<std::byte, kProbes * kMostProbeBytes> memory, to;
  for (std::size_t i = 0; i < kProbes; ++i)
    std::memcpy(memory.data() + i * probe, plane.data() + i * step, probe);
  const auto pieces = std::span(memory).first(kProbes * probe);
  const std::size_t bytes = compressor.compress(pieces, to);
  return bytes == 0 || bytes > pieces.size() / 100 * 99;
}

/// Appends a plane to the front of `to` that is filled already.
bool append_plane(Compressor& compressor, std::span<const std::byte> plane, std::span<std::byte> to,
                  std::size_t& filled) {
  std::uint32_t stored = 0;
  if (to.size() - filled < sizeof stored) return false;
  const auto room = to.subspan(filled + sizeof stored);
  const bool constant = is_constant(plane);
  if (!constant && !is_noise(compressor, plane))
    stored = static_cast<std::uint32_t>(compressor.compress(plane, room));
  if (stored == 0 || stored >= plane.size()) {
    const auto copied = plane.first(constant ? 1 : plane.size());
    if (room.size() < copied.size()) return false;
    std::memcpy(room.data(), copied.data(), copied.size());
    stored = static_cast<std::uint32_t>(copied.size());
  }
  std::memcpy(to.data() + filled, &stored, sizeof stored);
  filled += sizeof stored + stored;
  return true;
}

/// Takes a plane from the front of `encoded`.
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

/// `use` of the library's compressor.
template <class Use>
auto with_compressor(PlaneCodec::Library library, Workspace& workspace, Use use) {
  if (library == PlaneCodec::Library::lz4) {
    Lz4 lz4(workspace);
    return use(lz4);
  }
  Zstd zstd(workspace, Zstd::Effort::fast);
  return use(zstd);
}

std::optional<std::size_t> encode_planes(const Layout& layout, std::span<const std::byte> raw,
                                         std::span<std::byte> to, Workspace& workspace,
                                         Compressor& compressor) {
  const std::size_t tail = raw.size() % layout.record_bytes;
  std::size_t filled = layout.header_bytes() + tail;
  if (to.size() < filled) return {};
  encode_layout(layout, to.data());
  std::memcpy(to.data() + layout.header_bytes(), raw.data() + raw.size() - tail, tail);
  if (layout.is_plain())
    return append_plane(compressor, raw, to, filled) ? std::optional(filled) : std::nullopt;
  const Shuffler shuffler(layout, raw.size());
  if (shuffler.records() == 0) return filled;
  const auto scratch = workspace.scratch(shuffler.scratch_bytes());
  shuffler.shuffle(raw, scratch);
  const Planes planes(scratch, shuffler.records());
  for (std::size_t b = 0; b < layout.record_bytes; ++b)
    if (!append_plane(compressor, planes[b], to, filled)) return {};
  return filled;
}

/// All from the front of `encoded`; false: one is damaged.
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

Result<void> decode_planes(const Layout& layout, std::span<const std::byte> encoded,
                           std::span<std::byte> raw, Workspace& workspace, Compressor& compressor) {
  const std::size_t tail = raw.size() % layout.record_bytes;
  if (encoded.size() < layout.header_bytes() + tail)
    return fail(Code::corruption, "the encoded bytes are cut short");
  std::memcpy(raw.data() + raw.size() - tail, encoded.data() + layout.header_bytes(), tail);
  encoded = encoded.subspan(layout.header_bytes() + tail);
  if (!take_planes(layout, encoded, raw, workspace, compressor))
    return fail(Code::corruption, "a plane is damaged");
  if (!encoded.empty())
    return fail(Code::corruption, "{} bytes follow the last plane", encoded.size());
  return {};
}

/// What comes before the layout: whether quiet groups are left out, and which.
struct QuietHeader {
  std::uint8_t step = 0;  ///< 0: none are, and nothing follows
  std::uint32_t kept_bytes = 0;
  std::uint32_t map_stored = 0;

  std::size_t bytes() const { return step == 0 ? 1 : 1 + 2 * sizeof(std::uint32_t); }
  bool encode(std::span<std::byte> to) const {
    if (to.size() < bytes()) return false;
    to[0] = static_cast<std::byte>(step);
    if (step == 0) return true;
    std::memcpy(to.data() + 1, &kept_bytes, sizeof kept_bytes);
    std::memcpy(to.data() + 1 + sizeof kept_bytes, &map_stored, sizeof map_stored);
    return true;
  }
  bool decode(std::span<const std::byte> from, std::size_t raw_bytes) {
    if (from.empty()) return false;
    step = std::to_integer<std::uint8_t>(from[0]);
    if (step == 0) return true;
    if (step > QuietGroups::kMostStep || from.size() < bytes()) return false;
    std::memcpy(&kept_bytes, from.data() + 1, sizeof kept_bytes);
    std::memcpy(&map_stored, from.data() + 1 + sizeof kept_bytes, sizeof map_stored);
    return kept_bytes > 0 && kept_bytes <= raw_bytes && map_stored <= from.size() - bytes();
  }
};

/// Strides of rows would not lead from row to row where groups are left out.
std::uint8_t quiet_step(Transform transform, const Elements& elements,
                        std::span<const std::byte> raw) {
  const std::uint32_t step = layout_for(Transform::shuffle, elements, raw.size()).record_bytes;
  const bool many = transform != Transform::lorenzo && step <= QuietGroups::kMostStep &&
                    QuietGroups(step, raw.size()).are_many(raw);
  return many ? static_cast<std::uint8_t>(step) : std::uint8_t{0};
}

/// Leaves quiet groups out: `raw` becomes what is kept. What it filled of `to`.
std::optional<std::size_t> leave_out_quiet(std::uint8_t step, std::span<const std::byte>& raw,
                                           std::span<std::byte> to, Workspace& workspace) {
  QuietHeader header{.step = step};
  if (to.size() < header.bytes()) return {};
  if (step > 0) {
    const QuietGroups groups(step, raw.size());
    const std::size_t room = raw.size() + QuietGroups::kGroupBytes;
    const auto memory = workspace.kept(room + groups.map_bytes());
    const auto map = memory.subspan(room);
    header.kept_bytes = static_cast<std::uint32_t>(groups.split(raw, memory.first(room), map));
    header.map_stored = static_cast<std::uint32_t>(
        Zstd(workspace, Zstd::Effort::fast).compress(map, to.subspan(header.bytes())));
    if (header.map_stored == 0) return {};
    raw = memory.first(header.kept_bytes);
  }
  header.encode(to);
  return header.bytes() + header.map_stored;
}

}  // namespace

std::optional<std::size_t> PlaneCodec::encode(const Elements& elements,
                                              std::span<const std::byte> raw,
                                              std::span<std::byte> to, Workspace& workspace) const {
  if (raw.empty()) return 0;
  if (raw.size() > kMostRawBytes) return {};
  const auto filled = leave_out_quiet(quiet_step(transform_, elements, raw), raw, to, workspace);
  if (!filled) return {};
  const Layout layout = layout_for(transform_, elements, raw.size());
  const auto planes = with_compressor(library_, workspace, [&](Compressor& compressor) {
    return encode_planes(layout, raw, to.subspan(*filled), workspace, compressor);
  });
  return planes ? std::optional(*filled + *planes) : std::nullopt;
}

Result<void> PlaneCodec::decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                                Workspace& workspace) const {
  if (raw.empty() && encoded.empty()) return {};
  if (raw.empty()) return fail(Code::corruption, "{}: bytes where none belong", name_);
  if (raw.size() > kMostRawBytes)
    return fail(Code::corruption, "{}: never made of {} bytes", name_, raw.size());
  return within(std::string(name_), decode_all(encoded, raw, workspace));
}

Result<void> PlaneCodec::decode_all(std::span<const std::byte> encoded, std::span<std::byte> raw,
                                    Workspace& workspace) const {
  QuietHeader header;
  if (!header.decode(encoded, raw.size()))
    return fail(Code::corruption, "what is said of quiet groups is damaged");
  if (header.step == 0) return decode_kept(encoded.subspan(1), raw, workspace);
  const QuietGroups groups(header.step, raw.size());
  const auto memory = workspace.kept(header.kept_bytes + groups.map_bytes());
  const auto kept = memory.first(header.kept_bytes);
  const auto map = memory.subspan(header.kept_bytes);
  encoded = encoded.subspan(header.bytes());
  if (!Zstd(workspace, Zstd::Effort::fast).decompress(encoded.first(header.map_stored), map))
    return fail(Code::corruption, "the map of quiet groups is damaged");
  BELAY_TRY(decode_kept(encoded.subspan(header.map_stored), kept, workspace));
  if (!groups.join(kept, map, raw))
    return fail(Code::corruption, "the map of quiet groups is not that of {} bytes", raw.size());
  return {};
}

Result<void> PlaneCodec::decode_kept(std::span<const std::byte> encoded, std::span<std::byte> kept,
                                     Workspace& workspace) const {
  BELAY_ASSIGN(const Layout layout, decode_layout(transform_, encoded, kept.size()));
  return with_compressor(library_, workspace, [&](Compressor& compressor) {
    return decode_planes(layout, encoded, kept, workspace, compressor);
  });
}

}  // namespace belay::codec
