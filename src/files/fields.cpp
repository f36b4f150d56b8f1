// SPDX-License-Identifier: Apache-2.0
#include "files/fields.hpp"

#include "files/range_wire.hpp"

#include <set>

namespace belay::files {
namespace {

constexpr std::size_t kMostFields = 1000;  // of a type, with all that are inside
constexpr int kMostDepth = 8;

void put(format::WireWriter& writer, const Field& field) {
  writer.field(static_cast<std::uint16_t>(field.name.size()));
  writer.text(field.name);
  writer.field(field.offset);
  put_array(writer, field.array);
  put_fields(writer, field.fields);
}

std::vector<Field> get(format::WireReader& reader, std::size_t& left, int depth) {
  const auto count = reader.field<std::uint32_t>();
  if (count > left || depth > kMostDepth) return {};
  left -= count;
  std::vector<Field> fields;
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) {
    Field field;
    field.name = reader.text(reader.field<std::uint16_t>());
    field.offset = reader.field<std::uint64_t>();
    field.array = get_array(reader);
    field.fields = get(reader, left, depth + 1);
    fields.push_back(std::move(field));
  }
  return fields;
}

}  // namespace

bool are_fields(const std::vector<Field>& fields, std::uint64_t element_bytes) {
  std::set<std::string> names;
  std::uint64_t end = 0;
  for (const Field& field : fields) {
    const auto bytes = field.array.bytes().value_or(0);
    const ElementType& type = field.array.type;
    if (field.name.empty() || !names.insert(field.name).second || bytes == 0 ||
        field.offset < end || field.offset > element_bytes ||
        bytes > element_bytes - field.offset || type.kind > ElementKind::serialized ||
        field.array.shape.dimensions() > kMostDimensions || !are_fields(field.fields, type.bytes))
      return false;
    end = field.offset + bytes;
  }
  return true;
}

void put_fields(format::WireWriter& writer, const std::vector<Field>& fields) {
  writer.field(static_cast<std::uint32_t>(fields.size()));
  for (const Field& field : fields) put(writer, field);
}

std::vector<Field> get_fields(format::WireReader& reader) {
  std::size_t left = kMostFields;
  auto fields = get(reader, left, 0);
  return reader.failed() ? std::vector<Field>() : fields;
}

}  // namespace belay::files
