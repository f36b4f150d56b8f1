// SPDX-License-Identifier: Apache-2.0
// Writes a file front to back in large aligned pieces.
#pragma once

#include <belay/result.hpp>

#include "base/bytes.hpp"
#include "os/files.hpp"
#include "store/tier.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace belay::store {

/// A file of a tier that is being written. One thread at a time.
class FileWriter final : public ByteSink {
 public:
  static Result<FileWriter> create(Tier& tier, std::string name);
  /// By Tier::create_large().
  static Result<FileWriter> create_large(Tier& tier, std::string name);

  /// Lends aligned memory of whole pages for append(), until complete() or finish().
  void lend(std::span<std::byte> buffer) { buffer_ = buffer; }
  bool is_lent() const { return !buffer_.empty(); }
  /// Goes through the lent buffer.
  Result<void> append(std::span<const std::byte> bytes) override;
  /// The same, but large pieces go to the file as they are if they lie in memory as they will in
  /// the file: address and offset() agree in where they are within a page.
  Result<void> append_in_place(std::span<const std::byte> bytes);
  /// Goes to the file as it is. REQUIRES: aligned address and length, nothing in the buffer.
  Result<void> append_aligned(std::span<const std::byte> bytes);
  std::uint64_t offset() const override { return written_ + used_; }

  /// Everything is written; the lent buffer is free again. REQUIRES: offset() is aligned.
  Result<void> complete();
  /// Completes, and makes the contents durable (not the name: Tier::sync_names()).
  Result<void> finish(bool skip_sync = false);
  const std::string& name() const { return name_; }

 private:
  FileWriter(Tier& tier, std::string name, std::unique_ptr<os::File> file)
      : tier_(&tier), name_(std::move(name)), file_(std::move(file)) {}
  Result<void> flush();
  Result<void> write(std::span<const std::byte> bytes);

  Tier* tier_;
  std::string name_;
  std::unique_ptr<os::File> file_;
  std::span<std::byte> buffer_;
  std::size_t used_ = 0;
  std::uint64_t written_ = 0;
  std::uint64_t reserved_ = 0;
};

}  // namespace belay::store
