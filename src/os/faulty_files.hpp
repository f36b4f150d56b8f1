// SPDX-License-Identifier: Apache-2.0
// Files that fail when a test says so: an error, a torn write, a kill, at any operation.
#pragma once

#include "os/files.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace belay::os {

struct Operation {
  enum class Kind {
    create,
    open,
    write,
    read,
    sync,
    reserve,
    truncate,
    size,
    close,
    touch,
    rename,
    rename_new,
    remove,
    sync_directory,
    make_directory,
    list,
    space,
    lock
  };
  Kind kind = Kind::create;
  std::string path;          ///< of a rename: the new name
  std::uint64_t bytes = 0;   ///< to write, read, reserve or truncate to
  std::uint64_t number = 0;  ///< 1, 2, 3 ... over this FaultyFiles
};

/// May this kind of operation leave the disk other than it was, contents or durability?
bool changes_disk(Operation::Kind kind);

/// What becomes of an operation. By default it goes on as if nothing had been asked.
struct Action {
  int error = 0;       ///< errno that it fails with; 0: none
  bool torn = false;   ///< a write: half of it reaches the file first (whole pages if direct)
  bool after = false;  ///< the operation takes effect, and is reported as failed all the same
};

/// Asks `decide` before each operation, by the thread that performs it and without a lock held, so
/// that it may also end the process, or block. Closing by a destructor is not an operation. A
/// failed close() closes. `under` must outlive this object, and this object the files that it
/// opened.
class FaultyFiles final : public Files {
 public:
  using Decide = std::function<Action(const Operation&)>;

  FaultyFiles(Files& under, Decide decide) : under_(under), decide_(std::move(decide)) {}

  std::uint64_t operations() const { return operations_; }  ///< asked about so far

  Result<std::unique_ptr<File>> create(const std::string& path, bool direct) override;
  Result<std::unique_ptr<File>> create_from(const std::string& retired, const std::string& path,
                                            bool direct) override;
  Result<std::unique_ptr<File>> open(const std::string& path, bool direct) override;
  Result<std::uint64_t> touch(const std::string& path) override;
  Result<void> rename(const std::string& from, const std::string& to) override;
  Result<void> rename_new(const std::string& from, const std::string& to) override;
  Result<void> remove(const std::string& path) override;
  Result<void> sync_directory(const std::string& path) override;
  Result<void> make_directory(const std::string& path) override;
  Result<std::vector<DirectoryEntry>> list(const std::string& path) override;
  Result<Space> space(const std::string& path) override;
  Result<std::unique_ptr<Lock>> lock(const std::string& path, const std::string& owner) override;

 private:
  friend class FaultyFile;
  Action ask(Operation::Kind kind, const std::string& path, std::uint64_t bytes = 0);

  Files& under_;
  const Decide decide_;
  std::atomic<std::uint64_t> operations_{0};
};

}  // namespace belay::os
