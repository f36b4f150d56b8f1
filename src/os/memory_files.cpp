// SPDX-License-Identifier: Apache-2.0
#include "os/memory_files.hpp"

#include "base/try.hpp"
#include "os/errno.hpp"
#include "os/memory_disk.hpp"

#include <algorithm>
#include <cerrno>
#include <functional>
#include <mutex>
#include <string_view>
#include <utility>

namespace belay::os {

using memory::Directory;
using memory::DirectoryPtr;
using memory::Inode;
using memory::InodePtr;
using memory::Place;

namespace {

constexpr std::size_t kLongestName = 255;

Unexpected failed(int error, const char* operation, const std::string& path) {
  return Unexpected(error_of(error, operation, path));
}

std::vector<std::string> components_of(const std::string& path) {
  std::vector<std::string> components;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string component = path.substr(begin, end - begin);
    if (component == "..") {
      if (!components.empty()) components.pop_back();
    } else if (!component.empty() && component != ".") {
      components.push_back(component);
    }
    begin = end + 1;
  }
  return components;
}

/// Calls `visit(path, inode)` for every file that has a name now, sorted by directory.
void for_each_file(const Directory& directory, const std::string& path,
                   const std::function<void(const std::string&, const InodePtr&)>& visit) {
  for (const auto& [name, inode] : directory.files) visit(path + "/" + name, inode);
  for (const auto& [name, below] : directory.directories)
    for_each_file(*below, path + "/" + name, visit);
}

void forget_unsynced_names(Directory& directory) {
  directory.files = directory.durable_files;
  for (const auto& [name, below] : directory.directories) forget_unsynced_names(*below);
}

bool aligned(std::uint64_t offset, std::span<const std::byte> bytes) {
  return (offset | bytes.size() | reinterpret_cast<std::uintptr_t>(bytes.data())) %
             kDirectAlignment ==
         0;
}

}  // namespace

/// Everything but the mutex is guarded by it. A life ends with each power cut.
class MemoryFiles::Disk {
 public:
  std::mutex mutex;
  DirectoryPtr root = std::make_shared<Directory>();
  memory::NameJournal names;
  std::uint64_t life = 1;
  std::uint64_t capacity_bytes = std::uint64_t{1} << 40;
  bool in_memory = false;
  std::uint64_t used_bytes = 0;

  std::uint64_t free_bytes() const {
    return capacity_bytes > used_bytes ? capacity_bytes - used_bytes : 0;
  }

  /// Runs a change of one file's size or reservation, and keeps the books.
  template <class Change>
  void account(Inode& inode, const Change& change) {
    used_bytes -= allocated(inode);
    change();
    used_bytes += allocated(inode);
  }

  Result<void> write(Inode& inode, std::uint64_t offset, std::span<const std::byte> bytes,
                     const std::string& path) {
    const std::uint64_t limit = allocated(inode) + free_bytes();
    const std::uint64_t fits = limit > offset ? limit - offset : 0;
    const auto part =
        bytes.first(static_cast<std::size_t>(std::min<std::uint64_t>(fits, bytes.size())));
    account(inode, [&] { inode.content.write(offset, part); });
    if (part.size() < bytes.size()) return failed(ENOSPC, "write", path);
    return {};
  }

  void unlink(Inode& inode) {
    account(inode, [&] { inode.linked = false; });
  }

  /// 0, or errno.
  int find_directory(const std::vector<std::string>& components, DirectoryPtr& found) const {
    found = root;
    for (const std::string& name : components) {
      if (name.size() > kLongestName) return ENAMETOOLONG;
      const auto below = found->directories.find(name);
      if (below == found->directories.end()) return found->files.count(name) ? ENOTDIR : ENOENT;
      found = below->second;
    }
    return 0;
  }

  Result<DirectoryPtr> directory(const char* operation, const std::string& path) const {
    DirectoryPtr found;
    const int error = path.empty() ? ENOENT : find_directory(components_of(path), found);
    if (error != 0) return failed(error, operation, path);
    return found;
  }

