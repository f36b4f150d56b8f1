// SPDX-License-Identifier: Apache-2.0
#include "codec/plane_codec.hpp"

#include "base/try.hpp"
#include "codec/leads.hpp"
#include "codec/planes.hpp"
#include "codec/quiet_groups.hpp"

#include <cstring>

namespace belay::codec {
namespace {

constexpr std::size_t kMostRawBytes = std::size_t{1} << 30;

using Form = PlaneCodec::Form;

/// `use` of the form's compressor.
template <class Use>
auto with_compressor(Form form, Workspace& workspace, Use use) {
  if (form == Form::lz4_planes) {
    Lz4 lz4(workspace);
    return use(lz4);
  }
  Zstd zstd(workspace, Zstd::Effort::fast);
  return use(zstd);
}

bool has_leads(Form form, const Layout& layout) {
  return form == Form::zstd_leads && layout.differences.strides > 0;
}

std::optional<std::size_t> encode_records(Form form, const Layout& layout,
                                          std::span<const std::byte> raw, std::span<std::byte> to,
                                          Workspace& workspace, Compressor& compressor) {
  Filling filling{to, layout.header_bytes()};
  if (to.size() < filling.filled) return {};
  encode_layout(layout, to.data());
  if (!filling.append(raw.last(raw.size() % layout.record_bytes))) return {};
  const auto append = has_leads(form, layout) ? append_leads : append_planes;
  if (!append(layout, raw, filling, workspace, compressor)) return {};
  return filling.filled;
}

Result<void> decode_records(Form form, const Layout& layout, std::span<const std::byte> encoded,
                            std::span<std::byte> raw, Workspace& workspace,
                            Compressor& compressor) {
  const std::size_t tail = raw.size() % layout.record_bytes;
  if (encoded.size() < layout.header_bytes() + tail)
    return fail(Code::corruption, "the encoded bytes are cut short");
  std::memcpy(raw.data() + raw.size() - tail, encoded.data() + layout.header_bytes(), tail);
  encoded = encoded.subspan(layout.header_bytes() + tail);
  const auto take = has_leads(form, layout) ? take_leads : take_planes;
  if (!take(layout, encoded, raw, workspace, compressor))
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
  const auto planes = with_compressor(form_, workspace, [&](Compressor& compressor) {
    return encode_records(form_, layout, raw, to.subspan(*filled), workspace, compressor);
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
  return with_compressor(form_, workspace, [&](Compressor& compressor) {
    return decode_records(form_, layout, encoded, kept, workspace, compressor);
  });
}

}  // namespace belay::codec
