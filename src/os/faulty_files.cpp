// SPDX-License-Identifier: Apache-2.0
#include "os/faulty_files.hpp"

#include "base/try.hpp"
#include "os/errno.hpp"

#include <utility>

namespace belay::os {
namespace {

using Kind = Operation::Kind;

/// Performs `call` as far as `action` lets it.
template <class Call>
auto perform(const Action& action, const char* operation, const std::string& path, const Call& call)
    -> decltype(call()) {
  if (action.error == 0) return call();
  if (action.after) BELAY_TRY(call());
  return Unexpected(error_of(action.error, operation, path));
}

}  // namespace

bool changes_disk(Kind kind) {
  switch (kind) {
    case Kind::create:
    case Kind::write:
    case Kind::sync:
    case Kind::reserve:
    case Kind::truncate:
    case Kind::touch:
    case Kind::rename:
    case Kind::rename_new:
    case Kind::remove:
    case Kind::sync_directory:
    case Kind::make_directory:
    case Kind::lock:
      return true;
    case Kind::open:
    case Kind::read:
    case Kind::size:
    case Kind::close:
    case Kind::list:
    case Kind::space:
      return false;
  }
  return false;
}

class FaultyFile final : public File {
 public:
  FaultyFile(FaultyFiles& files, std::unique_ptr<File> under, std::string path, bool direct)
      : files_(files), under_(std::move(under)), path_(std::move(path)), direct_(direct) {}

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override {
    const Action action = files_.ask(Kind::write, path_, bytes.size());
    if (action.error != 0 && action.torn) {
      std::size_t half = bytes.size() / 2;
      if (direct_) half -= half % kDirectAlignment;
      BELAY_TRY(under_->write(offset, bytes.first(half)));
      return Unexpected(error_of(action.error, "write", path_));
    }
    return perform(action, "write", path_, [&] { return under_->write(offset, bytes); });
  }

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override {
    return perform(files_.ask(Kind::read, path_, bytes.size()), "read", path_,
                   [&] { return under_->read(offset, bytes); });
  }

  Result<void> sync() override {
    return perform(files_.ask(Kind::sync, path_), "sync", path_, [&] { return under_->sync(); });
  }

  Result<void> reserve(std::uint64_t bytes) override {
    return perform(files_.ask(Kind::reserve, path_, bytes), "reserve", path_,
                   [&] { return under_->reserve(bytes); });
  }

  Result<void> truncate(std::uint64_t bytes) override {
    return perform(files_.ask(Kind::truncate, path_, bytes), "truncate", path_,
                   [&] { return under_->truncate(bytes); });
  }

  Result<std::uint64_t> size() override {
    return perform(files_.ask(Kind::size, path_), "size", path_, [&] { return under_->size(); });
  }

  Result<void> close() override {
    Action action = files_.ask(Kind::close, path_);
    action.after = true;
    return perform(action, "close", path_, [&] { return under_->close(); });
  }

 private:
  FaultyFiles& files_;
  std::unique_ptr<File> under_;
  std::string path_;
  bool direct_;
};

Action FaultyFiles::ask(Kind kind, const std::string& path, std::uint64_t bytes) {
  return decide_({.kind = kind, .path = path, .bytes = bytes, .number = ++operations_});
}

Result<std::unique_ptr<File>> FaultyFiles::create(const std::string& path, bool direct) {
  BELAY_ASSIGN(auto file, perform(ask(Kind::create, path), "create", path,
                                  [&] { return under_.create(path, direct); }));
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*this, std::move(file), path, direct));
}

Result<std::unique_ptr<File>> FaultyFiles::create_from(const std::string& retired,
                                                       const std::string& path, bool direct) {
  BELAY_ASSIGN(auto file, perform(ask(Kind::create, path), "create", path,
                                  [&] { return under_.create_from(retired, path, direct); }));
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*this, std::move(file), path, direct));
}

Result<std::unique_ptr<File>> FaultyFiles::open(const std::string& path, bool direct) {
  BELAY_ASSIGN(auto file, perform(ask(Kind::open, path), "open", path,
                                  [&] { return under_.open(path, direct); }));
  return std::unique_ptr<File>(std::make_unique<FaultyFile>(*this, std::move(file), path, direct));
}

Result<std::uint64_t> FaultyFiles::touch(const std::string& path) {
  return perform(ask(Kind::touch, path), "touch", path, [&] { return under_.touch(path); });
}

Result<void> FaultyFiles::rename(const std::string& from, const std::string& to) {
  return perform(ask(Kind::rename, to), "rename", from_to(from, to),
                 [&] { return under_.rename(from, to); });
}

Result<void> FaultyFiles::rename_new(const std::string& from, const std::string& to) {
  return perform(ask(Kind::rename_new, to), "rename", from_to(from, to),
                 [&] { return under_.rename_new(from, to); });
}

Result<void> FaultyFiles::remove(const std::string& path) {
  return perform(ask(Kind::remove, path), "remove", path, [&] { return under_.remove(path); });
}

Result<void> FaultyFiles::sync_directory(const std::string& path) {
  return perform(ask(Kind::sync_directory, path), "sync directory", path,
                 [&] { return under_.sync_directory(path); });
}

Result<void> FaultyFiles::make_directory(const std::string& path) {
  return perform(ask(Kind::make_directory, path), "make directory", path,
                 [&] { return under_.make_directory(path); });
}

Result<std::vector<DirectoryEntry>> FaultyFiles::list(const std::string& path) {
  return perform(ask(Kind::list, path), "list", path, [&] { return under_.list(path); });
}

Result<Space> FaultyFiles::space(const std::string& path) {
  return perform(ask(Kind::space, path), "space", path, [&] { return under_.space(path); });
}

Result<std::unique_ptr<Lock>> FaultyFiles::lock(const std::string& path, const std::string& owner) {
  return perform(ask(Kind::lock, path), "lock", path, [&] { return under_.lock(path, owner); });
}

}  // namespace belay::os