  /// Where the file of that path is, or would be.
  Result<Place> place(const char* operation, const std::string& path) const {
    std::vector<std::string> components = components_of(path);
    if (components.empty()) return failed(path.empty() ? ENOENT : EISDIR, operation, path);
    Place place{.directory = nullptr, .name = std::move(components.back())};
    components.pop_back();
    if (const int error = find_directory(components, place.directory); error != 0)
      return failed(error, operation, path);
    if (place.name.size() > kLongestName) return failed(ENAMETOOLONG, operation, path);
    return place;
  }

  /// An existing regular file.
  Result<InodePtr> file(const char* operation, const std::string& path) const {
    if (!path.empty() && components_of(path).empty())
      return Unexpected(not_regular(operation, path));
    BELAY_ASSIGN(const Place where, place(operation, path));
    if (where.directory->directories.count(where.name) != 0)
      return Unexpected(not_regular(operation, path));
    const auto found = where.directory->files.find(where.name);
    if (found == where.directory->files.end()) return failed(ENOENT, operation, path);
    return found->second;
  }

  InodePtr create(const Place& where) {
    auto inode = std::make_shared<Inode>();
    where.directory->files[where.name] = inode;
    names.created(where, inode);
    return inode;
  }

 private:
  // What has no name is there until it is closed.
  static std::uint64_t allocated(const Inode& inode) {
    if (!inode.linked && inode.handles == 0) return 0;
    return std::max(inode.content.size(), inode.reserved_bytes);
  }
};

class MemoryFiles::OpenFile final : public File {
 public:
  /// REQUIRES: the disk's mutex is held.
  OpenFile(std::shared_ptr<Disk> disk, InodePtr inode, std::string path, bool writable, bool direct)
      : disk_(std::move(disk)),
        inode_(std::move(inode)),
        path_(std::move(path)),
        writable_(writable),
        direct_(direct),
        life_(disk_->life) {
    ++inode_->handles;
  }

  ~OpenFile() override {
    const std::lock_guard lock(disk_->mutex);
    release();
  }

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const std::lock_guard lock(disk_->mutex);
    BELAY_TRY(check("write", true));
    if (direct_ && !aligned(offset, bytes)) return failed(EINVAL, "write", path_);
    return disk_->write(*inode_, offset, bytes, path_);
  }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override {
    const std::lock_guard lock(disk_->mutex);
    BELAY_TRY(check("read", false));
    const auto& content = inode_->content.bytes();
    if (offset >= content.size()) return std::size_t{0};
    const std::size_t count = std::min<std::size_t>(bytes.size(), content.size() - offset);
    std::copy_n(content.begin() + static_cast<std::ptrdiff_t>(offset), count, bytes.begin());
    return count;
  }

  Result<void> sync() override {
    const std::lock_guard lock(disk_->mutex);
    BELAY_TRY(check("sync", false));
    inode_->content.sync();
    return {};
  }

  Result<void> reserve(std::uint64_t bytes) override {
    const std::lock_guard lock(disk_->mutex);
    BELAY_TRY(check("reserve", true));
    const std::uint64_t held = std::max(inode_->content.size(), inode_->reserved_bytes);
    if (bytes <= held) return {};
    if (bytes - held > disk_->free_bytes()) return failed(ENOSPC, "reserve", path_);
    disk_->account(*inode_, [&] { inode_->reserved_bytes = bytes; });
    return {};
  }

  Result<void> truncate(std::uint64_t bytes) override {
    const std::lock_guard lock(disk_->mutex);
    BELAY_TRY(check("truncate", true));
    const std::uint64_t size = inode_->content.size();
    if (bytes > size && bytes - size > disk_->free_bytes())
      return failed(ENOSPC, "truncate", path_);
    disk_->account(*inode_, [&] {
      inode_->content.truncate(bytes);
      inode_->reserved_bytes = 0;
    });
    return {};
  }

  Result<std::uint64_t> size() override {
    const std::lock_guard lock(disk_->mutex);
    BELAY_TRY(check("size", false));
    return inode_->content.size();
  }

  Result<void> close() override {
    const std::lock_guard lock(disk_->mutex);
    const Result<void> checked = check("close", false);
    release();
    return checked;
  }

 private:
  Result<void> check(const char* operation, bool writes) const {
    if (!open_ || (writes && !writable_)) return failed(EBADF, operation, path_);
    if (life_ != disk_->life) return failed(EIO, operation, path_);
    return {};
  }

  void release() {
    if (open_ && life_ == disk_->life) disk_->account(*inode_, [&] { --inode_->handles; });
    open_ = false;
  }

  std::shared_ptr<Disk> disk_;
  InodePtr inode_;
  std::string path_;
  bool writable_;
  bool direct_;
  std::uint64_t life_;
  bool open_ = true;
};

