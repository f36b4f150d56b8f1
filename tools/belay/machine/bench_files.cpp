// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "os/clock.hpp"
#include "os/descriptor.hpp"
#include "os/errno.hpp"
#include "os/files.hpp"
#include "os/memory.hpp"
#include "store/tier.hpp"
#include "tools/belay/machine/bench.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <random>

namespace belay::tool {
namespace {

constexpr std::size_t kPieceBytes = 8 << 20;
constexpr std::size_t kSmallBytes = 4096;
constexpr int kSyncsInARound = 10;
constexpr int kPublishesInARound = 5;

double seconds_since(std::uint64_t start_ns) {
  const std::uint64_t passed = os::system_clock().now_ns() - start_ns;
  return static_cast<double>(std::max<std::uint64_t>(passed, 1)) * 1e-9;
}

class FileBench {
 public:
  static Result<std::shared_ptr<FileBench>> make(std::string directory, const BenchSizes& sizes) {
    BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(kPieceBytes));
    return std::make_shared<FileBench>(std::move(directory), sizes, std::move(memory));
  }
  FileBench(std::string directory, const BenchSizes& sizes, os::AlignedMemory memory)
      : directory_(std::move(directory)),
        sizes_(sizes),
        memory_(std::move(memory)),
        tier_(store::make_local_tier(os::posix_files(), directory_)) {
    std::minstd_rand random;
    for (std::byte& byte : memory_.bytes()) byte = static_cast<std::byte>(random() >> 8);
  }

  /// In the order of a segment: reserve, write, sync. A slow disk gets less to write.
  Result<void> write(Figure& figure) {
    BELAY_ASSIGN(const auto file, os::posix_files().create(path("large"), /*direct=*/true));
    BELAY_TRY(file->reserve(sizes_.file_bytes));
    const std::uint64_t start = os::system_clock().now_ns();
    written_ = 0;
    while (written_ == 0 || (written_ + kPieceBytes <= sizes_.file_bytes &&
                             os::system_clock().now_ns() - start < sizes_.most_write_ns)) {
      BELAY_TRY(file->write(written_, memory_.bytes()));
      written_ += kPieceBytes;
    }
    BELAY_TRY(file->sync());
    figure.samples.push_back(static_cast<double>(written_) / seconds_since(start));
    return file->close();
  }

  /// What write() left, and then removes it.
  Result<void> read(Figure& figure) {
    BELAY_TRY(forget(path("large")));
    BELAY_ASSIGN(const auto file, os::posix_files().open(path("large"), /*direct=*/true));
    const std::uint64_t start = os::system_clock().now_ns();
    std::uint64_t done = 0;
    while (done < written_) {
      BELAY_ASSIGN(const std::size_t got, file->read(done, memory_.bytes()));
      if (got == 0) return fail(Code::io, "read {}: it became shorter", path("large"));
      done += got;
    }
    figure.samples.push_back(static_cast<double>(done) / seconds_since(start));
    return os::posix_files().remove(path("large"));
  }

  Result<void> sync(Figure& figure) {
    const auto piece = memory_.bytes().first(kSmallBytes);
    BELAY_ASSIGN(const auto file, os::posix_files().create(path("sync"), /*direct=*/true));
    for (int i = 0; i < kSyncsInARound; ++i) {
      const std::uint64_t start = os::system_clock().now_ns();
      BELAY_TRY(file->write(static_cast<std::uint64_t>(i) * kSmallBytes, piece));
      BELAY_TRY(file->sync());
      figure.samples.push_back(seconds_since(start));
    }
    BELAY_TRY(file->close());
    return os::posix_files().remove(path("sync"));
  }

  Result<void> publish(Figure& figure) {
    const auto piece = memory_.bytes().first(kSmallBytes);
    for (int i = 0; i < kPublishesInARound; ++i) {
      const std::uint64_t start = os::system_clock().now_ns();
      BELAY_TRY(store::put_whole(*tier_, fmt::format("small-{}", i), piece, /*exclusive=*/true));
      figure.samples.push_back(seconds_since(start));
    }
    for (int i = 0; i < kPublishesInARound; ++i)
      BELAY_TRY(tier_->remove(fmt::format("small-{}", i)));
    return {};
  }

 private:
  std::string path(const char* name) const { return directory_ + "/" + name; }

  /// Where direct I/O is refused, reads must not come from the page cache.
  static Result<void> forget(const std::string& path) {
    const os::Descriptor file(
        os::retry([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC); }));
    if (!file.valid()) return Unexpected(os::error_of(errno, "open", path));
    ::posix_fadvise(file.number(), 0, 0, POSIX_FADV_DONTNEED);  // advice: nothing can go wrong
    return {};
  }

  std::string directory_;
  BenchSizes sizes_;
  os::AlignedMemory memory_;
  std::unique_ptr<store::Tier> tier_;
  std::uint64_t written_ = 0;
};

}  // namespace

Result<std::vector<Measurement>> file_measurements(const std::string& directory,
                                                   const BenchSizes& sizes) {
  using Unit = Figure::Unit;
  BELAY_ASSIGN(const auto bench, FileBench::make(directory, sizes));
  const auto by = [bench](Result<void> (FileBench::*sample)(Figure&)) {
    return [bench, sample](Figure& figure) { return (*bench.*sample)(figure); };
  };
  return std::vector<Measurement>{
      {{"write", "write a large file (direct I/O, fsync)", Unit::bytes_per_second},
       by(&FileBench::write)},
      {{"read", "read it back (direct I/O)", Unit::bytes_per_second}, by(&FileBench::read)},
      {{"fsync", "write 4 KiB and fsync", Unit::seconds}, by(&FileBench::sync)},
      {{"publish", "publish a small file as a vote is", Unit::seconds}, by(&FileBench::publish)}};
}

}  // namespace belay::tool
