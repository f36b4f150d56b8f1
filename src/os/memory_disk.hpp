// SPDX-License-Identifier: Apache-2.0
// What MemoryFiles keeps: contents and names, each as they are and as they are durable.
// Not thread-safe: MemoryFiles guards it.
#pragma once

#include "os/clock.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace belay::os::memory {

/// One file's bytes. They grow by writes and truncations that sync() makes durable.
class Content {
 public:
  const std::vector<std::byte>& bytes() const { return now_; }
  const std::vector<std::byte>& durable_bytes() const { return durable_; }
  std::uint64_t size() const { return now_.size(); }

  void write(std::uint64_t offset, std::span<const std::byte> bytes);
  void truncate(std::uint64_t bytes);
  void sync();
  void power_cut(Random& random);

  void flip(std::uint64_t bit);   ///< everywhere it is held. REQUIRES: bit < 8 * size()
  void cut(std::uint64_t bytes);  ///< durably

 private:
  struct Change {
    bool truncation = false;
    std::uint64_t offset = 0;  ///< of a truncation: the new size
    std::vector<std::byte> bytes;
    std::uint64_t end() const { return offset + bytes.size(); }
  };
  static void apply(const Change& change, std::size_t bytes, std::vector<std::byte>& content);

  std::vector<std::byte> now_;
  std::vector<std::byte> durable_;
  std::vector<Change> pending_;
};

struct Inode {
  Content content;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t locked_in = 0;  ///< the life of the disk in which it was locked; 0: it is not
  unsigned handles = 0;
  bool linked = true;  ///< has a name now
};
using InodePtr = std::shared_ptr<Inode>;

struct Directory {
  std::map<std::string, std::shared_ptr<Directory>> directories;  ///< durable as soon as made
  std::map<std::string, InodePtr> files;
  std::map<std::string, InodePtr> durable_files;
};
using DirectoryPtr = std::shared_ptr<Directory>;

/// A name in a directory.
struct Place {
  DirectoryPtr directory;
  std::string name;
};

/// Changes of names that are not durable yet, in order.
class NameJournal {
 public:
  void created(const Place& place, InodePtr inode);
  void renamed(const Place& from, const Place& to, InodePtr inode, bool replace);
  void removed(const Place& place, InodePtr inode);

  void sync(const Directory* directory);
  /// Applies a random part of the changes, then forgets them all.
  void power_cut(Random& random);
  /// Makes sure that neither a durable name nor a pending change brings `inode` back.
  void forget(Directory& root, const InodePtr& inode);

 private:
  /// One step from a place to another; without the former it creates, without the latter it
  /// removes.
  struct Change {
    Place from;
    Place to;
    InodePtr inode;
    bool replace = false;
    bool touches(const Directory* directory) const {
      return from.directory.get() == directory || to.directory.get() == directory;
    }
  };
  static void apply(const Change& change);

  std::vector<Change> pending_;
};

}  // namespace belay::os::memory