class MemoryFiles::HeldLock final : public Lock {
 public:
  /// REQUIRES: the disk's mutex is held.
  HeldLock(std::shared_ptr<Disk> disk, InodePtr inode)
      : disk_(std::move(disk)), inode_(std::move(inode)), life_(disk_->life) {
    inode_->locked_in = life_;
  }
  ~HeldLock() override {
    const std::lock_guard lock(disk_->mutex);
    if (inode_->locked_in == life_) inode_->locked_in = 0;
  }

 private:
  std::shared_ptr<Disk> disk_;
  InodePtr inode_;
  std::uint64_t life_;
};

MemoryFiles::MemoryFiles() : disk_(std::make_shared<Disk>()) {}
MemoryFiles::~MemoryFiles() = default;

void MemoryFiles::power_cut(Random& random) {
  const std::lock_guard lock(disk_->mutex);
  disk_->names.power_cut(random);
  forget_unsynced_names(*disk_->root);
  ++disk_->life;
  disk_->used_bytes = 0;
  for_each_file(*disk_->root, "", [&](const std::string&, const InodePtr& inode) {
    inode->content.power_cut(random);
    inode->reserved_bytes = 0;
    inode->handles = 0;
    inode->linked = true;
    disk_->used_bytes += inode->content.size();
  });
}

void MemoryFiles::set_capacity(std::uint64_t bytes) {
  const std::lock_guard lock(disk_->mutex);
  disk_->capacity_bytes = bytes;
}

void MemoryFiles::set_in_memory(bool in_memory) {
  const std::lock_guard lock(disk_->mutex);
  disk_->in_memory = in_memory;
}

std::vector<std::string> MemoryFiles::paths() const {
  const std::lock_guard lock(disk_->mutex);
  std::vector<std::string> paths;
  for_each_file(*disk_->root, "",
                [&](const std::string& path, const InodePtr&) { paths.push_back(path); });
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::uint64_t MemoryFiles::total_bytes() const {
  const std::lock_guard lock(disk_->mutex);
  std::uint64_t total = 0;
  for_each_file(*disk_->root, "",
                [&](const std::string&, const InodePtr& inode) { total += inode->content.size(); });
  return total;
}

std::unique_ptr<MemoryFiles> MemoryFiles::durable() const {
  const auto copy = [](const auto& self, const Directory& from) -> DirectoryPtr {
    auto to = std::make_shared<Directory>();
    for (const auto& [name, below] : from.directories) to->directories[name] = self(self, *below);
    for (const auto& [name, inode] : from.durable_files) {
      auto same = std::make_shared<Inode>();
      same->content.write(0, inode->content.durable_bytes());
      same->content.sync();
      to->files[name] = to->durable_files[name] = std::move(same);
    }
    return to;
  };
  auto left = std::make_unique<MemoryFiles>();
  const std::lock_guard lock(disk_->mutex);
  left->disk_->root = copy(copy, *disk_->root);
  return left;
}

Result<std::vector<std::byte>> MemoryFiles::peek(const std::string& path) const {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const InodePtr inode, disk_->file("peek", path));
  return inode->content.bytes();
}

