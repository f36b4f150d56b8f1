// SPDX-License-Identifier: Apache-2.0
#include <belay/mpi.h>
#include <belay/mpi.hpp>

#include "c/handle.hpp"

int belay_open_mpi(belay_session** session, MPI_Comm communicator, const belay_options* options) {
  return belay::c::open_with(session, options, [&](belay::Options chosen) {
    return belay::open(communicator, std::move(chosen));
  });
}

int belay_comm(const belay_session* session, MPI_Comm* communicator) {
  if (communicator != nullptr) *communicator = MPI_COMM_NULL;
  return belay::c::run(session, [&]() -> belay::Result<void> {
    using belay::Code;
    if (session == nullptr)
      return belay::fail(Code::invalid_argument, "belay_comm: {}", belay::c::kNoSession);
    if (communicator == nullptr)
      return belay::fail(Code::invalid_argument,
                         "belay_comm: there is no place to put the communicator into");
    *communicator = belay::comm(session->session);
    if (*communicator == MPI_COMM_NULL)
      return belay::fail(Code::invalid_argument,
                         "belay_comm: the session has no communicator; open it with "
                         "belay_open_mpi()");
    return {};
  });
}
