// SPDX-License-Identifier: Apache-2.0
// Asks the HDF5 library where the raw bytes of datasets lie. Nothing is decoded.
#include "files/formats.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/hdf5_handle.hpp"
#include "files/hdf5_types.hpp"
#include "files/hdf5_witness.hpp"

#include <algorithm>
#include <limits>
#include <optional>

namespace belay::files {
namespace {

// Before 1.14 the library walks over all chunks to tell of the n-th, so that listing them takes
// quadratic time: 16 thousand take 1.75 s. Finding each by its place takes 3 us, but also where
// there is none. Datasets that are too large for both stay in the skeleton.
constexpr hsize_t kMostListedChunks = 16384;
constexpr hsize_t kFewChunks = 1024;
constexpr hsize_t kMostPlacesForChunk = 8;
constexpr hsize_t kLeastBytesOfMany = 256;  // on average; where chunks lie must be stored too

/// A dataset and its chunks, in elements.
struct Grid {
  std::vector<hsize_t> extents;
  std::vector<hsize_t> chunk;

  hsize_t places() const {
    hsize_t product = 1;
    for (std::size_t i = 0; i < chunk.size(); ++i) {
      const hsize_t along = extents[i] / chunk[i] + (extents[i] % chunk[i] != 0 ? 1 : 0);
      if (__builtin_mul_overflow(product, along, &product))
        return std::numeric_limits<hsize_t>::max();
    }
    return product;
  }
};

/// Empty if it makes no sense.
Grid grid_of(hid_t space, hid_t properties) {
  const auto extents = extents_of(space);
  Grid grid{{extents.begin(), extents.end()}, std::vector<hsize_t>(H5S_MAX_RANK)};
  const int rank = H5Pget_chunk(properties, H5S_MAX_RANK, grid.chunk.data());
  grid.chunk.resize(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  const bool is_grid = grid.chunk.size() == grid.extents.size() &&
                       std::find(grid.chunk.begin(), grid.chunk.end(), 0) == grid.chunk.end();
  return is_grid ? grid : Grid{};
}

class LayoutWalk {
 public:
  LayoutWalk(hid_t file, hsize_t user_block, Hdf5Witness& witness)
      : file_(file), user_block_(user_block), witness_(witness) {}

  Result<Layout> layout();

 private:
  static herr_t visit(hid_t, const char* name, const H5O_info_t* object, void* self);
  void add_dataset(const char* name);
  std::optional<Variable> cut_out(hid_t dataset, hid_t properties, const char* name);
  void add_to_skeleton(hid_t dataset, hid_t properties, const char* name);
  std::optional<Variable> contiguous(hid_t dataset, hid_t properties, Variable variable) const;
  std::optional<Variable> chunked(hid_t dataset, hid_t properties, Variable variable);
  bool list_chunks(hid_t dataset, hid_t space, hsize_t chunks, std::vector<Range>& ranges) const;
  bool find_chunks(hid_t dataset, const Grid& grid, hsize_t chunks, std::vector<Range>& ranges);

  hid_t file_;
  hsize_t user_block_;
  Hdf5Witness& witness_;
  std::vector<Variable> variables_;
  std::vector<SkeletonVariable> in_skeleton_;
  std::size_t ranges_ = 0;
};

/// Of texts of variable length the library tells the size of a pointer in memory.
void fit_references(ElementType& type, const Shape& shape, std::uint64_t bytes) {
  const auto elements = ArrayType{ElementType(), shape}.bytes().value_or(0);
  if (type.name == kReference && elements > 0 && bytes > 0 && bytes % elements == 0)
    type.bytes = static_cast<std::uint32_t>(bytes / elements);
}

/// Raw data in the file itself, in one piece.
std::optional<Variable> LayoutWalk::contiguous(hid_t dataset, hid_t properties,
                                               Variable variable) const {
  if (H5Pget_external_count(properties) != 0) return {};
  const haddr_t offset = H5Dget_offset(dataset);
  const hsize_t bytes = H5Dget_storage_size(dataset);
  if (offset == HADDR_UNDEF || bytes < kLeastVariableBytes) return {};
  variable.ranges = {{offset, bytes}};
  fit_references(variable.type, variable.shape, bytes);
  return variable;
}

/// Asks for the first chunk, the second ...
bool LayoutWalk::list_chunks(hid_t dataset, hid_t space, hsize_t chunks,
                             std::vector<Range>& ranges) const {
  std::vector<hsize_t> place(H5S_MAX_RANK);
  for (hsize_t i = 0; i < chunks; ++i) {
    unsigned filters = 0;
    haddr_t address = HADDR_UNDEF;
    hsize_t bytes = 0;
    if (H5Dget_chunk_info(dataset, space, i, place.data(), &filters, &address, &bytes) < 0 ||
        address == HADDR_UNDEF)
      return false;
    // Unlike H5Dget_offset, chunk addresses of HDF5 1.10 leave out the user block.
    add_range(ranges, {address + user_block_, bytes});
  }
  return true;
}

/// Looks at every place where there may be one.
bool LayoutWalk::find_chunks(hid_t dataset, const Grid& grid, hsize_t chunks,
                             std::vector<Range>& ranges) {
  std::vector<hsize_t> place(grid.chunk.size());
  for (hsize_t i = 0; i < grid.places(); ++i) {
    if (const auto found = witness_.find_chunk(dataset, place.data())) {
      add_range(ranges, *found);
      --chunks;
    }
    for (std::size_t k = place.size(); k-- > 0;) {
      place[k] += grid.chunk[k];
      if (place[k] < grid.extents[k]) break;
      place[k] = 0;
    }
  }
  return chunks == 0;
}

/// Chunk after chunk, in the order of their places in the array. What filters made of them are
/// bytes; without filters all chunks are whole arrays.
std::optional<Variable> LayoutWalk::chunked(hid_t dataset, hid_t properties, Variable variable) {
  const Hdf5Space space(H5Dget_space(dataset));
  const hsize_t bytes = H5Dget_storage_size(dataset);
  hsize_t chunks = 0;
  if (H5Dget_num_chunks(dataset, space.id(), &chunks) < 0 || chunks == 0 || chunks > kMostRanges ||
      bytes < kLeastVariableBytes)
    return {};
  const Grid grid = grid_of(space.id(), properties);
  if (grid.chunk.empty()) return {};
  const bool dense = grid.places() / kMostPlacesForChunk <= chunks;
  if (chunks > kMostListedChunks && (!dense || bytes / chunks < kLeastBytesOfMany)) return {};
  if (!(chunks > kFewChunks && dense ? find_chunks(dataset, grid, chunks, variable.ranges)
                                     : list_chunks(dataset, space.id(), chunks, variable.ranges)))
    return {};
  variable.whole = ArrayType{variable.type, variable.shape};
  if (H5Pget_nfilters(properties) != 0) {
    variable.type = {ElementKind::bytes, 1, ""};
    variable.shape = Shape(variable.bytes());
    return variable;
  }
  std::vector<std::uint64_t> shape(grid.chunk.begin(), grid.chunk.end());
  if (chunks > 1) shape.insert(shape.begin(), chunks);
  const Hdf5Type type(H5Dget_type(dataset));
  variable.shape = Shape(with_inner_extents(std::move(shape), type.id()));
  return variable;
}

std::optional<Variable> LayoutWalk::cut_out(hid_t dataset, hid_t properties, const char* name) {
  const Hdf5Type type(H5Dget_type(dataset));
  const Hdf5Space space(H5Dget_space(dataset));
  if (!type.valid() || !space.valid()) return {};
  Variable variable{.name = name,
                    .type = element_type_of(type.id()),
                    .shape = Shape(with_inner_extents(extents_of(space.id()), type.id())),
                    .ranges = {}};
  std::optional<Variable> found;
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (layout == H5D_CONTIGUOUS)
    found = contiguous(dataset, properties, std::move(variable));
  else if (layout == H5D_CHUNKED)
    found = chunked(dataset, properties, std::move(variable));
  if (!found || found->ranges.size() > kMostRanges - ranges_) return {};
  fit_shape(*found);
  return found;
}

/// Not what lies in other files: of that there is nothing in this one.
void LayoutWalk::add_to_skeleton(hid_t dataset, hid_t properties, const char* name) {
  const Hdf5Type type(H5Dget_type(dataset));
  const Hdf5Space space(H5Dget_space(dataset));
  const H5D_layout_t layout = H5Pget_layout(properties);
  if (!type.valid() || !space.valid() || layout < 0 || layout == H5D_VIRTUAL ||
      H5Pget_external_count(properties) != 0 || in_skeleton_.size() >= kMostVariables)
    return;
  SkeletonVariable variable{.name = name,
                            .array = array_type_of(type.id(), space.id()),
                            .bytes = H5Dget_storage_size(dataset)};
  if (layout != H5D_CHUNKED)
    fit_references(variable.array.type, variable.array.shape, variable.bytes);
  in_skeleton_.push_back(std::move(variable));
}

void LayoutWalk::add_dataset(const char* name) {
  const Hdf5Dataset dataset(H5Dopen2(file_, name, H5P_DEFAULT));
  if (!dataset.valid()) return;
  const Hdf5Properties properties(H5Dget_create_plist(dataset.id()));
  if (!properties.valid()) return;
  auto variable = cut_out(dataset.id(), properties.id(), name);
  if (!variable) return add_to_skeleton(dataset.id(), properties.id(), name);
  ranges_ += variable->ranges.size();
  variables_.push_back(*std::move(variable));
}

/// Follows hard links only, and comes to each object once.
herr_t LayoutWalk::visit(hid_t, const char* name, const H5O_info_t* object, void* self) {
  auto& walk = *static_cast<LayoutWalk*>(self);
  if (object->type == H5O_TYPE_DATASET) walk.add_dataset(name);
  return walk.variables_.size() >= kMostVariables ? -1 : 0;
}

Result<Layout> LayoutWalk::layout() {
  if (H5Ovisit2(file_, H5_INDEX_NAME, H5_ITER_INC, visit, this, H5O_INFO_BASIC) < 0)
    return fail(Code::corruption,
                "the HDF5 library cannot list its datasets, or there are too many");
  return Layout{.format = FileFormat::hdf5,
                .variables = std::move(variables_),
                .in_skeleton = std::move(in_skeleton_),
                .remark = {}};
}

}  // namespace

Result<Layout> find_hdf5_layout(const SourceBytes& file) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
  Hdf5Witness witness(file);
  const Hdf5File opened(witness.open());
  if (!opened.valid())
    return fail(Code::corruption,
                "the HDF5 library cannot open it: it is damaged, or its writer has not closed it");
  const Hdf5Properties properties(H5Fget_create_plist(opened.id()));
  hsize_t user_block = 0;
  if (!properties.valid() || H5Pget_userblock(properties.id(), &user_block) < 0)
    return fail(Code::corruption, "the HDF5 library cannot read its properties");
  return LayoutWalk(opened.id(), user_block, witness).layout();
}

}  // namespace belay::files