Result<void> MemoryFiles::flip(const std::string& path, std::uint64_t bit) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const InodePtr inode, disk_->file("flip", path));
  if (bit / 8 >= inode->content.size()) return failed(EINVAL, "flip", path);
  inode->content.flip(bit);
  return {};
}

Result<void> MemoryFiles::cut(const std::string& path, std::uint64_t bytes) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const InodePtr inode, disk_->file("cut", path));
  if (bytes > inode->content.size()) return failed(EINVAL, "cut", path);
  disk_->account(*inode, [&] {
    inode->content.cut(bytes);
    inode->reserved_bytes = 0;
  });
  return {};
}

Result<void> MemoryFiles::erase(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const Place where, disk_->place("erase", path));
  const auto erase_inode = [&](const std::string&, const InodePtr& inode) {
    disk_->unlink(*inode);
    disk_->names.forget(*disk_->root, inode);
  };
  auto& directories = where.directory->directories;
  if (const auto found = directories.find(where.name); found != directories.end()) {
    for_each_file(*found->second, path, erase_inode);
    directories.erase(found);
    return {};
  }
  auto& files = where.directory->files;
  const auto found = files.find(where.name);
  if (found == files.end()) return failed(ENOENT, "erase", path);
  erase_inode(path, found->second);
  files.erase(found);
  where.directory->durable_files.erase(where.name);
  return {};
}

Result<std::unique_ptr<File>> MemoryFiles::create(const std::string& path, bool direct) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const Place where, disk_->place("create", path));
  const Directory& directory = *where.directory;
  if (directory.files.count(where.name) != 0 || directory.directories.count(where.name) != 0)
    return failed(EEXIST, "create", path);
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(disk_, disk_->create(where), path, true, direct));
}

Result<std::unique_ptr<File>> MemoryFiles::create_from(const std::string& retired,
                                                       const std::string& path, bool direct) {
  BELAY_TRY(move(retired, path, false));
  std::unique_ptr<OpenFile> file;
  {
    const std::lock_guard lock(disk_->mutex);
    BELAY_ASSIGN(InodePtr inode, disk_->file("reuse", path));
    if (inode->handles == 0)
      file = std::make_unique<OpenFile>(disk_, std::move(inode), path, true, direct);
  }
  if (!file) {
    BELAY_TRY(remove(path));
    return fail(Code::busy, "reuse {}: somebody reads it", retired);
  }
  BELAY_ASSIGN(const std::uint64_t bytes, file->size());
  BELAY_TRY(file->truncate(bytes - std::min<std::uint64_t>(bytes, kDirectAlignment)));
  return std::unique_ptr<File>(std::move(file));
}

Result<std::unique_ptr<File>> MemoryFiles::open(const std::string& path, bool direct) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(InodePtr inode, disk_->file("open", path));
  return std::unique_ptr<File>(
      std::make_unique<OpenFile>(disk_, std::move(inode), path, false, direct));
}

Result<std::uint64_t> MemoryFiles::touch(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const InodePtr inode, disk_->file("touch", path));
  return inode->content.size();
}

Result<void> MemoryFiles::rename(const std::string& from, const std::string& to) {
  return move(from, to, true);
}

Result<void> MemoryFiles::rename_new(const std::string& from, const std::string& to) {
  return move(from, to, false);
}

