// SPDX-License-Identifier: Apache-2.0
// Reads datasets through the HDF5 library, which knows every layout and filter.
#include "files/formats.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/hdf5_handle.hpp"
#include "files/hdf5_types.hpp"
#include "files/hdf5_witness.hpp"

#include <algorithm>
#include <vector>

namespace belay::files {
namespace {

constexpr hsize_t kSlabBytes = hsize_t{64} << 20;

/// A hostile file must not make us read another one.
herr_t refuse_link(const char*, const char*, const char*, const char*, unsigned*, hid_t, void*) {
  return -1;
}

/// Elements that say where something is, instead of being it.
bool has_pointers(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_VLEN:
    case H5T_REFERENCE:
      return true;
    case H5T_STRING:
      return H5Tis_variable_str(type) != 0;
    case H5T_ARRAY:
      return has_pointers(Hdf5Type(H5Tget_super(type)).id());
    case H5T_COMPOUND: {
      const int members = H5Tget_nmembers(type);
      for (int i = 0; i < members; ++i)
        if (has_pointers(Hdf5Type(H5Tget_member_type(type, static_cast<unsigned>(i))).id()))
          return true;
      return members < 0;
    }
    default:
      return false;
  }
}

/// The first filter that is not there; empty: all are.
std::string missing_filter(hid_t properties) {
  for (int i = 0; i < H5Pget_nfilters(properties); ++i) {
    char name[64] = {};
    unsigned flags = 0;
    std::size_t values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(properties, static_cast<unsigned>(i), &flags,
                                               &values, nullptr, sizeof(name) - 1, name, nullptr);
    if (filter >= 0 && H5Zfilter_avail(filter) <= 0)
      return fmt::format("{} ({})", filter, in_quotes(name));
  }
  return {};
}

class ArrayRead {
 public:
  explicit ArrayRead(hid_t dataset)
      : dataset_(dataset),
        type_(H5Dget_type(dataset)),
        space_(H5Dget_space(dataset)),
        properties_(H5Dget_create_plist(dataset)) {}

  Result<void> check() const;
  ArrayType array() const { return array_type_of(type_.id(), space_.id()); }
  std::vector<Field> fields() const;
  Result<void> read(const TakeBytes& take);

 private:
  hsize_t bytes_below(std::size_t dimension) const;
  hsize_t rows_of_slab(std::size_t dimension, hsize_t row_bytes) const;
  Result<void> read_rows(std::size_t dimension, const TakeBytes& take);
  Result<void> read_slab(hid_t memory, hid_t file, hsize_t bytes, const TakeBytes& take);

