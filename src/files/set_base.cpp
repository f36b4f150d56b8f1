// SPDX-License-Identifier: Apache-2.0
#include "files/set_base.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/contents.hpp"
#include "inspect/store_locks.hpp"
#include "os/errno.hpp"
#include "os/host.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

namespace belay::files {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
// `SET.belay-PID.tmp`: a set until it gets its name.
constexpr const char* kMark = ".belay-";
constexpr const char* kTemporary = ".tmp";

std::string parent_of(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

Result<void> copy(os::Files& files, const std::string& from, const std::string& to) {
  BELAY_ASSIGN(const auto source, files.open(from, /*direct=*/false));
  BELAY_ASSIGN(const auto target, files.create(to, /*direct=*/false));
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
Result<void> link_or_copy(os::Files& files, const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return {};
  const int error = errno;
  // Another file system, one without links, or too many of them.
  if (error == EXDEV || error == EPERM || error == EMLINK || error == EOPNOTSUPP)
    return copy(files, from, to);
  return Unexpected(os::error_of(error, "link", os::from_to(from, to)));
}

bool is_manifest(const inspect::FoundFile& file) {
  return file.parsed && file.parsed->kind == format::NameKind::manifest;
}

Result<void> link_node(os::Files& files, const inspect::NodeView& node,
                       const std::string& directory) {
  BELAY_TRY(files.make_directory(directory));
  std::vector<const inspect::FoundFile*> shared;
  for (const inspect::FoundFile& file : node.files)
    if (file.regular && !file.name.ends_with(kTemporary)) shared.push_back(&file);
  // Manifests last: what they count on is there before them.
  std::stable_partition(shared.begin(), shared.end(),
                        [](const auto* file) { return !is_manifest(*file); });
  for (const inspect::FoundFile* file : shared)
    BELAY_TRY(link_or_copy(files, node.directory + "/" + file->name, directory + "/" + file->name));
  return files.sync_directory(directory);
}

bool same_place(const std::string& a, const std::string& b) {
  std::error_code error;
  return fs::equivalent(a, b, error);
}

std::optional<StoreId> id_of(os::Files& files, const std::string& set) {
  const auto view = inspect::StoreView::open(files, {set});
  if (!view || view->mixed() || view->identities().empty()) return {};
  return view->identities().front().store;
}

/// The set was started from this base before: it has its versions already.
bool has_started_from(os::Files& files, const std::string& set, const std::string& base) {
  const auto id = id_of(files, set);
  return id && id == id_of(files, base);
}

/// Held for as long as somebody makes a set here. Invalid: somebody else does, or nobody can tell.
os::Descriptor lock_directory(const std::string& path) {
  os::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (directory.valid() && ::flock(directory.number(), LOCK_EX | LOCK_NB) != 0)
    return os::Descriptor(-1);
  return directory;
}

/// What processes that were killed have left beside the set.
void remove_leftovers(const std::string& set) {
  const std::string front = fs::path(set).filename().string() + kMark;
  std::error_code error;
  for (fs::directory_iterator entry(parent_of(set), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(front) || !name.ends_with(kTemporary)) continue;
    const os::Descriptor nobodys = lock_directory(entry->path().string());
    std::error_code ignored;  // it costs space only, and the next one tries again
    if (nobodys.valid()) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

Result<void> check_set(const std::string& set) {
  const auto refuse = [&](const char* why) {
    return fail(Code::not_found, "{} is not a packed set: {}; name the directory that pack made",
                in_quotes(set), why);
  };
  std::error_code error;
  const fs::file_status status = fs::status(set, error);
  if (!fs::exists(status)) return refuse("nothing is there");
  if (!fs::is_directory(status)) return refuse("it is not a directory");
  fs::directory_iterator entry(set, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error))
    if (entry->path().filename().string().starts_with("node-")) return {};
  if (error) return Unexpected(os::error_of(error.value(), "read", set));
  return refuse("no directory node-... is in it");
}

Error explain_failure(os::Files& files, const std::string& set, const Error& error) {
  if (error.code() != Code::invalid_argument) return error;
  const auto view = inspect::StoreView::open(files, {set});
  if (!view || view->identities().empty()) return error;
  const std::string& owner = view->identities().front().application;
  if (owner == kApplication) return error;
  return {Code::invalid_argument,
          fmt::format("{} is not a packed set, but a store of application {}; choose another set",
                      in_quotes(set), in_quotes(owner))};
}

Result<SetPlace> SetPlace::prepare(os::Files& files, const std::string& named,
                                   const std::string& base) {
  std::string set = named;  // what is made beside it must not lie in it
  while (set.size() > 1 && set.ends_with('/')) set.pop_back();
  if (set.empty()) return fail(Code::invalid_argument, "the name of the set is empty");
  std::error_code error;
  const bool there = fs::exists(fs::symlink_status(set, error));
  if (there && !fs::is_directory(set, error))
    return fail(Code::invalid_argument, "{} is not a directory, so that no set can be there",
                in_quotes(set));
  if (!base.empty() || !there) remove_leftovers(set);
  if (base.empty() || (there && (same_place(set, base) || has_started_from(files, set, base))))
    return SetPlace(files, set, set);
  if (there)
    return fail(Code::invalid_argument,
                "{} is there already and goes on from its own last version; leave out --base, or "
                "choose another set",
                in_quotes(set));
  SetPlace place(files, set, fmt::format("{}{}{}{}", set, kMark, os::process_id(), kTemporary));
  BELAY_TRY(within(fmt::format("--base {}", in_quotes(base)), place.start_from(base)));
  return place;
}

Result<void> SetPlace::start_from(const std::string& base) {
  BELAY_TRY(check_set(base));
  BELAY_ASSIGN(const auto locked, inspect::lock_store(*files_, {base}, "belay pack"));
  const auto& identities = locked.view.identities();
  if (identities.empty() || locked.view.mixed() || identities.front().application != kApplication)
    return fail(Code::invalid_argument, "is not a packed set");
  BELAY_TRY(files_->make_directory(store_));
  // Where directories cannot be locked, nobody else can lock this one either, and remove it.
  lock_.emplace(lock_directory(store_));
  for (const inspect::NodeView& node : locked.view.nodes())
    BELAY_TRY(link_node(*files_, node, store_ + "/node-" + node.name));
  return {};
}

SetPlace::SetPlace(SetPlace&& other) noexcept
    : files_(other.files_),
      set_(std::move(other.set_)),
      store_(std::move(other.store_)),
      lock_(std::move(other.lock_)) {
  other.store_ = other.set_;
}

SetPlace::~SetPlace() {
  std::error_code error;
  if (store_ != set_) fs::remove_all(store_, error);  // nobody is left to tell
}

Result<void> SetPlace::finish() {
  if (store_ == set_) return {};
  BELAY_TRY(files_->sync_directory(store_));
  BELAY_TRY(files_->rename(store_, set_));  // fails if the set is there by now
  store_ = set_;
  return files_->sync_directory(parent_of(set_));
}

}  // namespace belay::files
