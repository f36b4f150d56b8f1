// SPDX-License-Identifier: Apache-2.0
#include "files/unpack.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/target_directory.hpp"
#include "inspect/part_reader.hpp"
#include "inspect/region_change.hpp"
#include "os/errno.hpp"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace belay::files {
namespace {

constexpr std::uint64_t kPieceBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kMostTableBytes = std::uint64_t{1} << 32;

Result<const inspect::PartView*> part_of(const inspect::VersionView& version) {
  if (version.parts.empty() || !version.parts.front().manifest)
    return fail(Code::corruption, "the manifest of version {} cannot be read; see `belay check`",
                version.key.version);
  if (version.ranks != 1 || version.any_manifest()->application != kApplication)
    return fail(Code::invalid_argument,
                "version {} was not made by `belay pack`; `belay extract` writes its regions",
                version.key.version);
  return &version.parts.front();
}

/// Zeros need not be written: the file was made of them.
bool is_zero(std::span<const std::byte> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{}; });
}

Result<void> write_at(int descriptor, std::uint64_t offset, std::span<const std::byte> bytes) {
  if (is_zero(bytes)) return {};
  while (!bytes.empty()) {
    const auto done = os::retry([&] {
      return ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (done < 0) return Unexpected(os::error_of(errno, "write", "a temporary file"));
    bytes = bytes.subspan(static_cast<std::size_t>(done));
    offset += static_cast<std::uint64_t>(done);
  }
  return {};
}

/// Regions by name, from whatever files have them.
class RegionSource {
 public:
  RegionSource(const inspect::StoreView& view, const inspect::VersionView& version,
               const inspect::PartView& part)
      : view_(view), version_(version), part_(part) {}

  /// If not all segments are there, each region is opened by itself, so that one that is lost takes
  /// no other with it.
  Result<void> open() {
    auto all = inspect::PartReader::open(view_, version_, part_, "");
    if (all) {
      all_.emplace(*std::move(all));
      index(all_->manifest());
      return {};
    }
    BELAY_ASSIGN(manifest_, view_.load(part_, version_.key));
    index(manifest_);
    return {};
  }

  Result<void> select(const std::string& name) {
    const auto found = regions_.find(name);
    if (found == regions_.end())
      return fail(Code::corruption, "the version has no region {}", in_quotes(name));
    region_ = found->second;
    if (all_) return {};
    one_.reset();
    auto reader = inspect::PartReader::open(view_, version_, part_, name);
    if (!reader)
      return fail(Code::corruption, "{} is lost: {}", in_quotes(name), reader.error().message());
    one_.emplace(*std::move(reader));
    return {};
  }
  std::uint64_t bytes() const { return region_->bytes; }
  Result<void> read(std::uint64_t offset, std::span<std::byte> to) {
    return (all_ ? *all_ : *one_).read(*region_, offset, to);
  }

 private:
  void index(const Manifest& manifest) {
    for (const RegionRecord& region : manifest.regions) regions_.emplace(region.name, &region);
  }

  const inspect::StoreView& view_;
  const inspect::VersionView& version_;
  const inspect::PartView& part_;
  std::optional<inspect::PartReader> all_;
  std::optional<inspect::PartReader> one_;
  Manifest manifest_;
  std::unordered_map<std::string, const RegionRecord*> regions_;
  const RegionRecord* region_ = nullptr;
};

class Unpacker {
 public:
  Unpacker(RegionSource& source, const UnpackProgress& progress, std::uint64_t total_bytes)
      : source_(source), progress_(progress), total_bytes_(total_bytes) {}

  Result<void> fill(const PackedFile& file, int descriptor) {
    for (const PackedRegion& region : file.regions) BELAY_TRY(put_region(region, descriptor));
    BELAY_ASSIGN(const Digest digest, digest_of(descriptor, file.bytes, file.path));
    if (digest != file.digest) return fail(Code::corruption, "its content is not what was packed");
    return {};
  }

 private:
  Result<void> put_region(const PackedRegion& region, int descriptor) {
    BELAY_TRY(source_.select(region.region));
    if (source_.bytes() != bytes_of(region.ranges))
      return fail(Code::corruption, "region {} has {} bytes, but the table speaks of {}",
                  in_quotes(region.region), source_.bytes(), bytes_of(region.ranges));
    // Ranges may be small and many: they are read together, and written one by one.
    buffer_.resize(std::min(source_.bytes(), kPieceBytes));
    std::uint64_t read = 0;
    std::uint64_t filled = 0;
    std::uint64_t used = 0;
    for (const Range& range : region.ranges)
      for (std::uint64_t done = 0; done < range.length;) {
        if (used == filled) {
          filled = std::min<std::uint64_t>(buffer_.size(), source_.bytes() - read);
          BELAY_TRY(source_.read(read, std::span(buffer_).first(filled)));
          read += filled;
          used = 0;
          if (progress_) progress_(done_bytes_ += filled, total_bytes_);
        }
        const std::uint64_t piece = std::min(range.length - done, filled - used);
        BELAY_TRY(
            write_at(descriptor, range.offset + done, std::span(buffer_).subspan(used, piece)));
        used += piece;
        done += piece;
      }
    return {};
  }

  RegionSource& source_;
  const UnpackProgress& progress_;
  std::uint64_t total_bytes_;
  std::uint64_t done_bytes_ = 0;
  std::vector<std::byte> buffer_;
};

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
  Unpacker unpacker(source, progress, total);
  UnpackReport report;
  for (const PackedFile& file : contents.files) {
    const auto written =
        directory.write(file.path, file.bytes, {file.mode, file.mtime_ns, file.atime_ns},
                        request.force, [&](int to) { return unpacker.fill(file, to); });
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
