// SPDX-License-Identifier: Apache-2.0
// Pictures of fields that are spread over ranks.
#pragma once

#include <string>
#include <vector>

namespace picture {

/// A rectangle of a field, row by row.
struct Tile {
  long first_row = 0;
  long rows = 0;
  long first_col = 0;
  long cols = 0;
  std::vector<double> values;
};

/// Collective. Puts the tiles of all ranks, of which some may be empty, together on rank 0 and
/// writes a field of rows x cols: FILE.npy holds the values, FILE.png shows them in colours from
/// the smallest, dark, to the largest, bright; small fields are enlarged. Ends the program if it
/// cannot.
void write(const std::string& path, long rows, long cols, const Tile& mine);

}  // namespace picture
