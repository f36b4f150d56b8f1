// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/mpi_window.hpp"

#include <numeric>

namespace belay::ranks {
namespace {

/// The communicator that an MPI call made, once it returns errors and the link owns it.
Result<MPI_Comm> adopt(Link& link, int made, MPI_Comm communicator, const char* call) {
  if (made != MPI_SUCCESS) return Unexpected(mpi_error(call, made));
  link.own(communicator);
  if (const int error = MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_set_errhandler", error));
  return communicator;
}

Result<MPI_Comm> split_by_host(Link& link, Rank most) {
  MPI_Comm host = MPI_COMM_NULL;
  const int split = MPI_Comm_split_type(link.communicator(), MPI_COMM_TYPE_SHARED,
                                        static_cast<int>(link.rank()), MPI_INFO_NULL, &host);
  BELAY_TRY(adopt(link, split, host, "MPI_Comm_split_type"));
  if (most == 0) return host;
  int rank = 0;
  if (const int error = MPI_Comm_rank(host, &rank); error != MPI_SUCCESS)
    return Unexpected(mpi_error("MPI_Comm_rank", error));
  BELAY_TRY(link.meet(link.deadline(), "MPI_Comm_split"));  // it has no deadline either
  MPI_Comm part = MPI_COMM_NULL;
  const int again = MPI_Comm_split(host, rank / static_cast<int>(most), rank, &part);
  return adopt(link, again, part, "MPI_Comm_split");
}

/// The ranks in `all` of the members of `part`.
int translate(MPI_Comm part, MPI_Comm all, std::vector<int>& ranks) {
  int size = 0;
  if (const int error = MPI_Comm_size(part, &size); error != MPI_SUCCESS) return error;
  std::vector<int> own(static_cast<std::size_t>(size));
  std::iota(own.begin(), own.end(), 0);
  ranks.resize(own.size());
  MPI_Group part_group = MPI_GROUP_NULL;
  MPI_Group all_group = MPI_GROUP_NULL;
  int error = MPI_Comm_group(part, &part_group);
  if (error == MPI_SUCCESS) error = MPI_Comm_group(all, &all_group);
  if (error == MPI_SUCCESS)
    error = MPI_Group_translate_ranks(part_group, size, own.data(), all_group, ranks.data());
  for (MPI_Group* group : {&part_group, &all_group})
    if (*group != MPI_GROUP_NULL)
      if (const int freed = MPI_Group_free(group); error == MPI_SUCCESS) error = freed;
  return error;
}

}  // namespace

Result<Neighbours> find_neighbours(Link& link, Rank most) {
  Neighbours neighbours;
  BELAY_ASSIGN(neighbours.communicator, split_by_host(link, most));
  std::vector<int> ranks;
  if (const int error = translate(neighbours.communicator, link.communicator(), ranks);
      error != MPI_SUCCESS)
    return Unexpected(mpi_error("find ranks that share memory", error));
  neighbours.ranks.assign(ranks.begin(), ranks.end());
  return neighbours;
}

}  // namespace belay::ranks
