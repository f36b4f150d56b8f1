// SPDX-License-Identifier: Apache-2.0
#include "files/variable_reader.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/range_wire.hpp"
#include "os/errno.hpp"

#include <algorithm>
#include <cstdlib>

namespace belay::files {
namespace {

constexpr std::uint64_t kPatienceNs =
    120'000'000'000;  // for one piece, which may be all of a chunk
constexpr std::uint64_t kMostMemoryBytes = std::uint64_t{4} << 30;
constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

enum class Message : std::uint8_t { array, bytes, failure };

/// Gone when destroyed. It has a name until then, since the HDF5 library does not open a file by a
/// descriptor if it has none.
class TemporaryFile {
 public:
  TemporaryFile() : path_(place() + "/belay-XXXXXX"), file_(::mkstemp(path_.data())) {}
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (file_.valid()) ::unlink(path_.c_str());
  }

  bool valid() const { return file_.valid(); }
  int descriptor() const { return file_.number(); }
  const std::string& path() const { return path_; }

 private:
  static std::string place() {
    const char* const chosen = std::getenv("TMPDIR");
    return chosen != nullptr && *chosen != 0 ? chosen : "/tmp";
  }

  std::string path_;
  os::Descriptor file_;
};

bool send(int out, Message kind, std::span<const std::byte> content) {
  std::vector<std::byte> bytes(1, static_cast<std::byte>(kind));
  bytes.insert(bytes.end(), content.begin(), content.end());
  return send_message(out, bytes);
}

Error nobody_listens() { return {Code::io, "nobody listens any more"}; }

void read_and_tell(const std::string& image, const std::string& dataset, int out) {
  confine(kMostMemoryBytes);
  const auto begin = [&](const ArrayType& array, const std::vector<Field>& fields) -> Result<void> {
    std::vector<std::byte> bytes;
    format::WireWriter writer(bytes);
    put_array(writer, array);
    put_fields(writer, fields);
    if (!send(out, Message::array, bytes)) return Unexpected(nobody_listens());
    return {};
  };
  const auto take = [&](std::span<const std::byte> bytes) -> Result<void> {
    for (std::size_t at = 0; at < bytes.size(); at += kPieceBytes)
      if (!send(out, Message::bytes, bytes.subspan(at, std::min(kPieceBytes, bytes.size() - at))))
        return Unexpected(nobody_listens());
    return {};
  };
  const auto done = within_memory([&] { return read_hdf5_array(image, dataset, begin, take); });
  if (done) return;
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(static_cast<std::uint8_t>(done.error().code()));
  writer.text(done.error().message());
  (void)send(out, Message::failure, bytes);  // who does not listen does not need to know
}

Error failure_of(std::span<const std::byte> message) {
  format::WireReader reader(message);
  const auto code = std::min(reader.field<std::uint8_t>(), static_cast<std::uint8_t>(Code::busy));
  return {static_cast<Code>(code), reader.text(reader.remaining())};
}

bool is_number(const ElementType& type) {
  return type.kind >= ElementKind::i8 && type.kind <= ElementKind::c128;
}

bool is_part_of(const PackedFile& file, const PackedRegion& region, const std::string& variable) {
  if (region.variable == variable) return true;
  // The first format of tables gave parts names of their own.
  const std::string& name = region.variable;
  return !file.tells_arrays && name.starts_with(variable + "[") && name.ends_with(']') &&
         name.find_first_not_of("0123456789", variable.size() + 1) == name.size() - 1;
}

}  // namespace

Result<VariableReader> VariableReader::open(RegionSource& source, const PackedFile& file,
                                            const std::string& variable) {
  VariableReader reader(source, file, variable);
  BELAY_TRY(within(fmt::format("variable {} of {}", in_quotes(variable), in_quotes(file.path)),
                   reader.open_array()));
  return reader;
}

Result<void> VariableReader::open_array() {
  if (variable_.empty()) return open_regions();  // bytes that belong to no variable
  if (file_->format == FileFormat::hdf5 && !is_stored_as_it_is()) return open_hdf5();
  if (file_->format == FileFormat::netcdf && regions().empty()) return open_netcdf();
  return open_regions();
}

/// In one piece in its file, and so in its region. What opaque elements are, or have in them, only
/// the HDF5 library can tell: they may be references.
bool VariableReader::is_stored_as_it_is() const {
  const auto parts = regions();
  if (!file_->tells_arrays || parts.size() != 1 || parts.front()->whole) return false;
  const auto array = source_->array_of(*parts.front());
  return array && (is_number(array->type) || array->type.name == kFixedText);
}

std::vector<const PackedRegion*> VariableReader::regions() const {
  std::vector<const PackedRegion*> regions;
  for (const PackedRegion& region : file_->regions)
    if (is_part_of(*file_, region, variable_)) regions.push_back(&region);
  return regions;
}

