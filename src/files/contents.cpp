// SPDX-License-Identifier: Apache-2.0
#include "files/contents.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/range_wire.hpp"
#include "format/wire.hpp"

#include <algorithm>
#include <set>

namespace belay::files {
namespace {

constexpr std::string_view kMagic = "BELAYFIL";
constexpr std::uint32_t kFirstFormat = 1;   // said nothing of whole arrays
constexpr std::uint32_t kSecondFormat = 2;  // said nothing of variables without a region
constexpr std::uint32_t kFormat = 3;
constexpr std::size_t kMostPathBytes = 4095;
constexpr std::size_t kMostComponentBytes = 255;
constexpr std::uint32_t kModeBits = 07777;

void put_region(format::WireWriter& writer, const PackedRegion& region) {
  writer.length(region.region);
  writer.text(region.region);
  writer.field(static_cast<std::uint16_t>(region.variable.size()));
  writer.text(region.variable);
  put_ranges(writer, region.ranges);
  writer.field(static_cast<std::uint8_t>(region.whole ? 1 : 0));
  if (region.whole) put_array(writer, *region.whole);
}

void put_entry(format::WireWriter& writer, const SkeletonEntry& entry) {
  writer.length(entry.name);
  writer.text(entry.name);
  writer.field(static_cast<std::uint16_t>(entry.variable.size()));
  writer.text(entry.variable);
  writer.field(entry.bytes);
  put_array(writer, entry.array);
}

void put_file(format::WireWriter& writer, const PackedFile& file) {
  writer.field(static_cast<std::uint16_t>(file.path.size()));
  writer.text(file.path);
  writer.field(file.bytes);
  writer.field(file.mode);
  writer.field(file.mtime_ns);
  writer.field(file.atime_ns);
  writer.field(static_cast<std::uint8_t>(file.format));
  writer.pair(file.digest.low, file.digest.high);
  writer.field(static_cast<std::uint32_t>(file.regions.size()));
  for (const PackedRegion& region : file.regions) put_region(writer, region);
  writer.field(static_cast<std::uint32_t>(file.in_skeleton.size()));
  for (const SkeletonEntry& entry : file.in_skeleton) put_entry(writer, entry);
}

Result<std::optional<ArrayType>> get_whole(format::WireReader& reader) {
  const auto has_whole = reader.field<std::uint8_t>();
  if (has_whole == 0) return std::optional<ArrayType>();
  ArrayType array = get_array(reader);
  if (has_whole != 1 || !array.makes_sense())
    return fail(Code::corruption, "type or shape of a variable are none");
  return std::optional(std::move(array));
}

Result<std::vector<SkeletonEntry>> get_entries(format::WireReader& reader) {
  const auto count = reader.field<std::uint32_t>();
  if (count > kMostVariables)
    return fail(Code::corruption, "a file has more than {} variables", kMostVariables);
  std::vector<SkeletonEntry> entries;
  for (std::uint32_t i = 0; i < count && !reader.failed(); ++i) {
    SkeletonEntry entry;
    entry.name = reader.text(reader.field<std::uint8_t>());
    entry.variable = reader.text(reader.field<std::uint16_t>());
    entry.bytes = reader.field<std::uint64_t>();
    entry.array = get_array(reader);
    entries.push_back(std::move(entry));
  }
  return entries;
}

Result<PackedFile> get_file(format::WireReader& reader, std::uint32_t format,
                            std::size_t& ranges_left) {
  PackedFile file;
  file.tells_arrays = format != kFirstFormat;
  file.path = reader.text(reader.field<std::uint16_t>());
  file.bytes = reader.field<std::uint64_t>();
  file.mode = reader.field<std::uint32_t>();
  file.mtime_ns = reader.field<std::int64_t>();
  file.atime_ns = reader.field<std::int64_t>();
  const auto kind = reader.field<std::uint8_t>();
  if (kind > static_cast<std::uint8_t>(FileFormat::netcdf) || file.mode > kModeBits)
    return fail(Code::corruption, "mode or format of file {} is none", in_quotes(file.path));
  file.format = static_cast<FileFormat>(kind);
  file.digest.low = reader.field<std::uint64_t>();
  file.digest.high = reader.field<std::uint64_t>();
  const auto regions = reader.field<std::uint32_t>();
  for (std::uint32_t i = 0; i < regions && !reader.failed(); ++i) {
    PackedRegion region;
    region.region = reader.text(reader.field<std::uint8_t>());
    region.variable = reader.text(reader.field<std::uint16_t>());
    BELAY_ASSIGN(region.ranges, get_ranges(reader, ranges_left));
    if (file.tells_arrays) {
      BELAY_ASSIGN(region.whole, get_whole(reader));
    }
    file.regions.push_back(std::move(region));
  }
  if (format > kSecondFormat) {
    BELAY_ASSIGN(file.in_skeleton, get_entries(reader));
  }
  return file;
}

/// Every byte once.
Result<void> check_coverage(const PackedFile& file) {
  std::vector<Range> all;
  for (const PackedRegion& region : file.regions)
    all.insert(all.end(), region.ranges.begin(), region.ranges.end());
  std::sort(all.begin(), all.end(),
            [](const Range& a, const Range& b) { return a.offset < b.offset; });
  std::uint64_t end = 0;
  bool gapless = true;
  for (const Range& range : all) {
    gapless = gapless && range.offset == end;
    end = range.end();
  }
  if (!gapless || end != file.bytes)
    return fail(Code::corruption, "the ranges of file {} are not all its bytes",
                in_quotes(file.path));
  return {};
}

/// Each variable of a file is either in regions or in the skeleton, and there once.
Result<void> check_entries(const PackedFile& file, std::set<std::string>& names) {
  std::set<std::string_view> variables;
  for (const PackedRegion& region : file.regions)
    if (!region.variable.empty()) variables.insert(region.variable);
  for (const SkeletonEntry& entry : file.in_skeleton)
    if (name_flaw(entry.name) || !names.insert(entry.name).second || entry.variable.empty() ||
        !variables.insert(entry.variable).second || !entry.array.makes_sense() ||
        entry.bytes > file.bytes)
      return fail(Code::corruption, "a variable of file {} that has no region makes no sense",
                  in_quotes(file.path));
  if (!file.in_skeleton.empty() && variables.size() > kMostVariables)
    return fail(Code::corruption, "file {} has more than {} variables", in_quotes(file.path),
                kMostVariables);
  return {};
}

Result<void> check_file(const PackedFile& file, const std::string& before,
                        std::set<std::string>& names) {
  if (auto checked = check_path(file.path); !checked)
    return fail(Code::corruption, "{}", checked.error().message());
  if (!before.empty() && file.path <= before)
    return fail(Code::corruption, "file {} is out of order", in_quotes(file.path));
  for (const PackedRegion& region : file.regions)
    if (name_flaw(region.region) || !names.insert(region.region).second)
      return fail(Code::corruption, "a region of file {} is named twice, or by no name",
                  in_quotes(file.path));
  BELAY_TRY(check_entries(file, names));
  return check_coverage(file);
}

}  // namespace

Result<void> check_path(std::string_view path) {
  const auto refuse = [&](const char* why) {
    return fail(Code::invalid_argument, "{} cannot be the name of a packed file: it {}",
                in_quotes(path), why);
  };
  if (path.empty() || path.size() > kMostPathBytes) return refuse("is empty or too long");
  if (path.find('\0') != std::string_view::npos) return refuse("has a zero byte");
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const auto component = path.substr(begin, end - begin);
    if (component.empty() || component == "." || component == "..")
      return refuse("is not a plain path below a directory");
    if (component.size() > kMostComponentBytes) return refuse("has too long a part");
    begin = end + 1;
  }
  return {};
}

