// SPDX-License-Identifier: Apache-2.0
// `belay check --losses N`.
#pragma once

#include "tools/belay/shell.hpp"

#include <cstddef>

namespace belay::tool {

/// Says which losses of so many nodes each version survives. Exit::damage if one does not survive
/// what its level promises.
Exit check_losses(Shell& shell, std::size_t losses);

}  // namespace belay::tool
