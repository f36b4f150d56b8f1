// SPDX-License-Identifier: Apache-2.0
// Every file operation of Belay. PosixFiles is the kernel's; FaultyFiles decorates any Files with
// faults; MemoryFiles is a file system with power cuts, for the simulator.
//
// All implementations pass tests/conformance/files_conformance.
// Errors name the operation, the path and the reason; errno is mapped to codes in errno.hpp only.
#pragma once

#include <belay/result.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace belay::os {

inline constexpr std::size_t kDirectAlignment = 4096;  ///< of offsets, lengths and addresses

/// An open file. Closing is explicit where its error matters; the destructor closes silently.
/// One thread at a time, but for read(), which several may call.
class File {
 public:
  virtual ~File() = default;
  /// Writes all of `bytes` at `offset`, or fails. For files created with `direct`, offset, length
  /// and address are multiples of kDirectAlignment.
  virtual Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) = 0;
  /// Reads as many bytes as there are, up to bytes.size(). Fewer only at the end of the file.
  virtual Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) = 0;
  /// Makes the contents and size durable. After a failure the file is lost: what was written may
  /// have been dropped, and calling sync() again proves nothing.
  virtual Result<void> sync() = 0;
  /// Reserves space up to `bytes` where the file system can; the size does not change. Only
  /// no_space and io are errors; a file system that cannot reserve is not.
  virtual Result<void> reserve(std::uint64_t bytes) = 0;
  virtual Result<void> truncate(std::uint64_t bytes) = 0;
  virtual Result<std::uint64_t> size() = 0;
  virtual Result<void> close() = 0;
  /// True: what it gives is decoded first. Reads may begin and end anywhere, and should touch
  /// nothing that is not wanted.
  virtual bool decodes() const { return false; }
};

enum class EntryKind { file, directory, other };  ///< symbolic links are `other`: never followed

struct DirectoryEntry {
  std::string name;
  EntryKind kind = EntryKind::file;
};

/// Held until destroyed, or until the process ends however it ends.
class Lock {
 public:
  virtual ~Lock() = default;
};

struct Space {
  std::uint64_t total_bytes = 0;
  std::uint64_t free_bytes = 0;    ///< for this user
  bool has_room_for_names = true;  ///< false: no inode is free, however many bytes are
  bool in_memory = false;          ///< a write is a copy: nothing to wait for
};

/// Thread-safe. Paths are used as given. Files are created 0600, directories 0700.
class Files {
 public:
  virtual ~Files() = default;

  /// A new file for writing; busy if the name is taken. `direct`: bypass the page cache where the
  /// file system can (callers align anyway).
  virtual Result<std::unique_ptr<File>> create(const std::string& path, bool direct) = 0;
  /// create(), but with the memory of `retired`, a file that nobody needs: it loses its name and
  /// its last page, and all else stays until it is written or truncated. Durable is what is synced.
  /// busy if that is open somewhere, so that readers keep what they have, or `path` is taken. After
  /// an error there is nothing new, and `retired` may or may not be there.
  virtual Result<std::unique_ptr<File>> create_from(const std::string& retired,
                                                    const std::string& path, bool direct) = 0;
  /// An existing regular file for reading; corruption if it is anything but a regular file.
  virtual Result<std::unique_ptr<File>> open(const std::string& path, bool direct) = 0;
  /// Size of a regular file, and its time set to now (so that cleaners of scratch space see it
  /// used). not_found if there is none, corruption if it is anything else.
  virtual Result<std::uint64_t> touch(const std::string& path) = 0;
  /// Atomically gives `from` the name `to`, replacing what was there.
  virtual Result<void> rename(const std::string& from, const std::string& to) = 0;
  /// Atomically gives `from` the name `to`; busy if that name is taken. Afterwards `from` is gone.
  virtual Result<void> rename_new(const std::string& from, const std::string& to) = 0;
  /// not_found if there is none.
  virtual Result<void> remove(const std::string& path) = 0;
  /// Makes creations, renames and removals inside `path` durable.
  virtual Result<void> sync_directory(const std::string& path) = 0;
  /// Creates the directory and its parents, durably; not an error if it is there. Links among the
  /// parents are followed; one in the place of the directory itself is corruption.
  virtual Result<void> make_directory(const std::string& path) = 0;
  /// Sorted by name, without "." and "..". not_found if there is no such directory.
  virtual Result<std::vector<DirectoryEntry>> list(const std::string& path) = 0;
  virtual Result<Space> space(const std::string& path) = 0;

  /// Takes the lock file at `path` (created if missing) without waiting, and writes `owner` into
  /// it. If another process holds it: busy, and the message is what that owner wrote. io if the
  /// directory belongs to another user: whoever locks wants to write, and what is written is 0600.
  virtual Result<std::unique_ptr<Lock>> lock(const std::string& path, const std::string& owner) = 0;
};

/// The kernel's files. Stateless, so one serves all.
Files& posix_files();

}  // namespace belay::os