std::vector<std::byte> encode_contents(const Contents& contents) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.start(kMagic, kFormat);
  writer.field(static_cast<std::uint32_t>(contents.step ? 1 : 0));
  writer.field(contents.step.value_or(0));
  writer.field(static_cast<std::uint32_t>(contents.files.size()));
  for (const PackedFile& file : contents.files) put_file(writer, file);
  return bytes;
}

Result<Contents> decode_contents(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  const std::string magic = reader.text(kMagic.size());
  const auto format = reader.field<std::uint32_t>();
  if (reader.failed() || magic != kMagic)
    return fail(Code::corruption, "this is not a table of files");
  if (format < kFirstFormat || format > kFormat)
    return fail(Code::unsupported, "the table of files has format {}; this build knows {} to {}",
                format, kFirstFormat, kFormat);
  Contents contents;
  const auto has_step = reader.field<std::uint32_t>();
  const auto step = reader.field<std::uint64_t>();
  if (has_step > 1 || (has_step == 0 && step != 0))
    return fail(Code::corruption, "the step of the table of files is damaged");
  if (has_step == 1) contents.step = step;
  const auto files = reader.field<std::uint32_t>();
  std::size_t ranges_left = kMostTableRanges;
  std::set<std::string> names;
  std::string before;
  for (std::uint32_t i = 0; i < files && !reader.failed(); ++i) {
    BELAY_ASSIGN(auto file, get_file(reader, format, ranges_left));
    if (reader.failed()) break;
    BELAY_TRY(check_file(file, before, names));
    before = file.path;
    contents.files.push_back(std::move(file));
  }
  if (reader.failed() || reader.remaining() != 0)
    return fail(Code::corruption, "the table of files is cut short, or too long");
  return contents;
}

}  // namespace belay::files
