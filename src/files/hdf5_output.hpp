// SPDX-License-Identifier: Apache-2.0
// An HDF5 file of regions: a dataset for each, of its type and shape.
#pragma once

#include <belay/result.hpp>
#include <belay/types.hpp>

#include "files/fields.hpp"
#include "os/descriptor.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace belay::files {

struct Hdf5Entry {
  std::string group;  ///< "rank-0"
  std::string name;   ///< of the region
  ElementType type;
  Shape shape;
  std::uint64_t bytes = 0;
  std::vector<Field> fields = {};  ///< of compound elements
  std::string dataset = {};        ///< where it is in the file: the name, unless that cannot be
  std::uint64_t offset = 0;        ///< of its bytes
};

/// Appears under its name when it is complete, or not at all. Bytes are written as they are,
/// without going through the library: those of big-endian numbers too, which the dataset's type
/// tells.
class Hdf5Output {
 public:
  /// invalid_argument: there is something of this name and not `force`; unsupported: this build has
  /// no HDF5 library.
  static Result<Hdf5Output> create(const std::string& path, bool force,
                                   std::vector<Hdf5Entry> entries);
  Hdf5Output(Hdf5Output&& other) noexcept;
  Hdf5Output& operator=(Hdf5Output&&) = delete;
  ~Hdf5Output();

  const std::vector<Hdf5Entry>& entries() const { return entries_; }
  /// REQUIRES: they are in the entry's bytes.
  Result<void> write(const Hdf5Entry& entry, std::uint64_t at, std::span<const std::byte> bytes);
  Result<void> finish();

 private:
  Hdf5Output(std::string path, bool force, std::string temporary, std::vector<Hdf5Entry> entries,
             os::Descriptor file = os::Descriptor(-1))
      : path_(std::move(path)),
        force_(force),
        temporary_(std::move(temporary)),
        entries_(std::move(entries)),
        file_(std::move(file)) {}

  std::string path_;
  bool force_;
  std::string temporary_;  ///< empty: there is none
  std::vector<Hdf5Entry> entries_;
  os::Descriptor file_;
};

/// Makes a file with room for all entries, whose `dataset` and `offset` it fills in.
Result<void> make_hdf5_file(const std::string& path, std::vector<Hdf5Entry>& entries);

}  // namespace belay::files
