// SPDX-License-Identifier: Apache-2.0
#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "store/tier.hpp"

#include <algorithm>
#include <mutex>
#include <optional>

namespace belay::store {
namespace {

class LocalTier final : public Tier {
 public:
  LocalTier(os::Files& files, std::string directory)
      : files_(files), directory_(std::move(directory)) {}

  Result<std::unique_ptr<os::File>> create(const std::string& name) override {
    auto file = files_.create(path(name), /*direct=*/true);
    if (file || file.error().code() != Code::not_found) return file;
    // The directory was removed underneath. What it held is lost, but not what comes.
    BELAY_TRY(files_.make_directory(directory_));
    return files_.create(path(name), /*direct=*/true);
  }
  Result<std::unique_ptr<os::File>> open(const std::string& name) override {
    return files_.open(path(name), /*direct=*/true);
  }
  Result<void> publish(const std::string& temporary, const std::string& name,
                       bool exclusive) override {
    BELAY_TRY(exclusive ? files_.rename_new(path(temporary), path(name))
                        : files_.rename(path(temporary), path(name)));
    if (planted(Mistake::skip_directory_sync)) return {};
    return sync_names();
  }
  Result<std::uint64_t> touch(const std::string& name) override { return files_.touch(path(name)); }
  Result<void> remove(const std::string& name) override { return files_.remove(path(name)); }
  Result<void> retire(const std::string& name) override {
    const auto space = files_.space(directory_);
    // Where memory is scarce, or has no bound, nothing stays longer than it must.
    if (!space || !space->in_memory || space->total_bytes == 0 ||
        space->free_bytes < space->total_bytes / 4)
      return remove(name);
    // From here on it is what any run may clear away, and nobody counts on.
    std::string retired = format::temporary_name(name);
    const std::string from = path(name), to = path(retired);
    {
      const std::lock_guard guard(mutex_);
      retired_.reserve(retired_.size() + 1);
    }
    BELAY_TRY(files_.rename(from, to));
    const std::lock_guard guard(mutex_);
    retired_.push_back(std::move(retired));
    return {};
  }
  Result<std::unique_ptr<os::File>> create_large(const std::string& name) override {
    const auto old = find_retired(name);  // listed until it is gone: memory may be lacking
    if (!old) return create(name);
    auto file = files_.create_from(path(*old), path(name), /*direct=*/true);
    if (file) {
      forget(*old);
      return file;
    }
    (void)drop(*old);  // if it cannot go now, it will be tried again
    return create(name);
  }
  Result<std::size_t> drop_retired() override {
    std::size_t dropped = 0;
    Result<void> all;
    for (const std::string& old : all_retired()) {
      auto gone = drop(old);
      if (gone)
        ++dropped;
      else
        all = std::move(gone);
    }
    if (!all && dropped == 0) return Unexpected(all.error());
    return dropped;
  }
  Result<void> sync_names() override { return files_.sync_directory(directory_); }
  Result<std::vector<std::string>> list() override {
    BELAY_ASSIGN(const auto entries, files_.list(directory_));
    std::vector<std::string> names;
    for (const os::DirectoryEntry& entry : entries)
      if (entry.kind == os::EntryKind::file) names.push_back(entry.name);
    return names;
  }
  Result<os::Space> space() override { return files_.space(directory_); }
  const std::string& place() const override { return directory_; }

 private:
  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  /// One whose name begins with the same word: it will be about as long.
  std::optional<std::string> find_retired(const std::string& name) {
    const std::string kind = name.substr(0, name.find('-') + 1);
    const std::lock_guard guard(mutex_);
    const auto found = std::find_if(retired_.begin(), retired_.end(),
                                    [&](const std::string& old) { return old.starts_with(kind); });
    return found == retired_.end() ? std::nullopt : std::optional(*found);
  }
  std::vector<std::string> all_retired() {
    const std::lock_guard guard(mutex_);
    return retired_;
  }
  Result<void> drop(const std::string& old) {
    if (auto gone = remove(old); !gone && gone.error().code() != Code::not_found) return gone;
    forget(old);
    return {};
  }
  void forget(const std::string& old) {
    const std::lock_guard guard(mutex_);
    std::erase(retired_, old);
  }

  os::Files& files_;
  std::string directory_;
  std::mutex mutex_;
  std::vector<std::string> retired_;
};

}  // namespace

std::unique_ptr<Tier> make_local_tier(os::Files& files, std::string directory) {
  return std::make_unique<LocalTier>(files, std::move(directory));
}

}  // namespace belay::store
