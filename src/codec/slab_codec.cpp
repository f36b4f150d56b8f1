// SPDX-License-Identifier: Apache-2.0
#include "codec/slab_codec.hpp"

#include "base/try.hpp"
#include "codec/compressor.hpp"
#include "codec/kernels.hpp"

#include <algorithm>
#include <cstring>

namespace belay::codec {
namespace {

/// Of residuals, which go from one loop to the next within the first cache.
constexpr std::size_t kTileBytes = 16 << 10;

/// Slab after slab of the records of an extent, and tile after tile of a slab.
struct Slab {
  std::uint64_t first = 0;
  std::size_t records = 0;
};

std::size_t tile_records(const Layout& layout) {
  return std::max<std::size_t>(kTileBytes / layout.record_bytes / 32 * 32, 32);
}

template <class Visit>
void for_tiles(const Layout& layout, const Slab& slab, Visit visit) {
  const std::size_t tile = tile_records(layout);
  for (std::size_t done = 0; done < slab.records; done += tile)
    visit(done, std::min(tile, slab.records - done));
}

/// Makes slabs into planes.
class Shuffler {
 public:
  explicit Shuffler(const Layout& layout)
      : layout_(layout), kernels_(best_kernels()), residuals_(layout.differences, kernels_) {}

  /// What planes() and records() need for any slab of so many raw bytes.
  std::size_t scratch_bytes(std::size_t raw_bytes) const {
    const std::size_t slab = layout_.slab_records() * layout_.record_bytes;
    const std::size_t tile = tile_records(layout_) * layout_.record_bytes;
    return std::min(slab, raw_bytes) + std::min(tile, raw_bytes);
  }

  /// Plane after plane.
  std::span<const std::byte> planes(const Slab& slab, std::span<const std::byte> raw,
                                    std::span<std::byte> scratch) const {
    const std::size_t record = layout_.record_bytes;
    const std::byte* const from = raw.data() + slab.first * record;
    const std::size_t bytes = slab.records * record;
    if (layout_.is_plain()) return {from, bytes};
    if (layout_.differences.strides == 0) {
      kernels_.shuffle(record, slab.records, from, slab.records, scratch.data());
      return scratch.first(bytes);
    }
    std::byte* const tile = scratch.data() + bytes;
    const std::size_t per_record = record / layout_.differences.number_bytes;
    for_tiles(layout_, slab, [&](std::size_t done, std::size_t records) {
      residuals_.take(raw.data(), (slab.first + done) * per_record, records * per_record, tile);
      kernels_.shuffle(record, records, tile, slab.records, scratch.data() + done);
    });
    return scratch.first(bytes);
  }

  /// The inverse.
  void records(const Slab& slab, std::span<const std::byte> planes,
               std::span<std::byte> raw) const {
    const std::size_t record = layout_.record_bytes;
    const bool differences = layout_.differences.strides > 0;
    const std::size_t per_record = differences ? record / layout_.differences.number_bytes : 0;
    for_tiles(layout_, slab, [&](std::size_t done, std::size_t records) {
      const std::uint64_t first = slab.first + done;
      kernels_.unshuffle(record, records, planes.data() + done, slab.records,
                         raw.data() + first * record);
      if (differences) residuals_.put_back(raw.data(), first * per_record, records * per_record);
    });
  }

  /// After the last slab.
  void finish(std::span<std::byte> raw) const {
    const Differences& differences = layout_.differences;
    if (!differences.big_endian) return;
    const std::size_t records = raw.size() / layout_.record_bytes;
    kernels_.of(differences.number_bytes)
        .swap(records * (layout_.record_bytes / differences.number_bytes), raw.data());
  }

