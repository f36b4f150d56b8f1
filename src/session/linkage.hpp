// SPDX-License-Identifier: Apache-2.0
// What the MPI library takes from the core. Both are made by the same build; these names, with
// c/handle.hpp's, are the only internal ones that the shared library shows, and are no API.
#pragma once

#include <belay/belay.hpp>

#include "session/seams.hpp"

namespace belay::session {

/// open() for the group that `make_group` gives, with the real files, clock and environment.
/// Collective over that group.
BELAY_API Result<Session> open_over(const MakeGroup& make_group, Options options);

/// Null if the session was moved from.
BELAY_API ranks::Group* group_of(const Session& session);

}  // namespace belay::session