Result<void> VariableReader::open_regions() {
  const auto parts = regions();
  if (parts.empty()) return fail(Code::not_found, "there is none such");
  if (parts.front()->whole) {
    array_ = *parts.front()->whole;
    return {};
  }
  BELAY_ASSIGN(array_, source_->array_of(*parts.front()));
  if (parts.size() == 1) return {};
  std::uint64_t bytes = 0;
  for (const PackedRegion* part : parts) bytes += bytes_of(part->ranges);
  array_.type = ElementType();
  array_.shape = Shape(bytes);
  return {};
}

bool VariableReader::is_in_skeleton() const {
  return std::any_of(file_->in_skeleton.begin(), file_->in_skeleton.end(),
                     [&](const SkeletonEntry& entry) { return entry.variable == variable_; });
}

/// The skeleton and the variable. What is not in the table may lie anywhere in the file.
Result<void> VariableReader::fill_image(int descriptor) const {
  if (::ftruncate(descriptor, static_cast<off_t>(file_->bytes)) != 0)
    return Unexpected(os::error_of(errno, "write", "a temporary file"));
  const bool known = !regions().empty() || is_in_skeleton();
  for (const PackedRegion& region : file_->regions)
    if (!known || region.variable.empty() || is_part_of(*file_, region, variable_))
      BELAY_TRY(source_->put(region, descriptor));
  return {};
}

Result<std::vector<std::byte>> VariableReader::hear() {
  auto message = child_->receive(kPatienceNs, kPieceBytes + 1);
  if (!message || message->empty())
    return fail(Code::corruption,
                "the HDF5 library has died or hangs over it; `belay unpack` writes its file");
  if (message->front() == static_cast<std::byte>(Message::failure))
    return Unexpected(failure_of(std::span(*message).subspan(1)));
  return message;
}

Result<void> VariableReader::open_hdf5() {
  const TemporaryFile image;
  if (!image.valid()) return Unexpected(os::error_of(errno, "create", image.path()));
  BELAY_TRY(fill_image(image.descriptor()));
  BELAY_ASSIGN(auto child,
               Child::start([&](int out) { read_and_tell(image.path(), variable_, out); }));
  child_.emplace(std::move(child));
  BELAY_ASSIGN(const auto message, hear());
  const std::span<const std::byte> content(message);
  format::WireReader reader(content.subspan(1));
  array_ = get_array(reader);
  if (reader.failed() || !array_.bytes() || array_.type.bytes == 0 ||
      array_.type.kind > ElementKind::serialized)
    return fail(Code::corruption, "what the HDF5 library says of it makes no sense");
  fields_ = get_fields(reader);
  if (!are_fields(fields_, array_.type.bytes)) fields_.clear();  // then the bytes must do
  return {};
}

/// One that was too small for a region, or in too many pieces.
Result<void> VariableReader::open_netcdf() {
  const TemporaryFile image;
  if (!image.valid()) return Unexpected(os::error_of(errno, "create", image.path()));
  BELAY_TRY(fill_image(image.descriptor()));
  BELAY_ASSIGN(auto file, SourceBytes::open(image.path()));
  BELAY_ASSIGN(pieces_, find_netcdf_variable(file, variable_));
  array_ = pieces_.array;
  image_.emplace(std::move(file));
  return {};
}

/// Pieces may be small and many, or one that is large.
Result<void> VariableReader::read_pieces(const TakeBytes& take) const {
  std::vector<std::byte> gathered;
  for (std::uint64_t i = 0; i < pieces_.count; ++i)
    for (std::uint64_t at = 0; at < pieces_.first.length;) {
      const std::uint64_t bytes = std::min<std::uint64_t>(pieces_.first.length - at, kPieceBytes);
      gathered.resize(gathered.size() + bytes);
      BELAY_TRY(image_->read(pieces_.first.offset + i * pieces_.stride + at,
                             std::span(gathered).last(bytes)));
      at += bytes;
      if (gathered.size() < kPieceBytes) continue;
      BELAY_TRY(take(gathered));
      gathered.clear();
    }
  return gathered.empty() ? Result<void>() : take(gathered);
}

Result<void> VariableReader::read(const TakeBytes& take) {
  if (image_) return read_pieces(take);
  if (!child_) {
    for (const PackedRegion* region : regions()) BELAY_TRY(source_->read(*region, take));
    return {};
  }
  for (std::uint64_t left = *array_.bytes(); left > 0;) {
    BELAY_ASSIGN(const auto message,
                 within(fmt::format("variable {}", in_quotes(variable_)), hear()));
    const auto bytes = std::span(message).subspan(1);
    if (bytes.size() > left)
      return fail(Code::corruption, "there are more elements than there are");
    BELAY_TRY(take(bytes));
    left -= bytes.size();
  }
  return {};
}

}  // namespace belay::files
