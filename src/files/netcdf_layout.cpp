// SPDX-License-Identifier: Apache-2.0
// The header of netCDF's classic formats, read by hand: the netCDF library tells everything about a
// variable but where its bytes lie. The grammar is in "The NetCDF Classic Format Specification".
#include "files/formats.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <array>
#include <optional>

namespace belay::files {
namespace {

constexpr std::uint64_t kMostHeaderBytes = std::uint64_t{16} << 20;
constexpr std::uint32_t kDimensionTag = 10;
constexpr std::uint32_t kVariableTag = 11;
constexpr std::uint32_t kAttributeTag = 12;

struct NumberType {
  ElementKind kind;
  std::uint32_t bytes;
};

/// By nc_type, from 1.
constexpr std::array kTypes = {
    NumberType{ElementKind::i8, 1},  NumberType{ElementKind::bytes, 1},
    NumberType{ElementKind::i16, 2}, NumberType{ElementKind::i32, 4},
    NumberType{ElementKind::f32, 4}, NumberType{ElementKind::f64, 8},
    NumberType{ElementKind::u8, 1},  NumberType{ElementKind::u16, 2},
    NumberType{ElementKind::u32, 4}, NumberType{ElementKind::i64, 8},
    NumberType{ElementKind::u64, 8},
};

constexpr std::uint64_t padded(std::uint64_t bytes) { return (bytes + 3) / 4 * 4; }

/// A variable of the header. Records of all record variables are interleaved.
struct Entry {
  std::string name;
  NumberType type{};
  std::vector<std::uint64_t> shape;  ///< without the dimension of records
  bool record = false;
  std::uint64_t bytes = 0;  ///< of one record, or of all
  std::uint64_t begin = 0;
};

/// Takes big-endian fields. Past the end it yields zeros and sets failed().
class HeaderReader {
 public:
  explicit HeaderReader(std::span<const std::byte> bytes) : left_(bytes) {}
  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  std::uint64_t left() const { return left_.size(); }

  std::span<const std::byte> take(std::uint64_t bytes) {
    if (bytes > left_.size()) {
      failed_ = true;
      left_ = {};
      return {};
    }
    const auto taken = left_.first(bytes);
    left_ = left_.subspan(bytes);
    return taken;
  }
  std::uint64_t number(std::size_t bytes) {
    std::uint64_t value = 0;
    for (const std::byte byte : take(bytes)) value = value << 8 | std::to_integer<unsigned>(byte);
    return value;
  }

 private:
  std::span<const std::byte> left_;
  bool failed_ = false;
};

class Header {
 public:
  Header(std::vector<std::byte> bytes, std::uint64_t file_bytes)
      : bytes_(std::move(bytes)), reader_(bytes_), file_bytes_(file_bytes) {}
  Header(Header&&) = default;

  Result<void> read();
  // REQUIRES: read() has succeeded.
  Layout layout() const;
  std::optional<PiecedArray> find(const std::string& name) const;

 private:
  std::uint64_t count() { return reader_.number(version_ == 5 ? 8 : 4); }
  std::uint64_t place() { return reader_.number(version_ == 1 ? 4 : 8); }
  std::uint64_t list(std::uint32_t tag);
  std::string name();
  void skip_attributes();
  void read_dimensions();
  void read_variables();
  Entry read_variable();
  void add_shape(Entry& entry, std::uint64_t dimension, bool first);
  std::optional<std::uint64_t> find_record_bytes() const;
  std::uint64_t find_records() const;
  std::optional<PiecedArray> pieces_of(const Entry& entry) const;
  bool is_worth_ranges(const PiecedArray& pieces) const;

