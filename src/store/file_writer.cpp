// SPDX-License-Identifier: Apache-2.0
#include "store/file_writer.hpp"

#include "base/settings.hpp"
#include "base/try.hpp"
#include "os/memory.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace belay::store {
namespace {

// Reserving ahead keeps large files in one piece and saves a journal transaction for each write;
// what is left over must be given back, so small files reserve nothing and others as much as they
// have already.
constexpr std::uint64_t kMostReservedBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kWorthReserving = std::uint64_t{4} << 20;
constexpr std::uint64_t kWorthAsking = std::uint64_t{1} << 20;
// A write of its own costs more than copying less.
constexpr std::size_t kWorthWritingInPlace = std::size_t{1} << 20;

Error explain_no_space(const Error& error, Tier& tier, std::uint64_t needed) {
  if (error.code() != Code::no_space) return error;
  const auto space = tier.space();
  if (!space) return error;
  if (!space->has_room_for_names)
    return {Code::no_space,
            fmt::format("{} (no inode is free, though {} are; remove files, or lower `keep`)",
                        error.message(), format_bytes(space->free_bytes))};
  return {Code::no_space,
          fmt::format("{} (needs {} more, {} free; a lower `keep` takes less)", error.message(),
                      format_bytes(needed), format_bytes(space->free_bytes))};
}

/// `memory` is whole pages, for direct I/O; the file gets the first `bytes` of it.
Result<void> write_file(Tier& tier, const std::string& name, std::span<const std::byte> memory,
                        std::uint64_t bytes) {
  BELAY_ASSIGN(const auto file, tier.create(name));
  BELAY_TRY(file->write(0, memory));
  BELAY_TRY(file->truncate(bytes));
  BELAY_TRY(file->sync());
  return file->close();
}

}  // namespace

Result<FileWriter> FileWriter::create(Tier& tier, std::string name) {
  auto file = tier.create(name);
  if (!file) return Unexpected(explain_no_space(file.error(), tier, os::kDirectAlignment));
  return FileWriter(tier, std::move(name), *std::move(file));
}

Result<FileWriter> FileWriter::create_large(Tier& tier, std::string name) {
  auto file = tier.create_large(name);
  if (!file) return Unexpected(explain_no_space(file.error(), tier, os::kDirectAlignment));
  BELAY_ASSIGN(const std::uint64_t bytes, (*file)->size());
  FileWriter writer(tier, std::move(name), *std::move(file));
  writer.reserved_ = bytes;
  return writer;
}

Result<void> FileWriter::write(std::span<const std::byte> bytes) {
  const std::uint64_t end = written_ + bytes.size();
  if (end > reserved_ && bytes.size() >= kWorthReserving) {
    reserved_ = end + std::min(written_, kMostReservedBytes);
    // A reservation that does not fit is no reason to fail: what is needed may still fit.
    (void)file_->reserve(reserved_);
  }
  auto done = file_->write(written_, bytes);
  // What stays for its memory must not be what is lacking.
  if (!done && done.error().code() == Code::no_space && tier_->drop_retired().value_or(0) > 0)
    done = file_->write(written_, bytes);
  if (!done) return Unexpected(explain_no_space(done.error(), *tier_, bytes.size()));
  written_ = end;
  return {};
}

Result<void> FileWriter::flush() {
  BELAY_TRY(write(buffer_.first(used_)));
  used_ = 0;
  return {};
}

Result<void> FileWriter::append(std::span<const std::byte> bytes) {
  assert(buffer_.size() % os::kDirectAlignment == 0);
  if (!is_lent() && !bytes.empty())
    return fail(Code::invalid_argument, "{}/{}: nothing to write with", tier_->place(), name_);
  while (!bytes.empty()) {
    const std::size_t take = std::min(bytes.size(), buffer_.size() - used_);
    std::memcpy(buffer_.data() + used_, bytes.data(), take);
    used_ += take;
    bytes = bytes.subspan(take);
    if (used_ == buffer_.size()) BELAY_TRY(flush());
  }
  return {};
}

Result<void> FileWriter::append_in_place(std::span<const std::byte> bytes) {
  const auto place = reinterpret_cast<std::uintptr_t>(bytes.data());
  const bool alike = place % os::kDirectAlignment == offset() % os::kDirectAlignment;
  if (!alike || bytes.size() < kWorthWritingInPlace) return append(bytes);
  const std::size_t front = (os::kDirectAlignment - place % os::kDirectAlignment) %
                            os::kDirectAlignment;  // to the end of a page
  BELAY_TRY(append(bytes.first(front)));
  if (used_ > 0) BELAY_TRY(flush());
  bytes = bytes.subspan(front);
  const std::size_t pages = bytes.size() / os::kDirectAlignment * os::kDirectAlignment;
  BELAY_TRY(write(bytes.first(pages)));
  return append(bytes.subspan(pages));
}

Result<void> FileWriter::append_aligned(std::span<const std::byte> bytes) {
  assert(used_ == 0 && bytes.size() % os::kDirectAlignment == 0);
  return bytes.empty() ? Result<void>{} : write(bytes);
}

Result<void> FileWriter::complete() {
  assert(offset() % os::kDirectAlignment == 0);
  if (used_ > 0) BELAY_TRY(flush());
  if (reserved_ <= written_) return {};
  reserved_ = 0;
  return file_->truncate(written_);
}

Result<void> FileWriter::finish(bool skip_sync) {
  BELAY_TRY(complete());
  if (!skip_sync)
    if (auto done = file_->sync(); !done)
      return Unexpected(explain_no_space(done.error(), *tier_, 0));
  return file_->close();
}

Result<std::vector<std::byte>> read_whole(Tier& tier, const std::string& name,
                                          CheckFront check_front) {
  BELAY_ASSIGN(const auto file, tier.open(name));
  BELAY_ASSIGN(const std::uint64_t size, file->size());
  if (size > kWorthAsking) {
    BELAY_ASSIGN(auto page, os::AlignedMemory::allocate(os::kDirectAlignment));
    BELAY_ASSIGN(const std::size_t front, file->read(0, page.bytes()));
    BELAY_TRY(within(tier.place() + "/" + name, check_front(page.bytes().first(front), size)));
  }
  // Direct reads want aligned memory; the copy out of it is small beside the read.
  BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(std::max<std::size_t>(size, 1)));
  BELAY_ASSIGN(const std::size_t got, file->read(0, memory.bytes()));
  if (got < size)
    return fail(Code::corruption, "{}/{}: ends after {} of {} bytes", tier.place(), name, got,
                size);
  return std::vector<std::byte>(memory.bytes().begin(),
                                memory.bytes().begin() + static_cast<std::ptrdiff_t>(size));
}

Result<void> prepare_whole(Tier& tier, const std::string& name, std::span<const std::byte> bytes) {
  BELAY_ASSIGN(auto memory, os::AlignedMemory::allocate(bytes.size()));
  std::memcpy(memory.bytes().data(), bytes.data(), bytes.size());
  const std::string temporary = name + ".tmp";
  // A leftover of a killed process; nobody refers to temporary names.
  if (auto gone = tier.remove(temporary); !gone && gone.error().code() != Code::not_found)
    return gone;
  auto written = write_file(tier, temporary, memory.bytes(), bytes.size());
  if (!written) return Unexpected(explain_no_space(written.error(), tier, memory.bytes().size()));
  return {};
}

Result<void> put_whole(Tier& tier, const std::string& name, std::span<const std::byte> bytes,
                       bool exclusive) {
  BELAY_TRY(prepare_whole(tier, name, bytes));
  return tier.publish(name + ".tmp", name, exclusive);
}

}  // namespace belay::store
