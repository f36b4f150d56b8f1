// SPDX-License-Identifier: Apache-2.0
#include "redundancy/erasure_code.hpp"

#include "base/try.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <utility>

namespace belay::redundancy {
namespace {

std::vector<std::uint8_t> scaled_cauchy(const ErasureScheme& scheme) {
  const std::uint32_t k = scheme.members;
  std::vector<std::uint8_t> coefficients;
  coefficients.reserve(std::size_t{k} * scheme.shards);
  for (std::uint32_t shard = 0; shard < scheme.shards; ++shard)
    for (std::uint32_t member = 0; member < k; ++member)
      coefficients.push_back(::gf_mul(static_cast<std::uint8_t>(k ^ member),
                                      ::gf_inv(static_cast<std::uint8_t>((k + shard) ^ member))));
  return coefficients;
}

}  // namespace

std::string name_of(const ErasureScheme& scheme) {
  return fmt::format("erasure:{}+{}", scheme.members, scheme.shards);
}

Result<void> check_scheme(const ErasureScheme& scheme) {
  if (scheme.members >= 1 && scheme.shards >= 1 && scheme.members <= kMaxWidth &&
      scheme.shards <= kMaxWidth - scheme.members)
    return {};
  return fail(Code::invalid_argument,
              "{}: both numbers must be at least 1, and together at most {}", name_of(scheme),
              kMaxWidth);
}

ErasureCode::ErasureCode(const ErasureScheme& scheme, std::vector<std::uint8_t> coefficients)
    : scheme_(scheme),
      coefficients_(std::move(coefficients)),
      encoder_(scheme.shards, scheme.members, coefficients_) {}

Result<ErasureCode> ErasureCode::make(const ErasureScheme& scheme) {
  BELAY_TRY(check_scheme(scheme));
  return ErasureCode(scheme, scaled_cauchy(scheme));
}

/// Each member as a sum of the strings at `known`: k rows of k. As many shards are known as members
/// are unknown, and only their equations are solved: with A the coefficients of the unknown members
/// in those shards, unknown = A^-1 * (shards + what the known members add to them).
Result<std::vector<std::uint8_t>> ErasureCode::solve_members(
    std::span<const std::uint32_t> known) const {
  const std::uint32_t k = scheme_.members;
  std::vector<std::uint8_t> rows(std::size_t{k} * k), equations;
  std::vector<std::uint32_t> unknown, shards;
  for (std::size_t column = 0; column < k; ++column)
    if (known[column] >= k)
      shards.push_back(known[column] - k);
    else
      rows[known[column] * k + column] = 1;
  for (std::uint32_t member = 0; member < k; ++member)
    if (std::ranges::find(known, member) == known.end()) unknown.push_back(member);
  if (unknown.empty()) return rows;

  const std::size_t count = unknown.size();
  for (const std::uint32_t shard : shards)
    for (const std::uint32_t member : unknown) equations.push_back(coefficient(shard, member));
  std::vector<std::uint8_t> inverse(count * count);
  if (::gf_invert_matrix(equations.data(), inverse.data(), static_cast<int>(count)) != 0)
    return fail(Code::unsupported, "{}: the code's matrix is singular; this is a defect of Belay",
                name_of(scheme_));
  for (std::size_t row = 0; row < count; ++row)
    for (std::size_t column = 0, used = 0; column < k; ++column) {
      std::uint8_t& sum = rows[unknown[row] * k + column];
      if (known[column] >= k)
        sum = inverse[row * count + used++];
      else
        for (std::size_t i = 0; i < count; ++i)
          sum ^= ::gf_mul(inverse[row * count + i], coefficient(shards[i], known[column]));
    }
  return rows;
}

Result<void> ErasureCode::check_positions(std::span<const std::uint32_t> wanted,
                                          std::span<const std::uint32_t> known) const {
  std::vector<std::uint32_t> sorted(known.begin(), known.end());
  std::ranges::sort(sorted);
  const auto is_position = [&](std::uint32_t at) { return at < scheme_.width(); };
  if (known.size() == scheme_.members && std::ranges::all_of(known, is_position) &&
      std::ranges::adjacent_find(sorted) == sorted.end() && !wanted.empty() &&
      wanted.size() <= kMaxWidth && std::ranges::all_of(wanted, is_position))
    return {};
  return fail(Code::invalid_argument,
              "{}: a rebuild takes {} different positions below {} and gives one or more of them",
              name_of(scheme_), scheme_.members, scheme_.width());
}

Result<ByteMatrix> ErasureCode::rebuild_matrix(std::span<const std::uint32_t> wanted,
                                               std::span<const std::uint32_t> known) const {
  BELAY_TRY(check_positions(wanted, known));
  BELAY_ASSIGN(const auto members, solve_members(known));
  const std::uint32_t k = scheme_.members;
  std::vector<std::uint8_t> coefficients(wanted.size() * k);
  for (std::size_t row = 0; row < wanted.size(); ++row)
    for (std::uint32_t member = 0; member < k; ++member) {
      const std::uint8_t factor = wanted[row] >= k        ? coefficient(wanted[row] - k, member)
                                  : wanted[row] == member ? std::uint8_t{1}
                                                          : std::uint8_t{0};
      for (std::size_t column = 0; factor != 0 && column < k; ++column)
        coefficients[row * k + column] ^= ::gf_mul(factor, members[member * k + column]);
    }
  return ByteMatrix(wanted.size(), k, std::move(coefficients));
}

Result<void> ErasureCode::rebuild(std::span<const std::uint32_t> wanted,
                                  std::span<const std::uint32_t> known,
                                  std::span<const Bytes> survivors,
                                  std::span<const MutableBytes> rebuilt) const {
  BELAY_ASSIGN(const ByteMatrix matrix, rebuild_matrix(wanted, known));
  matrix.multiply(survivors, rebuilt);
  return {};
}

}  // namespace belay::redundancy