  hid_t dataset_;
  Hdf5Type type_;
  Hdf5Space space_;
  Hdf5Properties properties_;
  std::vector<hsize_t> extents_;
  std::vector<hsize_t> start_;  ///< of the next slab
  std::vector<std::byte> slab_;
};

Result<void> ArrayRead::check() const {
  if (!type_.valid() || !space_.valid() || !properties_.valid())
    return fail(Code::corruption, "the HDF5 library cannot read what it is");
  if (H5Pget_layout(properties_.id()) == H5D_VIRTUAL ||
      H5Pget_external_count(properties_.id()) != 0)
    return fail(Code::unsupported, "its elements lie in other files");
  if (has_pointers(type_.id()))
    return fail(Code::unsupported,
                "its elements are references or of variable length, which no array can hold; "
                "`belay unpack` writes the file that it is in");
  if (const std::string filter = missing_filter(properties_.id()); !filter.empty())
    return fail(Code::unsupported,
                "it needs filter {}, which the HDF5 library does not have here; `belay unpack` "
                "writes the file that it is in",
                filter);
  return {};
}

/// Only those that are all that there is to say of the element.
std::vector<Field> ArrayRead::fields() const {
  std::vector<Field> fields = fields_of(type_.id());
  return are_fields(fields, array().type.bytes) ? fields : std::vector<Field>();
}

hsize_t ArrayRead::bytes_below(std::size_t dimension) const {
  hsize_t bytes = H5Tget_size(type_.id());
  for (std::size_t i = dimension + 1; i < extents_.size(); ++i) bytes *= extents_[i];
  return bytes;
}

/// Whole chunks where these are not too large, so that each is decoded once.
hsize_t ArrayRead::rows_of_slab(std::size_t dimension, hsize_t row_bytes) const {
  const hsize_t rows = std::max<hsize_t>(kSlabBytes / row_bytes, 1);
  std::vector<hsize_t> chunk(H5S_MAX_RANK, 1);
  if (H5Pget_layout(properties_.id()) == H5D_CHUNKED)
    H5Pget_chunk(properties_.id(), H5S_MAX_RANK, chunk.data());
  const hsize_t step = std::max<hsize_t>(chunk[dimension], 1);
  return rows < step ? rows : rows - rows % step;
}

Result<void> ArrayRead::read_slab(hid_t memory, hid_t file, hsize_t bytes, const TakeBytes& take) {
  slab_.resize(bytes);
  if (H5Dread(dataset_, type_.id(), memory, file, H5P_DEFAULT, slab_.data()) < 0)
    return fail(Code::corruption, "the HDF5 library cannot read its elements");
  return take(slab_);
}

/// From start_ on, along this dimension and all below it.
Result<void> ArrayRead::read_rows(std::size_t dimension, const TakeBytes& take) {
  const hsize_t row_bytes = bytes_below(dimension);
  start_[dimension] = 0;
  if (row_bytes > kSlabBytes && dimension + 1 < extents_.size()) {
    for (; start_[dimension] < extents_[dimension]; ++start_[dimension])
      BELAY_TRY(read_rows(dimension + 1, take));
    return {};
  }
  const hsize_t rows = rows_of_slab(dimension, row_bytes);
  std::vector<hsize_t> counts(dimension, 1);
  counts.push_back(0);
  counts.insert(counts.end(), extents_.begin() + static_cast<std::ptrdiff_t>(dimension) + 1,
                extents_.end());
  std::fill(start_.begin() + static_cast<std::ptrdiff_t>(dimension), start_.end(), 0);
  for (; start_[dimension] < extents_[dimension]; start_[dimension] += counts[dimension]) {
    counts[dimension] = std::min(rows, extents_[dimension] - start_[dimension]);
    const Hdf5Space memory(
        H5Screate_simple(static_cast<int>(counts.size()), counts.data(), nullptr));
    if (!memory.valid() || H5Sselect_hyperslab(space_.id(), H5S_SELECT_SET, start_.data(), nullptr,
                                               counts.data(), nullptr) < 0)
      return fail(Code::corruption, "the HDF5 library cannot select its elements");
    BELAY_TRY(read_slab(memory.id(), space_.id(), counts[dimension] * row_bytes, take));
  }
  return {};
}

Result<void> ArrayRead::read(const TakeBytes& take) {
  if (H5Sget_simple_extent_npoints(space_.id()) <= 0) return {};
  const auto extents = extents_of(space_.id());
  if (extents.empty()) return read_slab(H5S_ALL, H5S_ALL, H5Tget_size(type_.id()), take);
  extents_.assign(extents.begin(), extents.end());
  start_.assign(extents_.size(), 0);
  return read_rows(0, take);
}

}  // namespace

Result<void> read_hdf5_array(const std::string& path, const std::string& dataset,
                             const BeginArray& begin, const TakeBytes& take) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  BELAY_ASSIGN(const SourceBytes bytes, SourceBytes::open(path));
  Hdf5Witness witness(bytes);  // which opens what its writer never closed, too
  const Hdf5File file(witness.open());
  if (!file.valid()) return fail(Code::corruption, "the HDF5 library cannot open its file");
  const Hdf5Properties access(H5Pcreate(H5P_DATASET_ACCESS));
  if (!access.valid() || H5Pset_elink_cb(access.id(), refuse_link, nullptr) < 0)
    return fail(Code::io, "the HDF5 library cannot be kept from other files");
  const Hdf5Dataset opened(H5Dopen2(file.id(), dataset.c_str(), access.id()));
  if (!opened.valid()) return fail(Code::not_found, "there is no such dataset in its file");
  ArrayRead array(opened.id());
  BELAY_TRY(array.check());
  BELAY_TRY(begin(array.array(), array.fields()));
  return array.read(take);
}

}  // namespace belay::files