Result<void> MemoryFiles::move(const std::string& from, const std::string& to, bool replace) {
  const std::string both = from_to(from, to);
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const Place source, disk_->place("rename", from));
  BELAY_ASSIGN(const Place target, disk_->place("rename", to));
  auto& files = source.directory->files;
  const auto found = files.find(source.name);
  if (found == files.end())
    return failed(source.directory->directories.count(source.name) ? EISDIR : ENOENT, "rename",
                  both);
  const InodePtr inode = found->second;
  const bool directory_there = target.directory->directories.count(target.name) != 0;
  const auto replaced = target.directory->files.find(target.name);
  const bool file_there = replaced != target.directory->files.end();
  if (!replace && (directory_there || file_there)) return failed(EEXIST, "rename", both);
  if (directory_there) return failed(EISDIR, "rename", both);
  if (file_there && replaced->second == inode) return {};
  if (file_there) disk_->unlink(*replaced->second);
  files.erase(found);
  target.directory->files[target.name] = inode;
  disk_->names.renamed(source, target, inode, replace);
  return {};
}

Result<void> MemoryFiles::remove(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const Place where, disk_->place("remove", path));
  if (where.directory->directories.count(where.name) != 0) return failed(EISDIR, "remove", path);
  const auto found = where.directory->files.find(where.name);
  if (found == where.directory->files.end()) return failed(ENOENT, "remove", path);
  disk_->unlink(*found->second);
  disk_->names.removed(where, found->second);
  where.directory->files.erase(found);
  return {};
}

Result<void> MemoryFiles::sync_directory(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const DirectoryPtr directory, disk_->directory("sync directory", path));
  disk_->names.sync(directory.get());
  return {};
}

Result<void> MemoryFiles::make_directory(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  if (path.empty()) return failed(ENOENT, "make directory", path);
  DirectoryPtr directory = disk_->root;
  for (const std::string& name : components_of(path)) {
    if (name.size() > kLongestName) return failed(ENAMETOOLONG, "make directory", path);
    if (directory->files.count(name) != 0) return Unexpected(not_directory("make directory", path));
    DirectoryPtr& below = directory->directories[name];
    if (!below) {
      disk_->names.sync(directory.get());
      below = std::make_shared<Directory>();
    }
    directory = below;
  }
  return {};
}

Result<std::vector<DirectoryEntry>> MemoryFiles::list(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  BELAY_ASSIGN(const DirectoryPtr directory, disk_->directory("list", path));
  std::vector<DirectoryEntry> entries;
  for (const auto& [name, inode] : directory->files) entries.push_back({name, EntryKind::file});
  for (const auto& [name, below] : directory->directories)
    entries.push_back({name, EntryKind::directory});
  std::sort(entries.begin(), entries.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return entries;
}

Result<Space> MemoryFiles::space(const std::string& path) {
  const std::lock_guard lock(disk_->mutex);
  if (const auto file = disk_->file("space", path); !file)
    BELAY_TRY(disk_->directory("space", path));
  return Space{.total_bytes = disk_->capacity_bytes,
               .free_bytes = disk_->free_bytes(),
               .in_memory = disk_->in_memory};
}

Result<std::unique_ptr<Lock>> MemoryFiles::lock(const std::string& path, const std::string& owner) {
  const std::lock_guard guard(disk_->mutex);
  BELAY_ASSIGN(const Place where, disk_->place("lock", path));
  if (where.directory->directories.count(where.name) != 0)
    return Unexpected(not_regular("lock", path));
  const auto found = where.directory->files.find(where.name);
  const InodePtr inode =
      found != where.directory->files.end() ? found->second : disk_->create(where);
  if (inode->locked_in == disk_->life) {
    const auto& written = inode->content.bytes();
    return Unexpected(lock_held({reinterpret_cast<const char*>(written.data()), written.size()}));
  }
  const auto wrote = disk_->write(*inode, 0, std::as_bytes(std::span(owner)), path);
  // As on a real disk: one that is full must not keep anyone from the lock.
  if (!wrote && wrote.error().code() != Code::no_space) return Unexpected(wrote.error());
  if (wrote) disk_->account(*inode, [&] { inode->content.truncate(owner.size()); });
  return std::unique_ptr<Lock>(std::make_unique<HeldLock>(disk_, inode));
}

}  // namespace belay::os
