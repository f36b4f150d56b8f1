// SPDX-License-Identifier: Apache-2.0
#include <belay/mpi.hpp>

#include "comm/mpi_group.hpp"
#include "session/core.hpp"
#include "session/seams.hpp"

namespace belay {

detail::SessionCore& core_of(const Session& session);

Result<Session> open(MPI_Comm communicator, Options options) {
  return session::open_session(
      session::system_seams(),
      [communicator](std::uint64_t timeout_ns, os::Clock& clock) {
        return ranks::make_mpi_group(communicator, timeout_ns, clock);
      },
      std::move(options));
}

MPI_Comm comm(const Session& session) {
  auto* group = dynamic_cast<ranks::MpiGroup*>(&core_of(session).group());
  return group == nullptr ? MPI_COMM_NULL : group->communicator();
}

}  // namespace belay
