// SPDX-License-Identifier: Apache-2.0
#include <belay/mpi.hpp>

#include "comm/mpi_group.hpp"
#include "session/linkage.hpp"

namespace belay {

Result<Session> open(MPI_Comm communicator, Options options) {
  return session::open_over(
      [communicator](std::uint64_t timeout_ns, os::Clock& clock) {
        return ranks::make_mpi_group(communicator, timeout_ns, clock);
      },
      std::move(options));
}

MPI_Comm comm(const Session& session) {
  auto* group = dynamic_cast<ranks::MpiGroup*>(session::group_of(session));
  return group == nullptr ? MPI_COMM_NULL : group->communicator();
}

}  // namespace belay
