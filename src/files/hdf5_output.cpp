// SPDX-License-Identifier: Apache-2.0
#include "files/hdf5_output.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/hdf5_handle.hpp"
#include "files/layout.hpp"

#include <algorithm>
#include <string>

namespace belay::files {
namespace {

Error refused(const Hdf5Entry& entry) {
  return {Code::io,
          fmt::format("the HDF5 library refuses a dataset for region {}", in_quotes(entry.name))};
}

/// The type in the file: the bytes are written as they are.
Hdf5Type number_type(ElementKind kind, bool big_endian) {
  const auto either = [&](hid_t little, hid_t big) { return H5Tcopy(big_endian ? big : little); };
  switch (kind) {
    case ElementKind::i8:
      return Hdf5Type(H5Tcopy(H5T_STD_I8LE));
    case ElementKind::i16:
      return Hdf5Type(either(H5T_STD_I16LE, H5T_STD_I16BE));
    case ElementKind::i32:
      return Hdf5Type(either(H5T_STD_I32LE, H5T_STD_I32BE));
    case ElementKind::i64:
      return Hdf5Type(either(H5T_STD_I64LE, H5T_STD_I64BE));
    case ElementKind::u16:
      return Hdf5Type(either(H5T_STD_U16LE, H5T_STD_U16BE));
    case ElementKind::u32:
      return Hdf5Type(either(H5T_STD_U32LE, H5T_STD_U32BE));
    case ElementKind::u64:
      return Hdf5Type(either(H5T_STD_U64LE, H5T_STD_U64BE));
    case ElementKind::f32:
      return Hdf5Type(either(H5T_IEEE_F32LE, H5T_IEEE_F32BE));
    case ElementKind::f64:
      return Hdf5Type(either(H5T_IEEE_F64LE, H5T_IEEE_F64BE));
    default:
      return Hdf5Type(H5Tcopy(H5T_STD_U8LE));
  }
}

/// As h5py writes them.
Hdf5Type complex_type(const ElementType& type, bool big_endian) {
  const bool is_double = type.kind == ElementKind::c128;
  const Hdf5Type part = number_type(is_double ? ElementKind::f64 : ElementKind::f32, big_endian);
  Hdf5Type whole(H5Tcreate(H5T_COMPOUND, type.bytes));
  H5Tinsert(whole.id(), "r", 0, part.id());
  H5Tinsert(whole.id(), "i", type.bytes / 2, part.id());
  return whole;
}

Hdf5Type float16_type() {
  Hdf5Type type(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(type.id(), 15, 10, 5, 0, 10);
  H5Tset_size(type.id(), 2);
  H5Tset_ebias(type.id(), 15);
  return type;
}

Hdf5Type type_of(const ElementType& type) {
  const bool big_endian = type.name == kBigEndian;
  if (type.kind == ElementKind::c64 || type.kind == ElementKind::c128)
    return complex_type(type, big_endian);
  if (type.kind == ElementKind::opaque && type.name == kFixedText) {
    Hdf5Type text(H5Tcopy(H5T_C_S1));
    H5Tset_size(text.id(), type.bytes);
    H5Tset_strpad(text.id(), H5T_STR_NULLPAD);
    return text;
  }
  if (type.kind == ElementKind::opaque && type.name == kFloat16 && type.bytes == 2)
    return float16_type();
  Hdf5Type number = number_type(type.kind, big_endian);
  return H5Tget_size(number.id()) == type.bytes && type.kind != ElementKind::opaque
             ? std::move(number)
             : Hdf5Type(H5Tcreate(H5T_OPAQUE, type.bytes));
}

Hdf5Type compound_type(std::uint32_t bytes, const std::vector<Field>& fields) {
  Hdf5Type whole(H5Tcreate(H5T_COMPOUND, bytes));
  for (const Field& field : fields) {
    const ElementType& type = field.array.type;
    Hdf5Type one = field.fields.empty() ? type_of(type) : compound_type(type.bytes, field.fields);
    const auto extents = field.array.shape.extents();
    const std::vector<hsize_t> inner(extents.begin(), extents.end());
    if (!inner.empty())
      one = Hdf5Type(H5Tarray_create2(one.id(), static_cast<unsigned>(inner.size()), inner.data()));
    if (H5Tinsert(whole.id(), field.name.c_str(), field.offset, one.id()) < 0)
      return Hdf5Type(H5I_INVALID_HID);
  }
  return whole;
}

/// As an attribute: h5py cannot read opaque types with a tag.
void put_type_name(hid_t dataset, const std::string& name) {
  if (name.empty() || name == kBigEndian || name == kFixedText || name == kFloat16) return;
  const Hdf5Type text(H5Tcopy(H5T_C_S1));
  H5Tset_size(text.id(), name.size());
  H5Tset_cset(text.id(), H5T_CSET_UTF8);
  const Hdf5Space single(H5Screate(H5S_SCALAR));
  const Hdf5Attribute attribute(
      H5Acreate2(dataset, "type", text.id(), single.id(), H5P_DEFAULT, H5P_DEFAULT));
  // Without it the dataset is as good.
  if (attribute.valid()) (void)H5Awrite(attribute.id(), text.id(), name.data());
}

/// A shape that does not fit the bytes becomes a row; elements that do not, plain bytes.
void fit(Hdf5Entry& entry) {
  std::uint64_t product = entry.type.bytes;
  bool fits = entry.shape.dimensions() <= H5S_MAX_RANK;
  for (const std::uint64_t extent : entry.shape.extents())
    fits = fits && !__builtin_mul_overflow(product, extent, &product);
  if (fits && product == entry.bytes) return;
  if (entry.type.bytes == 0 || entry.bytes % entry.type.bytes != 0)
    entry.type = {ElementKind::bytes, 1, ""};
  entry.shape = Shape(entry.bytes / entry.type.bytes);
}

Hdf5Space space_of(const Shape& shape) {
  if (shape.empty()) return Hdf5Space(H5Screate(H5S_SCALAR));
  const std::vector<hsize_t> extents(shape.extents().begin(), shape.extents().end());
  return Hdf5Space(H5Screate_simple(static_cast<int>(extents.size()), extents.data(), nullptr));
}

bool is_plain_path(const std::string& name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    if (part.empty() || part == ".") return false;
    begin = end + 1;
  }
  return true;
}

class FileMaker {
 public:
  explicit FileMaker(hid_t file)
      : file_(file),
        links_(H5Pcreate(H5P_LINK_CREATE)),
        properties_(H5Pcreate(H5P_DATASET_CREATE)) {
    H5Pset_create_intermediate_group(links_.id(), 1);
    H5Pset_char_encoding(links_.id(), H5T_CSET_UTF8);
    // The bytes have their place from the start, and nobody writes anything else there.
    H5Pset_layout(properties_.id(), H5D_CONTIGUOUS);
    H5Pset_alloc_time(properties_.id(), H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(properties_.id(), H5D_FILL_TIME_NEVER);
  }

  Result<void> add(Hdf5Entry& entry) {
    fit(entry);
    const bool has_fields = !entry.fields.empty() && entry.type.kind == ElementKind::opaque;
    const Hdf5Type type =
        has_fields ? compound_type(entry.type.bytes, entry.fields) : type_of(entry.type);
    const Hdf5Space space = space_of(entry.shape);
    if (!type.valid() || !space.valid()) return Unexpected(refused(entry));
    hid_t created = create(entry, entry.name, type.id(), space.id());
    if (created < 0) {
      // Not a path, or one that leads through another dataset.
      std::string flat = entry.name;
      std::replace(flat.begin(), flat.end(), '/', '|');
      created = create(entry, flat, type.id(), space.id());
    }
    const Hdf5Dataset dataset(created);
    if (!dataset.valid()) return Unexpected(refused(entry));
    if (!has_fields) put_type_name(dataset.id(), entry.type.name);
    if (entry.bytes == 0) return {};
    const haddr_t offset = H5Dget_offset(dataset.id());
    if (offset == HADDR_UNDEF || H5Dget_storage_size(dataset.id()) != entry.bytes)
      return Unexpected(refused(entry));
    entry.offset = offset;
    return {};
  }

 private:
  hid_t create(Hdf5Entry& entry, const std::string& name, hid_t type, hid_t space) const {
    if (!is_plain_path(name)) return H5I_INVALID_HID;
    entry.dataset = entry.group + "/" + name;
    return H5Dcreate2(file_, entry.dataset.c_str(), type, space, links_.id(), properties_.id(),
                      H5P_DEFAULT);
  }

  hid_t file_;
  Hdf5Properties links_;
  Hdf5Properties properties_;
};

}  // namespace

Result<void> make_hdf5_file(const std::string& path, std::vector<Hdf5Entry>& entries) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Hdf5File file(H5Fcreate(path.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT));
  if (!file.valid())
    return fail(Code::io, "the HDF5 library cannot create {}; is its directory there, and yours?",
                in_quotes(path));
  {
    FileMaker maker(file.id());
    for (Hdf5Entry& entry : entries) BELAY_TRY(maker.add(entry));
  }
  if (!file.close()) return fail(Code::io, "the HDF5 library cannot write {}", in_quotes(path));
  return {};
}

}  // namespace belay::files
