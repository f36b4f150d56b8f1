// SPDX-License-Identifier: Apache-2.0
// belay-mpi-probe: what `belay doctor` runs to learn which thread level MPI grants. A program of
// its own, so that the tool itself needs no MPI.
#include <mpi.h>

#include <cstdio>
#include <string>

namespace {

const char* name_of(int level) {
  switch (level) {
    case MPI_THREAD_SINGLE:
      return "single";
    case MPI_THREAD_FUNNELED:
      return "funneled";
    case MPI_THREAD_SERIALIZED:
      return "serialized";
    default:
      return "multiple";
  }
}

}  // namespace

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  if (MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level) != MPI_SUCCESS) return 1;
  char library[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(library, &length);
  const std::string text(library, static_cast<std::size_t>(length));
  std::printf("level %s\nlibrary %s\n", name_of(level),
              text.substr(0, text.find_first_of(",\n")).c_str());
  return MPI_Finalize() == MPI_SUCCESS ? 0 : 1;
}
