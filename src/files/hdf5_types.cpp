// SPDX-License-Identifier: Apache-2.0
#include "files/hdf5_types.hpp"

#include "files/hdf5_handle.hpp"
#include "files/layout.hpp"

#include <string_view>

namespace belay::files {
namespace {

ElementType opaque_of(hid_t type, const char* name) {
  return {ElementKind::opaque, static_cast<std::uint32_t>(H5Tget_size(type)), name};
}

ElementType number_of(hid_t type, ElementKind kind, std::size_t bytes) {
  const bool swapped = bytes > 1 && H5Tget_order(type) == H5T_ORDER_BE;
  return {kind, static_cast<std::uint32_t>(bytes), swapped ? kBigEndian : ""};
}

ElementType integer_of(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  const bool plain = H5Tget_precision(type) == bytes * 8 && H5Tget_offset(type) == 0;
  const bool has_sign = H5Tget_class(type) != H5T_BITFIELD && H5Tget_sign(type) != H5T_SGN_NONE;
  const int first = static_cast<int>(has_sign ? ElementKind::i8 : ElementKind::u8);
  const int width = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
  if (!plain || width < 0) return opaque_of(type, "integer");
  return number_of(type, static_cast<ElementKind>(first + width), bytes);
}

bool is_float16(hid_t type) {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
  return H5Tget_size(type) == 2 && H5Tget_order(type) == H5T_ORDER_LE && H5Tget_ebias(type) == 15 &&
         H5Tget_fields(type, &sign, &exponent, &exponent_bits, &mantissa, &mantissa_bits) >= 0 &&
         sign == 15 && exponent == 10 && exponent_bits == 5 && mantissa == 0 && mantissa_bits == 10;
}

ElementType floating_of(hid_t type) {
  if (H5Tequal(type, H5T_IEEE_F32LE) > 0 || H5Tequal(type, H5T_IEEE_F32BE) > 0)
    return number_of(type, ElementKind::f32, 4);
  if (H5Tequal(type, H5T_IEEE_F64LE) > 0 || H5Tequal(type, H5T_IEEE_F64BE) > 0)
    return number_of(type, ElementKind::f64, 8);
  return opaque_of(type, is_float16(type) ? kFloat16 : "floating");
}

/// h5py's complex numbers are compounds of `r` and `i`.
ElementType compound_of(hid_t type) {
  const auto is_member = [&](unsigned index, std::string_view name, std::size_t offset) {
    char* const found = H5Tget_member_name(type, index);
    const bool same = found != nullptr && found == name;
    H5free_memory(found);
    return same && H5Tget_member_offset(type, index) == offset;
  };
  if (H5Tget_nmembers(type) != 2) return opaque_of(type, "compound");
  const Hdf5Type real(H5Tget_member_type(type, 0));
  const Hdf5Type imaginary(H5Tget_member_type(type, 1));
  const ElementType part = element_type_of(real.id());
  const bool floating = part.kind == ElementKind::f32 || part.kind == ElementKind::f64;
  if (!floating || H5Tequal(real.id(), imaginary.id()) <= 0 ||
      H5Tget_size(type) != 2 * std::size_t{part.bytes} || !is_member(0, "r", 0) ||
      !is_member(1, "i", part.bytes))
    return opaque_of(type, "compound");
  return {part.kind == ElementKind::f32 ? ElementKind::c64 : ElementKind::c128, 2 * part.bytes,
          part.name};
}

}  // namespace

ElementType element_type_of(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
    case H5T_BITFIELD:
      return integer_of(type);
    case H5T_FLOAT:
      return floating_of(type);
    case H5T_COMPOUND:
      return compound_of(type);
    case H5T_ENUM:
    case H5T_ARRAY:
      return element_type_of(Hdf5Type(H5Tget_super(type)).id());
    case H5T_STRING:
      return opaque_of(type, H5Tis_variable_str(type) > 0 ? kReference : kFixedText);
    case H5T_VLEN:
    case H5T_REFERENCE:
      return opaque_of(type, kReference);
    default:
      return opaque_of(type, "");
  }
}

std::vector<std::uint64_t> extents_of(hid_t space) {
  std::vector<hsize_t> extents(H5S_MAX_RANK);
  const int rank = H5Sget_simple_extent_dims(space, extents.data(), nullptr);
  extents.resize(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  return {extents.begin(), extents.end()};
}

std::vector<std::uint64_t> with_inner_extents(std::vector<std::uint64_t> extents, hid_t type) {
  if (H5Tget_class(type) != H5T_ARRAY) return extents;
  std::vector<hsize_t> inner(H5S_MAX_RANK);
  const int rank = H5Tget_array_dims2(type, inner.data());
  if (rank > 0) extents.insert(extents.end(), inner.begin(), inner.begin() + rank);
  return with_inner_extents(std::move(extents), Hdf5Type(H5Tget_super(type)).id());
}

ArrayType array_type_of(hid_t type, hid_t space) {
  std::vector<std::uint64_t> extents = extents_of(space);
  if (H5Sget_simple_extent_type(space) == H5S_NULL) extents = {0};
  ArrayType array{element_type_of(type), Shape(with_inner_extents(extents, type))};
  ArrayType opaque{opaque_of(type, ""), Shape(std::move(extents))};
  return array.bytes() == opaque.bytes() ? array : opaque;
}

std::vector<Field> fields_of(hid_t type) {
  if (H5Tget_class(type) == H5T_ARRAY) return fields_of(Hdf5Type(H5Tget_super(type)).id());
  std::vector<Field> fields;
  if (H5Tget_class(type) != H5T_COMPOUND || element_type_of(type).kind != ElementKind::opaque)
    return fields;
  const int members = H5Tget_nmembers(type);
  for (unsigned i = 0; static_cast<int>(i) < members; ++i) {
    const Hdf5Type member(H5Tget_member_type(type, i));
    char* const name = H5Tget_member_name(type, i);
    fields.push_back(
        {.name = name == nullptr ? "" : name,
         .offset = H5Tget_member_offset(type, i),
         .array = {element_type_of(member.id()), Shape(with_inner_extents({}, member.id()))},
         .fields = fields_of(member.id())});
    H5free_memory(name);
  }
  return fields;
}

}  // namespace belay::files