  std::vector<std::byte> bytes_;
  HeaderReader reader_;
  const std::uint64_t file_bytes_;
  unsigned version_ = 0;
  std::uint64_t records_ = 0;
  bool streaming_ = false;          ///< the number of records is not written
  std::uint64_t record_bytes_ = 0;  ///< from one record of a variable to its next
  std::vector<std::uint64_t> dimensions_;
  std::vector<Entry> entries_;
};

/// The number of things in a list; 0 if it is absent. Each takes four bytes at least.
std::uint64_t Header::list(std::uint32_t tag) {
  const std::uint64_t found = reader_.number(4);
  const std::uint64_t things = count();
  if (found == 0 && things == 0) return 0;
  if (found != tag || things > reader_.left() / 4) reader_.fail();
  return reader_.failed() ? 0 : things;
}

std::string Header::name() {
  const std::uint64_t bytes = count();
  const auto text = reader_.take(bytes);
  if (!reader_.failed()) reader_.take(padded(bytes) - bytes);
  return {reinterpret_cast<const char*>(text.data()), text.size()};
}

void Header::skip_attributes() {
  for (std::uint64_t left = list(kAttributeTag); left > 0 && !reader_.failed(); --left) {
    name();
    const std::uint64_t type = reader_.number(4);
    const std::uint64_t values = count();
    if (type == 0 || type > kTypes.size() || values > reader_.left()) return reader_.fail();
    reader_.take(padded(values * kTypes[type - 1].bytes));
  }
}

void Header::read_dimensions() {
  for (std::uint64_t left = list(kDimensionTag); left > 0 && !reader_.failed(); --left) {
    name();
    dimensions_.push_back(count());
  }
}

void Header::add_shape(Entry& entry, std::uint64_t dimension, bool first) {
  if (dimension >= dimensions_.size()) return reader_.fail();
  const std::uint64_t extent = dimensions_[dimension];
  if (extent == 0 && first) {
    entry.record = true;
    return;
  }
  if (__builtin_mul_overflow(entry.bytes, extent, &entry.bytes)) reader_.fail();
  entry.shape.push_back(extent);
}

Entry Header::read_variable() {
  Entry entry;
  entry.name = name();
  std::vector<std::uint64_t> dimensions;
  const std::uint64_t rank = count();
  if (rank > kMostDimensions - 1) reader_.fail();
  for (std::uint64_t i = 0; i < rank && !reader_.failed(); ++i) dimensions.push_back(count());
  skip_attributes();
  const std::uint64_t type = reader_.number(4);
  if (type == 0 || type > kTypes.size()) reader_.fail();
  if (reader_.failed()) return entry;
  entry.type = kTypes[type - 1];
  entry.bytes = entry.type.bytes;
  for (std::size_t i = 0; i < dimensions.size(); ++i) add_shape(entry, dimensions[i], i == 0);
  count();  // vsize, which large variables cannot say, so that everybody computes it
  entry.begin = place();
  return entry;
}

void Header::read_variables() {
  for (std::uint64_t left = list(kVariableTag); left > 0 && !reader_.failed(); --left)
    entries_.push_back(read_variable());
}

/// From one record of a variable to its next.
std::optional<std::uint64_t> Header::find_record_bytes() const {
  std::uint64_t sum = 0;
  std::size_t variables = 0;
  for (const Entry& entry : entries_) {
    if (!entry.record) continue;
    ++variables;
    if (entry.bytes > file_bytes_) return {};
    sum += padded(entry.bytes);
  }
  if (variables != 1) return sum;
  // The records of a single variable are not padded.
  const auto only = std::find_if(entries_.begin(), entries_.end(),
                                 [](const Entry& entry) { return entry.record; });
  return only->bytes;
}

/// Where nobody wrote how many there are, as many as the file has room for.
std::uint64_t Header::find_records() const {
  if (!streaming_) return records_;
  std::uint64_t first = file_bytes_;
  for (const Entry& entry : entries_)
    if (entry.record) first = std::min(first, entry.begin);
  return record_bytes_ == 0 ? 0 : (file_bytes_ - first) / record_bytes_;
}

/// Nothing: it would be larger than any file.
std::optional<PiecedArray> Header::pieces_of(const Entry& entry) const {
  PiecedArray pieces{
      .array = {{entry.type.kind, entry.type.bytes, entry.type.bytes > 1 ? kBigEndian : ""}, {}},
      .first = {entry.begin, entry.bytes},
      .stride = record_bytes_,
      .count = entry.record ? records_ : 1};
  std::vector<std::uint64_t> shape = entry.shape;
  if (entry.record) shape.insert(shape.begin(), records_);
  pieces.array.shape = Shape(std::move(shape));
  const auto bytes = pieces.array.bytes();
  if (!bytes) return {};
  if (*bytes == 0) pieces.count = 0;
  if (pieces.count > 1 && pieces.stride == entry.bytes) {
    pieces.first.length = *bytes;
    pieces.count = 1;
  }
  return pieces;
}

bool is_in_file(const PiecedArray& pieces, std::uint64_t file_bytes) {
  if (pieces.count == 0) return true;
  std::uint64_t end = 0;
  return !__builtin_mul_overflow(pieces.stride, pieces.count - 1, &end) &&
         !__builtin_add_overflow(end, pieces.first.offset, &end) &&
         !__builtin_add_overflow(end, pieces.first.length, &end) && end <= file_bytes;
}

bool Header::is_worth_ranges(const PiecedArray& pieces) const {
  return pieces.array.bytes() >= kLeastVariableBytes &&
         pieces.count <= kMostRanges / entries_.size();
}

Variable variable_of(const std::string& name, const PiecedArray& pieces) {
  Variable variable{
      .name = name, .type = pieces.array.type, .shape = pieces.array.shape, .ranges = {}};
  // A range that wraps around is outside of the file, which check_layout() sees.
  for (std::uint64_t i = 0; i < pieces.count; ++i)
    add_range(variable.ranges, {pieces.first.offset + i * pieces.stride, pieces.first.length});
  fit_shape(variable);
  return variable;
}

Result<void> Header::read() {
  reader_.number(3);
  version_ = static_cast<unsigned>(reader_.number(1));
  if (version_ != 1 && version_ != 2 && version_ != 5)
    return fail(Code::unsupported, "netCDF format {} is not known", version_);
  records_ = count();
  streaming_ = records_ == (version_ == 5 ? ~std::uint64_t{0} : 0xFFFFFFFFu);
  read_dimensions();
  skip_attributes();
  read_variables();
  const auto record_bytes = find_record_bytes();
  if (reader_.failed() || !record_bytes)
    return fail(Code::corruption, "its netCDF header is damaged or cut short");
  record_bytes_ = *record_bytes;
  records_ = find_records();
  return {};
}

Layout Header::layout() const {
  Layout layout{.format = FileFormat::netcdf, .variables = {}, .remark = {}};
  for (const Entry& entry : entries_) {
    const auto pieces = pieces_of(entry);
    if (!pieces) continue;
    if (is_worth_ranges(*pieces))
      layout.variables.push_back(variable_of(entry.name, *pieces));
    else if (is_in_file(*pieces, file_bytes_))
      layout.in_skeleton.push_back({entry.name, pieces->array, *pieces->array.bytes()});
  }
  return layout;
}

std::optional<PiecedArray> Header::find(const std::string& name) const {
  for (const Entry& entry : entries_) {
    if (entry.name != name) continue;
    auto pieces = pieces_of(entry);
    if (pieces && is_in_file(*pieces, file_bytes_)) return pieces;
  }
  return {};
}

Result<Header> read_header(const SourceBytes& file) {
  std::vector<std::byte> bytes(std::min(file.stamp().bytes, kMostHeaderBytes));
  BELAY_TRY(file.read(0, bytes));
  Header header(std::move(bytes), file.stamp().bytes);
  BELAY_TRY(header.read());
  return header;
}

}  // namespace

Result<Layout> find_netcdf_layout(const SourceBytes& file) {
  BELAY_ASSIGN(const Header header, read_header(file));
  return header.layout();
}

Result<PiecedArray> find_netcdf_variable(const SourceBytes& file, const std::string& name) {
  BELAY_ASSIGN(const Header header, read_header(file));
  auto found = header.find(name);
  if (!found) return fail(Code::not_found, "there is none such");
  return *std::move(found);
}

}  // namespace belay::files
