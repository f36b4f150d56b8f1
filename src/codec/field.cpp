// SPDX-License-Identifier: Apache-2.0
#include "codec/field.hpp"

#include "codec/payload_layout.hpp"

#include <algorithm>
#include <cstring>

namespace belay::codec {
namespace {

/// Of a sample from one place: large enough for what is there again to show, but not for much that
/// is quiet.
constexpr std::size_t kPiece = 16 << 10;
constexpr std::size_t kLoudPiece = 8 << 10;
constexpr std::size_t kPieces = 16;
/// Rows, or planes, that show what differences across them leave, and the part of all for them.
constexpr std::size_t kRows = 2;
constexpr std::size_t kRowsPart = 16;

}  // namespace

Field::Field(const Elements& elements, Piece raw, std::size_t looks)
    : elements_(elements),
      raw_(raw),
      record_(layout_for(Transform::shuffle, elements, raw.size()).record_bytes),
      groups_(std::min(record_, kGroup), raw.size()),
      looks_(looks) {
  // One in each part, but not at the same place of each: rows would show the same column of all.
  const std::size_t groups = raw.size() / kGroup;
  const auto place = [&](std::size_t i) {
    const std::size_t scattered = (i * 0x9E37 + 0x8000) % 0x10000;
    return (groups * i / looks + (groups / looks * scattered >> 16)) * kGroup;
  };
  // All at once: one after the other would wait for memory each time.
  for (std::size_t i = 0; i < looks; ++i) __builtin_prefetch(raw.data() + place(i));
  for (std::size_t i = 0; i < looks; ++i) {
    const std::size_t at = place(i);
    if (at == 0 || !groups_.is_quiet(raw.data() + at)) loud_[louds_++] = at;
  }
}

Piece Field::rows() const {
  const Differences strides = layout_for(Transform::lorenzo, elements_, raw_.size()).differences;
  if (strides.strides < 2) return {};
  const std::size_t far = strides.stride[strides.strides - 1] * strides.number_bytes;
  const std::size_t bytes = std::min(kRows * far, raw_.size() / kRowsPart);
  return around(louds_ > 0 ? loud_[louds_ / 2] : 0, bytes / record_ * record_);
}

Piece Field::around(std::size_t place, std::size_t bytes) const {
  const std::size_t first = std::min(place - std::min(place, bytes / 2), raw_.size() - bytes);
  return raw_.subspan(first / record_ * record_, bytes);
}

std::span<std::byte> Field::sample(double wanted, Workspace& workspace) const {
  const std::size_t bytes = std::min(static_cast<std::size_t>(wanted), raw_.size() / 4);
  // No place twice: what is there again would seem so by itself.
  const std::size_t most = std::clamp(louds_, std::size_t{1}, kPieces);
  const std::size_t least = louds_ < looks_ / 2 ? kLoudPiece : kPiece;
  const std::size_t pieces = std::clamp(bytes / least, std::size_t{1}, most);
  const std::size_t piece = std::max<std::size_t>(bytes / pieces / record_, 1) * record_;
  const auto room = workspace.sample(pieces * piece);
  std::byte* end = room.data();
  const std::byte* taken_up_to = raw_.data();
  for (std::size_t i = 0; i < pieces; ++i) {
    const std::size_t place =
        louds_ > 0 ? loud_[(2 * i + 1) * louds_ / (2 * pieces)] : raw_.size() / 2;
    const Piece taken = around(place, piece);
    if (taken.data() < taken_up_to) continue;
    end = std::copy(taken.begin(), taken.end(), end);
    taken_up_to = taken.data() + taken.size();
  }
  return room.first(static_cast<std::size_t>(end - room.data()));
}

Piece Field::loud_sample(double bytes, Workspace& workspace) const {
  const std::span<std::byte> all = sample(bytes, workspace);
  if (record_ > kGroup || all.size() < kGroup || is_loud_all_over()) return all;
  // From the back, so that what a group is compared with is still in its place.
  std::byte* front = all.data() + all.size() / kGroup * kGroup;
  std::byte* const end = front;
  for (std::byte* group = end - kGroup; group > all.data(); group -= kGroup)
    if (!groups_.is_quiet(group)) std::memmove(front -= kGroup, group, kGroup);
  std::memmove(front -= kGroup, all.data(), kGroup);
  const auto bytes_left = static_cast<std::size_t>(end - front);
  return Piece(front, bytes_left).last(bytes_left / record_ * record_);
}

Piece Field::all_loud(std::size_t most, Workspace& workspace) const {
  if (loud_bytes() > double(most) || raw_.size() < looks_ * kGroup) return {};
  const auto room = workspace.sample(most + kGroup);
  std::byte* end = room.data();
  std::byte* const last = end + most;
  for (std::size_t at = 0; at + kGroup <= raw_.size(); at += kGroup) {
    if (at > 0 && groups_.is_quiet(raw_.data() + at)) continue;
    if (end >= last) return {};
    end = std::copy_n(raw_.begin() + static_cast<std::ptrdiff_t>(at), kGroup, end);
  }
  return room.first(static_cast<std::size_t>(end - room.data()));
}

}  // namespace belay::codec
