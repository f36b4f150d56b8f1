// SPDX-License-Identifier: Apache-2.0
#include "contents.hpp"

#include "measure/image.hpp"

#include <algorithm>
#include <array>

namespace belay::bench {
namespace {

constexpr std::uint64_t kPieceBytes = 16 << 10;
constexpr std::uint64_t kEqualPieces = 16;
constexpr int kNeighbours = 4;

// Seeds of one kind are apart from those of another, for any number of ranks.
enum class Kind : std::uint64_t { common = 1, neighbours, own, repeated };

Image pieces_of(Kind kind, int number, std::uint64_t bytes) {
  return Image(bytes,
               (static_cast<std::uint64_t>(kind) << 32) + static_cast<std::uint64_t>(number));
}

}  // namespace

Arrays make_mix(const Team& team, std::uint64_t bytes) {
  const std::uint64_t quarter = bytes / 4 / kPieceBytes * kPieceBytes;
  const bool repeats = team.rank() >= team.size() / 4;
  std::array<Image, 4> parts = {
      pieces_of(Kind::common, 0, quarter),
      pieces_of(Kind::neighbours, team.rank() / kNeighbours, quarter),
      pieces_of(Kind::own, team.rank(), quarter),
      pieces_of(Kind::repeated, team.rank(),
                repeats ? std::max(quarter / kEqualPieces, kPieceBytes) : quarter)};
  Bytes mixed;
  mixed.reserve(4 * quarter);
  for (std::uint64_t offset = 0; offset < quarter; offset += kPieceBytes)
    for (Image& part : parts) {
      const std::uint64_t pieces = part.bytes().size() / kPieceBytes;
      const auto piece = part.bytes(offset / kPieceBytes % pieces * kPieceBytes, kPieceBytes);
      mixed.insert(mixed.end(), piece.begin(), piece.end());
    }
  return {{"mix", std::move(mixed)}};
}

Arrays make_distinct(const Team& team, std::uint64_t bytes) {
  Image image = pieces_of(Kind::own, team.rank(), bytes);
  return {{"distinct", Bytes(image.bytes().begin(), image.bytes().end())}};
}

}  // namespace belay::bench
