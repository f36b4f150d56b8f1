// SPDX-License-Identifier: Apache-2.0
#include "files/layout.hpp"

#include "base/text.hpp"
#include "base/try.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace belay::files {
namespace {

bool shape_fits(const Variable& variable) {
  const ArrayType array{variable.type, variable.shape};
  return array.makes_sense() && array.bytes() == variable.bytes();
}

std::vector<Range> sorted_ranges(const Layout& layout) {
  std::vector<Range> all;
  for (const Variable& variable : layout.variables)
    all.insert(all.end(), variable.ranges.begin(), variable.ranges.end());
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  return all;
}

/// The first `bytes` bytes of the ranges, which are taken off these.
std::vector<Range> take_front(std::vector<Range>& ranges, std::uint64_t bytes) {
  std::vector<Range> taken;
  std::size_t used = 0;
  for (; used < ranges.size() && bytes > 0; ++used) {
    Range& range = ranges[used];
    const std::uint64_t length = std::min(bytes, range.length);
    taken.push_back({range.offset, length});
    bytes -= length;
    if (length == range.length) continue;
    range = {range.offset + length, range.length - length};
    break;
  }
  ranges.erase(ranges.begin(), ranges.begin() + static_cast<std::ptrdiff_t>(used));
  return taken;
}

Result<void> check_variable(const Variable& variable, std::uint64_t file_bytes) {
  if (variable.name.empty()) return fail(Code::corruption, "a variable has no name");
  for (const Range& range : variable.ranges)
    if (range.length == 0 || range.offset > file_bytes || range.length > file_bytes - range.offset)
      return fail(Code::corruption, "variable {} is not inside the file", in_quotes(variable.name));
  if (!shape_fits(variable) || (variable.whole && !variable.whole->makes_sense()))
    return fail(Code::corruption, "type or shape of variable {} do not fit its bytes",
                in_quotes(variable.name));
  return {};
}

std::vector<SkeletonVariable> listable_of(const Layout& layout, std::uint64_t file_bytes) {
  std::set<std::string_view> names;
  for (const Variable& variable : layout.variables) names.insert(variable.name);
  std::vector<SkeletonVariable> listable;
  for (const SkeletonVariable& variable : layout.in_skeleton) {
    if (layout.variables.size() + listable.size() >= kMostVariables) break;
    const bool has_name = !variable.name.empty() && variable.name.size() <= kMostVariableNameBytes;
    if (has_name && variable.array.makes_sense() && variable.bytes <= file_bytes &&
        names.insert(variable.name).second)
      listable.push_back(variable);
  }
  return listable;
}

}  // namespace

const char* name_of(FileFormat format) {
  switch (format) {
    case FileFormat::hdf5:
      return "HDF5";
    case FileFormat::netcdf:
      return "netCDF";
    case FileFormat::other:
      break;
  }
  return "other";
}

std::optional<std::uint64_t> ArrayType::bytes() const {
  std::uint64_t product = type.bytes;
  for (const std::uint64_t extent : shape.extents())
    if (__builtin_mul_overflow(product, extent, &product)) return {};
  return product;
}

bool ArrayType::makes_sense() const {
  return bytes() && type.bytes > 0 && type.kind <= ElementKind::serialized &&
         (type.name.empty() || !name_flaw(type.name)) && shape.dimensions() <= kMostDimensions;
}

std::uint64_t Variable::bytes() const { return bytes_of(ranges); }

void add_range(std::vector<Range>& ranges, Range range) {
  if (!ranges.empty() && ranges.back().end() == range.offset)
    ranges.back().length += range.length;
  else
    ranges.push_back(range);
}

std::uint64_t bytes_of(std::span<const Range> ranges) {
  std::uint64_t sum = 0;
  for (const Range& range : ranges) sum += range.length;
  return sum;
}

void keep_listable(Layout& layout, std::uint64_t file_bytes) {
  layout.in_skeleton = listable_of(layout, file_bytes);
}

Result<void> check_layout(const Layout& layout, std::uint64_t file_bytes) {
  if (layout.variables.size() > kMostVariables)
    return fail(Code::corruption, "more than {} variables", kMostVariables);
  std::size_t ranges = 0;
  for (const Variable& variable : layout.variables) {
    BELAY_TRY(check_variable(variable, file_bytes));
    ranges += variable.ranges.size();
  }
  if (ranges > kMostRanges) return fail(Code::corruption, "more than {} ranges", kMostRanges);
  std::uint64_t end = 0;
  for (const Range& range : sorted_ranges(layout)) {
    if (range.offset < end) return fail(Code::corruption, "variables overlap at byte {}", end);
    end = range.end();
  }
  if (listable_of(layout, file_bytes).size() != layout.in_skeleton.size())
    return fail(Code::corruption, "variables that are not cut out make no sense, or are too many");
  return {};
}

std::vector<Range> rest_of(const Layout& layout, std::uint64_t file_bytes) {
  std::vector<Range> rest;
  std::uint64_t end = 0;
  for (const Range& range : sorted_ranges(layout)) {
    if (range.offset > end) add_range(rest, {end, range.offset - end});
    end = range.end();
  }
  if (file_bytes > end) add_range(rest, {end, file_bytes - end});
  return rest;
}

std::vector<Variable> split_large(Variable variable, std::uint64_t most_bytes) {
  if (variable.ranges.size() <= 1 || variable.bytes() <= most_bytes) return {std::move(variable)};
  const ArrayType whole = variable.whole.value_or(ArrayType{variable.type, variable.shape});
  std::uint64_t row = variable.type.bytes;
  std::vector<std::uint64_t> shape(variable.shape.extents().begin(),
                                   variable.shape.extents().end());
  if (shape.empty()) shape.push_back(1);
  for (std::size_t i = 1; i < shape.size(); ++i) row *= shape[i];
  if (row > most_bytes) {
    row = variable.type.bytes;
    shape.resize(1);
  }
  const std::uint64_t rows = std::max<std::uint64_t>(most_bytes / row, 1);
  std::vector<Variable> parts;
  while (!variable.ranges.empty()) {
    Variable part{.name = fmt::format("{}[{}]", variable.name, parts.size()),
                  .type = variable.type,
                  .shape = {},
                  .ranges = take_front(variable.ranges, rows * row),
                  .whole = whole};
    shape.front() = part.bytes() / row;
    part.shape = Shape(shape);
    fit_shape(part);
    parts.push_back(std::move(part));
  }
  return parts;
}

void fit_shape(Variable& variable) {
  if (shape_fits(variable)) return;
  variable.type = {ElementKind::bytes, 1, ""};
  variable.shape = Shape(variable.bytes());
}

}  // namespace belay::files
