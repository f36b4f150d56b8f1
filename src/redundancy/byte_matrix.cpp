// SPDX-License-Identifier: Apache-2.0
#include "redundancy/byte_matrix.hpp"

#include <isa-l/erasure_code.h>
#include <isa-l/raid.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

namespace belay::redundancy {
namespace {

constexpr std::size_t kMaxStrings = 256;
constexpr std::size_t kTableBytes = 32;
// The kernels take 4 to 6 rows in one pass. In steps of this size the inputs are still in the cache
// when the next rows read them; it also keeps lengths within an int.
constexpr std::size_t kStepBytes = std::size_t{64} << 10;
constexpr std::size_t kXorAlignment = 32;

using Pointers = std::array<unsigned char*, kMaxStrings + 1>;

// The library's signatures lack const; it writes to outputs only.
unsigned char* pointer(const std::byte* bytes) {
  return reinterpret_cast<unsigned char*>(const_cast<std::byte*>(bytes));
}

/// Calls work(from, bytes) over [from, until) in steps. The last one takes the rest with it, since
/// the kernels fall back to single bytes below 64.
template <class Work>
void in_steps(std::size_t from, std::size_t until, Work&& work) {
  while (from < until) {
    const std::size_t rest = until - from;
    const std::size_t bytes = rest < 2 * kStepBytes ? rest : kStepBytes;
    work(from, bytes);
    from += bytes;
  }
}

/// XOR of `sources` strings into the one behind them. False if their addresses do not suit.
bool xor_strings(Pointers& strings, std::size_t sources, std::size_t bytes) {
  if (sources == 1) {
    std::memcpy(strings[1], strings[0], bytes);
    return true;
  }
  for (std::size_t string = 0; string <= sources; ++string)
    if (reinterpret_cast<std::uintptr_t>(strings[string]) % kXorAlignment != 0) return false;
  return ::xor_gen(static_cast<int>(sources + 1), static_cast<int>(bytes),
                   reinterpret_cast<void**>(strings.data())) == 0;
}

void fill_zeros(std::span<const MutableBytes> outputs, std::size_t from) {
  for (const MutableBytes output : outputs)
    std::fill(output.begin() + static_cast<std::ptrdiff_t>(from), output.end(), std::byte{0});
}

}  // namespace

ByteMatrix::ByteMatrix(std::size_t rows, std::size_t columns,
                       std::vector<std::uint8_t> coefficients)
    : rows_(rows),
      columns_(columns),
      starts_with_xor_(std::all_of(coefficients.begin(),
                                   coefficients.begin() + static_cast<std::ptrdiff_t>(columns),
                                   [](std::uint8_t coefficient) { return coefficient == 1; })),
      tables_(rows * columns * kTableBytes) {
  assert(rows > 0 && rows < kMaxStrings && columns > 0 && columns < kMaxStrings);
  assert(coefficients.size() == rows * columns);
  ::ec_init_tables(static_cast<int>(columns), static_cast<int>(rows), coefficients.data(),
                   tables_.data());
}

void ByteMatrix::multiply(std::span<const Bytes> inputs,
                          std::span<const MutableBytes> outputs) const {
  assert(inputs.size() == columns_ && outputs.size() == rows_);
  const std::size_t length = outputs[0].size();
  std::array<std::size_t, kMaxStrings> active;
  for (std::size_t from = 0; from < length;) {
    std::size_t count = 0, until = length;
    for (std::size_t column = 0; column < columns_; ++column) {
      if (inputs[column].size() <= from) continue;
      active[count++] = column;
      until = std::min(until, inputs[column].size());
    }
    if (count == 0) return fill_zeros(outputs, from);
    multiply_range(std::span(active).first(count), inputs, outputs, from, until);
    from = until;
  }
}

/// multiply() of the bytes [from, until), in which exactly the inputs `active` are not at their
/// end.
void ByteMatrix::multiply_range(std::span<const std::size_t> active, std::span<const Bytes> inputs,
                                std::span<const MutableBytes> outputs, std::size_t from,
                                std::size_t until) const {
  std::vector<std::uint8_t> selected;
  if (active.size() < columns_) {
    selected.reserve(rows_ * active.size() * kTableBytes);
    for (std::size_t row = 0; row < rows_; ++row)
      for (const std::size_t column : active) {
        const auto table =
            tables_.begin() + static_cast<std::ptrdiff_t>((row * columns_ + column) * kTableBytes);
        selected.insert(selected.end(), table, table + kTableBytes);
      }
  }
  auto* tables = const_cast<std::uint8_t*>(selected.empty() ? tables_.data() : selected.data());
  Pointers sources, targets;
  in_steps(from, until, [&](std::size_t at, std::size_t bytes) {
    for (std::size_t i = 0; i < active.size(); ++i)
      sources[i] = pointer(inputs[active[i]].data() + at);
    for (std::size_t row = 0; row < rows_; ++row) targets[row] = pointer(outputs[row].data() + at);
    sources[active.size()] = targets[0];
    const std::size_t done = starts_with_xor_ && xor_strings(sources, active.size(), bytes) ? 1 : 0;
    if (done == rows_) return;
    ::ec_encode_data(static_cast<int>(bytes), static_cast<int>(active.size()),
                     static_cast<int>(rows_ - done), tables + done * active.size() * kTableBytes,
                     sources.data(), targets.data() + done);
  });
}

void ByteMatrix::add(std::size_t column, Bytes input, std::span<const MutableBytes> outputs) const {
  assert(column < columns_ && outputs.size() == rows_);
  auto* tables = const_cast<std::uint8_t*>(tables_.data());
  Pointers strings, targets;
  in_steps(0, input.size(), [&](std::size_t at, std::size_t bytes) {
    assert(at + bytes <= outputs[0].size());
    for (std::size_t row = 0; row < rows_; ++row) targets[row] = pointer(outputs[row].data() + at);
    if (starts_with_xor_ && rows_ == 1) {  // with more rows a pass of its own does not pay here
      strings[0] = strings[2] = targets[0];
      strings[1] = pointer(input.data() + at);
      if (xor_strings(strings, 2, bytes)) return;
    }
    ::ec_encode_data_update(static_cast<int>(bytes), static_cast<int>(columns_),
                            static_cast<int>(rows_), static_cast<int>(column), tables,
                            pointer(input.data() + at), targets.data());
  });
}

}  // namespace belay::redundancy
