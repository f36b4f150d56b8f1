// SPDX-License-Identifier: Apache-2.0
#include "files/set_base.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/contents.hpp"
#include "inspect/store_locks.hpp"
#include "os/errno.hpp"
#include "os/host.hpp"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace belay::files {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Result<void> copy(const std::string& from, const std::string& to) {
  BELAY_ASSIGN(const auto source, os::posix_files().open(from, /*direct=*/false));
  BELAY_ASSIGN(const auto target, os::posix_files().create(to, /*direct=*/false));
  std::vector<std::byte> piece(kPieceBytes);
  for (std::uint64_t at = 0;;) {
    BELAY_ASSIGN(const std::size_t got, source->read(at, piece));
    if (got == 0) break;
    BELAY_TRY(target->write(at, std::span(piece).first(got)));
    at += got;
  }
  BELAY_TRY(target->sync());
  return target->close();
}

/// Files of a store never change, so that two stores can share them.
Result<void> link_or_copy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  const int error = errno;
  // Another file system, one without links, or too many of them.
  if (error == EXDEV || error == EPERM || error == EMLINK || error == EOPNOTSUPP)
    return copy(from, to);
  return Unexpected(os::error_of(error, "link", os::from_to(from, to)));
}

bool is_manifest(const inspect::FoundFile& file) {
  return file.parsed && file.parsed->kind == format::NameKind::manifest;
}

Result<void> link_node(const inspect::NodeView& node, const std::string& directory) {
  BELAY_TRY(os::posix_files().make_directory(directory));
  std::vector<const inspect::FoundFile*> files;
  for (const inspect::FoundFile& file : node.files)
    if (file.regular && !file.name.ends_with(".tmp")) files.push_back(&file);
  // Manifests last: what they count on is there before them.
  std::stable_partition(files.begin(), files.end(),
                        [](const auto* file) { return !is_manifest(*file); });
  for (const inspect::FoundFile* file : files)
    BELAY_TRY(link_or_copy(node.directory + "/" + file->name, directory + "/" + file->name));
  return os::posix_files().sync_directory(directory);
}

bool same_place(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

}  // namespace

Result<SetPlace> SetPlace::prepare(const std::string& named, const std::string& base) {
  std::string set = named;  // what is made beside it must not lie in it
  while (set.size() > 1 && set.ends_with('/')) set.pop_back();
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(set, error));
  if (base.empty() || (there && same_place(set, base))) return SetPlace(set, set);
  if (there)
    return fail(Code::invalid_argument,
                "{} is there already and goes on from its own last version; leave out --base, or "
                "choose another set",
                in_quotes(set));
  SetPlace place(set, fmt::format("{}.belay-{}.tmp", set, os::process_id()));
  BELAY_TRY(within(fmt::format("--base {}", in_quotes(base)), place.start_from(base)));
  return place;
}

Result<void> SetPlace::start_from(const std::string& base) const {
  BELAY_ASSIGN(const auto locked, inspect::lock_store(os::posix_files(), {base}, "belay pack"));
  const auto& identities = locked.view.identities();
  if (identities.empty() || locked.view.mixed() || identities.front().application != kApplication)
    return fail(Code::invalid_argument, "is not a packed set");
  for (const inspect::NodeView& node : locked.view.nodes())
    BELAY_TRY(link_node(node, store_ + "/node-" + node.name));
  return {};
}

SetPlace::SetPlace(SetPlace&& other) noexcept
    : set_(std::move(other.set_)), store_(std::move(other.store_)) {
  other.store_ = other.set_;
}

SetPlace::~SetPlace() {
  std::error_code error;
  if (store_ != set_) fs::remove_all(store_, error);  // nobody is left to tell
}

Result<void> SetPlace::finish() {
  if (store_ == set_) return {};
  BELAY_TRY(os::posix_files().sync_directory(store_));
  BELAY_TRY(os::posix_files().rename(store_, set_));  // fails if the set is there by now
  store_ = set_;
  return os::posix_files().sync_directory(parent_of(set_));
}

}  // namespace belay::files
