// SPDX-License-Identifier: Apache-2.0
// What the elements of a compound type are made of.
#pragma once

#include "files/layout.hpp"
#include "format/wire.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace belay::files {

struct Field {
  std::string name;
  std::uint64_t offset = 0;  ///< in its element
  ArrayType array;
  std::vector<Field> fields = {};  ///< of a compound
};

/// Each has a name of its own, and bytes of its own among `element_bytes`, in rising order; those
/// inside likewise.
bool are_fields(const std::vector<Field>& fields, std::uint64_t element_bytes);

void put_fields(format::WireWriter& writer, const std::vector<Field>& fields);
/// Empty: the bytes are not what put_fields() writes. Else are_fields() judges them.
std::vector<Field> get_fields(format::WireReader& reader);

}  // namespace belay::files
