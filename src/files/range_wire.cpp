// SPDX-License-Identifier: Apache-2.0
#include "files/range_wire.hpp"

#include "base/try.hpp"

namespace belay::files {
namespace {

/// `count` ranges of equal length, from one to the next `stride` bytes.
struct Series {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint64_t stride = 0;  ///< 0 of a single one
  std::uint32_t count = 0;
};

std::vector<Series> series_of(std::span<const Range> ranges) {
  std::vector<Series> all;
  for (const Range& range : ranges) {
    if (!all.empty() && all.back().length == range.length && all.back().count < kMostRanges) {
      Series& last = all.back();
      const std::uint64_t end = last.offset + last.stride * (last.count - 1);
      // Chunks may lie in any order, but only rising ones make a series.
      if (range.offset > end && (last.count == 1 || range.offset - end == last.stride)) {
        last.stride = range.offset - end;
        ++last.count;
        continue;
      }
    }
    all.push_back({range.offset, range.length, 0, 1});
  }
  return all;
}

}  // namespace

void put_ranges(format::WireWriter& writer, std::span<const Range> ranges) {
  const auto all = series_of(ranges);
  writer.field(static_cast<std::uint32_t>(all.size()));
  for (const Series& series : all) {
    writer.field(series.offset);
    writer.field(series.length);
    writer.field(series.stride);
    writer.field(series.count);
  }
}

Result<std::vector<Range>> get_ranges(format::WireReader& reader, std::size_t& left) {
  std::vector<Range> ranges;
  const auto lines = reader.field<std::uint32_t>();
  for (std::uint32_t i = 0; i < lines && !reader.failed(); ++i) {
    const auto offset = reader.field<std::uint64_t>();
    const auto length = reader.field<std::uint64_t>();
    const auto stride = reader.field<std::uint64_t>();
    const auto count = reader.field<std::uint32_t>();
    if (reader.failed()) break;
    if (count == 0 || count > left || length == 0 || (count == 1) != (stride == 0))
      return fail(Code::corruption, "a list of ranges is damaged");
    left -= count;
    std::uint64_t end = 0;
    if (__builtin_mul_overflow(stride, count - 1, &end) ||
        __builtin_add_overflow(end, offset, &end) || __builtin_add_overflow(end, length, &end))
      return fail(Code::corruption, "a range ends beyond all files");
    for (std::uint32_t k = 0; k < count; ++k) ranges.push_back({offset + k * stride, length});
  }
  return ranges;
}

void put_array(format::WireWriter& writer, const ArrayType& array) {
  writer.field(static_cast<std::uint8_t>(array.type.kind));
  writer.field(array.type.bytes);
  writer.length(array.type.name);
  writer.text(array.type.name);
  writer.field(static_cast<std::uint8_t>(array.shape.dimensions()));
  for (const std::uint64_t extent : array.shape.extents()) writer.field(extent);
}

ArrayType get_array(format::WireReader& reader) {
  ArrayType array;
  array.type.kind = static_cast<ElementKind>(reader.field<std::uint8_t>());
  array.type.bytes = reader.field<std::uint32_t>();
  array.type.name = reader.text(reader.field<std::uint8_t>());
  std::vector<std::uint64_t> shape(reader.field<std::uint8_t>());
  for (std::uint64_t& extent : shape) extent = reader.field<std::uint64_t>();
  array.shape = Shape(std::move(shape));
  return array;
}

}  // namespace belay::files
