// SPDX-License-Identifier: Apache-2.0
#include "files/layout_child.hpp"

#include "base/try.hpp"
#include "files/range_wire.hpp"
#include "format/wire.hpp"

namespace belay::files {
namespace {

void put_text(format::WireWriter& writer, const std::string& text) {
  const std::string shown = text.substr(0, kMostVariableNameBytes);
  writer.field(static_cast<std::uint16_t>(shown.size()));
  writer.text(shown);
}

std::string get_text(format::WireReader& reader) {
  return reader.text(reader.field<std::uint16_t>());
}

Variable get_variable(format::WireReader& reader) {
  Variable variable;
  variable.name = get_text(reader);
  ArrayType array = get_array(reader);
  variable.type = std::move(array.type);
  variable.shape = std::move(array.shape);
  if (reader.field<std::uint8_t>() != 0) variable.whole = get_array(reader);
  return variable;
}

SkeletonVariable get_skeleton_variable(format::WireReader& reader) {
  SkeletonVariable variable;
  variable.name = get_text(reader);
  variable.array = get_array(reader);
  variable.bytes = reader.field<std::uint64_t>();
  return variable;
}

Result<void> get_skeleton(format::WireReader& reader, Layout& layout) {
  const auto variables = reader.field<std::uint32_t>();
  if (variables > kMostVariables - layout.variables.size())
    return fail(Code::corruption, "too many variables");
  for (std::uint32_t i = 0; i < variables && !reader.failed(); ++i)
    layout.in_skeleton.push_back(get_skeleton_variable(reader));
  return {};
}

}  // namespace

void put_layout(std::vector<std::byte>& to, const Layout& layout) {
  format::WireWriter writer(to);
  writer.field(static_cast<std::uint8_t>(layout.format));
  put_text(writer, layout.remark);
  writer.field(static_cast<std::uint32_t>(layout.variables.size()));
  for (const Variable& variable : layout.variables) {
    put_text(writer, variable.name);
    put_array(writer, {variable.type, variable.shape});
    writer.field(static_cast<std::uint8_t>(variable.whole ? 1 : 0));
    if (variable.whole) put_array(writer, *variable.whole);
    put_ranges(writer, variable.ranges);
  }
  writer.field(static_cast<std::uint32_t>(layout.in_skeleton.size()));
  for (const SkeletonVariable& variable : layout.in_skeleton) {
    put_text(writer, variable.name);
    put_array(writer, variable.array);
    writer.field(variable.bytes);
  }
}

Result<Layout> get_layout(std::span<const std::byte> from) {
  format::WireReader reader(from);
  Layout layout;
  const auto kind = reader.field<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(FileFormat::netcdf))
    return fail(Code::corruption, "unknown file format {}", kind);
  layout.format = static_cast<FileFormat>(kind);
  layout.remark = get_text(reader);
  const auto variables = reader.field<std::uint32_t>();
  std::size_t ranges_left = kMostRanges;
  for (std::uint32_t i = 0; i < variables && !reader.failed(); ++i) {
    if (i >= kMostVariables) return fail(Code::corruption, "too many variables");
    Variable variable = get_variable(reader);
    BELAY_ASSIGN(variable.ranges, get_ranges(reader, ranges_left));
    layout.variables.push_back(std::move(variable));
  }
  BELAY_TRY(get_skeleton(reader, layout));
  if (reader.failed() || reader.remaining() != 0)
    return fail(Code::corruption, "the description of its variables is damaged");
  return layout;
}

}  // namespace belay::files
