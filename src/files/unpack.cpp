// SPDX-License-Identifier: Apache-2.0
#include "files/unpack.hpp"

#include "base/try.hpp"
#include "files/region_source.hpp"
#include "files/target_directory.hpp"
#include "inspect/part_reader.hpp"
#include "inspect/region_change.hpp"

namespace belay::files {
namespace {

constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 32;

}  // namespace

Result<Contents> read_contents(const inspect::StoreView& view,
                               const inspect::VersionView& version) {
  BELAY_ASSIGN(const auto* part, part_of(version));
  if (inspect::find_region(*part->manifest, kContentsRegion) == nullptr)
    return fail(Code::invalid_argument, "version {} has no table of files", version.key.version);
  BELAY_ASSIGN(auto reader, inspect::PartReader::open(view, version, *part, kContentsRegion));
  const RegionRecord& region = *inspect::find_region(reader.manifest(), kContentsRegion);
  if (region.bytes > kMostTableBytes)
    return fail(Code::corruption, "the table of files is too long");
  std::vector<std::byte> bytes(region.bytes);
  BELAY_TRY(reader.read(region, 0, bytes));
  return within(fmt::format("version {}", version.key.version), decode_contents(bytes));
}

Result<UnpackReport> unpack(const inspect::StoreView& view, const inspect::VersionView& version,
                            const UnpackRequest& request, const UnpackProgress& progress) {
  BELAY_ASSIGN(const auto* part, part_of(version));
  BELAY_ASSIGN(const Contents contents, read_contents(view, version));
  BELAY_ASSIGN(auto directory, TargetDirectory::open(request.directory));
  RegionSource source(view, version, *part);
  BELAY_TRY(source.open());
  std::uint64_t total = 0;
  for (const PackedFile& file : contents.files) total += file.bytes;
  std::uint64_t done = 0;
  const auto fill = [&](const PackedFile& file, int descriptor) -> Result<void> {
    for (const PackedRegion& region : file.regions)
      BELAY_TRY(source.put(region, descriptor, [&](std::uint64_t bytes) {
        if (progress) progress(done += bytes, total);
      }));
    BELAY_ASSIGN(const Digest digest, digest_of(descriptor, file.bytes, file.path));
    if (digest != file.digest) return fail(Code::corruption, "its content is not what was packed");
    return {};
  };
  UnpackReport report;
  for (const PackedFile& file : contents.files) {
    const auto written =
        directory.write(file.path, file.bytes, {file.mode, file.mtime_ns, file.atime_ns},
                        request.force, [&](int to) { return fill(file, to); });
    if (!written) {
      report.failures.push_back({file.path, written.error()});
      continue;
    }
    ++report.files;
    report.bytes += file.bytes;
  }
  BELAY_TRY(directory.sync());
  return report;
}

}  // namespace belay::files
