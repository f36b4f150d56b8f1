// SPDX-License-Identifier: Apache-2.0
// An open file of the kernel's. Made by PosixFiles.
#pragma once

#include "os/descriptor.hpp"
#include "os/files.hpp"

#include <atomic>
#include <string>

namespace belay::os {

class PosixFile final : public File {
 public:
  /// `direct`: tries to bypass the page cache, and goes back to it where that is refused, now or
  /// by a later read or write.
  PosixFile(Descriptor descriptor, std::string path, bool direct);

  Result<void> write(std::uint64_t offset, std::span<const std::byte> bytes) override;
  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override;
  Result<void> sync() override;
  Result<void> reserve(std::uint64_t bytes) override;
  Result<void> truncate(std::uint64_t bytes) override;
  Result<std::uint64_t> size() override;
  Result<void> close() override;

 private:
  bool set_direct(bool direct);
  bool may_retry_buffered(int error, bool was_direct);
  bool in_memory() const;
  Unexpected failed(const char* operation) const;

  Descriptor descriptor_;
  std::string path_;
  std::atomic<bool> direct_ = false;
};

}  // namespace belay::os
