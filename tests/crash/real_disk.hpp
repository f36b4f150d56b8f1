// SPDX-License-Identifier: Apache-2.0
// Real file systems that are small enough to fill: images mounted through a loop device, or kept in
// memory, in a mount namespace of this process, so that nothing is left of them when it ends.
#pragma once

#include "crash/temporary_directory.hpp"

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

namespace belay::crash {

struct DiskKind {
  const char* name;
  const char* maker;          ///< program that makes an image; empty: the kernel keeps it in memory
  std::uint64_t image_bytes;  ///< the least that the maker takes, or little more
  const char* options;        ///< of mount(8)
};

inline void PrintTo(const DiskKind& kind, std::ostream* out) { *out << kind.name; }

/// A file system, mounted while it lives.
class RealDisk {
 public:
  /// Null if it cannot be had here; `reason` says why.
  static std::unique_ptr<RealDisk> mount(const DiskKind& kind, std::string& reason);
  ~RealDisk();
  RealDisk(const RealDisk&) = delete;
  RealDisk& operator=(const RealDisk&) = delete;

  std::string path(const std::string& name) const { return mount_point_ + "/" + name; }
  std::uint64_t free_bytes() const;
  /// Fills the disk with a file of no use until about `bytes` are free, or gives space back.
  void leave_free(std::uint64_t bytes);
  void free_all();
  bool remount(const std::string& options);

 private:
  RealDisk() = default;
  std::string ballast() const { return path("ballast"); }

  TemporaryDirectory directory_;
  std::string mount_point_;
  bool mounted_ = false;
};

}  // namespace belay::crash