 private:
  const Layout& layout_;
  const Kernels& kernels_;
  const Residuals residuals_;
};

template <class Visit>
bool for_slabs(const Layout& layout, std::size_t raw_bytes, Visit visit) {
  const std::uint64_t records = raw_bytes / layout.record_bytes;
  for (std::uint64_t first = 0; first < records; first += layout.slab_records()) {
    const auto count = std::min<std::uint64_t>(layout.slab_records(), records - first);
    if (!visit(Slab{first, count})) return false;
  }
  return true;
}

/// Appends planes to the front of `to` that is filled already.
bool append_plane(Compressor& compressor, std::span<const std::byte> plane, std::span<std::byte> to,
                  std::size_t& filled) {
  std::uint32_t bytes = 0;
  if (to.size() - filled < sizeof bytes) return false;
  const auto room = to.subspan(filled + sizeof bytes);
  bytes = static_cast<std::uint32_t>(compressor.compress(plane, room));
  if (bytes == 0 || bytes >= plane.size()) {
    if (room.size() < plane.size()) return false;
    std::memcpy(room.data(), plane.data(), plane.size());
    bytes = static_cast<std::uint32_t>(plane.size());
  }
  std::memcpy(to.data() + filled, &bytes, sizeof bytes);
  filled += sizeof bytes + bytes;
  return true;
}

/// Takes a plane from the front of `encoded`.
bool take_plane(Compressor& compressor, std::span<const std::byte>& encoded,
                std::span<std::byte> plane) {
  std::uint32_t bytes = 0;
  if (encoded.size() < sizeof bytes) return false;
  std::memcpy(&bytes, encoded.data(), sizeof bytes);
  encoded = encoded.subspan(sizeof bytes);
  if (bytes > encoded.size() || bytes > plane.size()) return false;
  const auto from = encoded.first(bytes);
  encoded = encoded.subspan(bytes);
  if (bytes < plane.size()) return compressor.decompress(from, plane);
  std::memcpy(plane.data(), from.data(), bytes);
  return true;
}

/// `use` of the library's compressor.
template <class Use>
auto with_compressor(SlabCodec::Library library, Workspace& workspace, Use use) {
  if (library == SlabCodec::Library::lz4) {
    Lz4 lz4(workspace);
    return use(lz4);
  }
  Zstd zstd(workspace, Zstd::Effort::fast);
  return use(zstd);
}

std::optional<std::size_t> encode_slabs(const Layout& layout, std::span<const std::byte> raw,
                                        std::span<std::byte> to, Workspace& workspace,
                                        Compressor& compressor) {
  const std::size_t tail = raw.size() % layout.record_bytes;
  std::size_t filled = layout.header_bytes() + tail;
  if (to.size() < filled) return {};
  encode_layout(layout, to.data());
  std::memcpy(to.data() + layout.header_bytes(), raw.data() + raw.size() - tail, tail);
  const Shuffler shuffler(layout);
  const auto scratch = workspace.scratch(shuffler.scratch_bytes(raw.size()));
  const bool fits = for_slabs(layout, raw.size(), [&](const Slab& slab) {
    const auto planes = shuffler.planes(slab, raw, scratch);
    for (std::size_t b = 0; b < layout.record_bytes; ++b)
      if (!append_plane(compressor, planes.subspan(b * slab.records, slab.records), to, filled))
        return false;
    return true;
  });
  return fits ? std::optional(filled) : std::nullopt;
}

Result<void> decode_slabs(const Layout& layout, std::span<const std::byte> encoded,
                          std::span<std::byte> raw, Workspace& workspace, Compressor& compressor) {
  const std::size_t tail = raw.size() % layout.record_bytes;
  if (encoded.size() < layout.header_bytes() + tail)
    return fail(Code::corruption, "the encoded bytes are cut short");
  std::memcpy(raw.data() + raw.size() - tail, encoded.data() + layout.header_bytes(), tail);
  encoded = encoded.subspan(layout.header_bytes() + tail);
  const Shuffler shuffler(layout);
  const auto scratch = workspace.scratch(shuffler.scratch_bytes(raw.size()));
  const bool sound = for_slabs(layout, raw.size(), [&](const Slab& slab) {
    const std::size_t bytes = slab.records * layout.record_bytes;
    const auto planes = layout.is_plain() ? raw.subspan(slab.first, bytes) : scratch.first(bytes);
    for (std::size_t b = 0; b < layout.record_bytes; ++b)
      if (!take_plane(compressor, encoded, planes.subspan(b * slab.records, slab.records)))
        return false;
    if (!layout.is_plain()) shuffler.records(slab, planes, raw);
    return true;
  });
  if (!sound) return fail(Code::corruption, "a plane is damaged");
  if (!encoded.empty())
    return fail(Code::corruption, "{} bytes follow the last plane", encoded.size());
  shuffler.finish(raw);
  return {};
}

}  // namespace

std::optional<std::size_t> SlabCodec::encode(const Elements& elements,
                                             std::span<const std::byte> raw,
                                             std::span<std::byte> to, Workspace& workspace) const {
  if (raw.empty()) return 0;
  const Layout layout = layout_for(transform_, elements, raw.size());
  return with_compressor(library_, workspace, [&](Compressor& compressor) {
    return encode_slabs(layout, raw, to, workspace, compressor);
  });
}

Result<void> SlabCodec::decode(std::span<const std::byte> encoded, std::span<std::byte> raw,
                               Workspace& workspace) const {
  if (raw.empty() && encoded.empty()) return {};
  if (raw.empty()) return fail(Code::corruption, "{}: bytes where none belong", name_);
  BELAY_ASSIGN(const Layout layout,
               within(std::string(name_), decode_layout(transform_, encoded, raw.size())));
  return with_compressor(library_, workspace, [&](Compressor& compressor) {
    return within(std::string(name_), decode_slabs(layout, encoded, raw, workspace, compressor));
  });
}

}  // namespace belay::codec
