// SPDX-License-Identifier: Apache-2.0
// Ranges and arrays as bytes. Records and chunks lie at equal distances, so that thousands of
// ranges become one line.
#pragma once

#include "files/layout.hpp"
#include "format/wire.hpp"

namespace belay::files {

void put_ranges(format::WireWriter& writer, std::span<const Range> ranges);
/// corruption if they are more than `left`, which is lowered by their number, or if they wrap.
Result<std::vector<Range>> get_ranges(format::WireReader& reader, std::size_t& left);

/// REQUIRES: no more than 255 dimensions, and a name of no more than 255 bytes.
void put_array(format::WireWriter& writer, const ArrayType& array);
/// Whatever was written; check_layout() or decode_contents() judge it.
ArrayType get_array(format::WireReader& reader);

}  // namespace belay::files
