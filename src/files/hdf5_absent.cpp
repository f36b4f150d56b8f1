// SPDX-License-Identifier: Apache-2.0
// In place of the other hdf5_*.cpp where the HDF5 library is not there.
#include "base/try.hpp"
#include "files/formats.hpp"
#include "files/hdf5_output.hpp"

namespace belay::files {

Result<Layout> find_hdf5_layout(const SourceBytes&) {
  return fail(Code::unsupported, "this build has no HDF5 library");
}

Result<void> read_hdf5_array(const std::string&, const std::string&, const BeginArray&,
                             const TakeBytes&) {
  return fail(Code::unsupported,
              "this build has no HDF5 library; `belay unpack` writes the file that it is in");
}

Result<void> make_hdf5_file(const std::string&, std::vector<Hdf5Entry>&) {
  return fail(Code::unsupported, "this build has no HDF5 library; write .npy or --raw files");
}

}  // namespace belay::files
