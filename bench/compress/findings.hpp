// SPDX-License-Identifier: Apache-2.0
// What the trials showed, for people and for the record. `findings` has `schemes` and `codecs`, as
// trials.hpp gives them.
#pragma once

#include "compress/trials.hpp"
#include "measure/report.hpp"

namespace belay::bench {

/// Tables laid out as the figures 6, 7 and 9 of Islam et al., "McrEngine", with the paper's
/// figures, and those of codecs.
void print_tables(const Json& findings);
std::vector<Target> targets_of(const Json& findings);

/// The row of the scheme of a chain that came out smallest for the moment and size of sets of
/// `row`.
const Json& best_scheme(const Json& rows, const Json& row, const std::string& chain);
/// Seconds to encode and to write, for a row of a codec.
double total_s(const Json& row);
/// Whether it is a codec that `auto` can choose.
bool is_of_belay(const Json& codec_row);

}  // namespace belay::bench
