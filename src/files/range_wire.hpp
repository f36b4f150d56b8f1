// SPDX-License-Identifier: Apache-2.0
// Ranges as bytes. Records and chunks lie at equal distances, so that thousands become one line.
#pragma once

#include "files/layout.hpp"
#include "format/wire.hpp"

namespace belay::files {

void put_ranges(format::WireWriter& writer, std::span<const Range> ranges);
/// corruption if they are more than `left`, which is lowered by their number, or if they wrap.
Result<std::vector<Range>> get_ranges(format::WireReader& reader, std::size_t& left);

}  // namespace belay::files
