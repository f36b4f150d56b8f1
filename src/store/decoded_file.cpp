// SPDX-License-Identifier: Apache-2.0
#include "store/decoded_file.hpp"

#include "base/try.hpp"
#include "codec/codec.hpp"
#include "format/wire.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>

namespace belay::store {
namespace {

// Enough for threads that read on, each at the border of two extents, and for a part that is wanted
// in another order than it is in.
constexpr std::uint64_t kRecentBytes = std::uint64_t{64} << 20;

Unexpected read_only() {
  return fail(Code::invalid_argument, "a file that is decoded can only be read");
}

}  // namespace

DecodedFile::DecodedFile(std::shared_ptr<os::File> file, std::span<const format::Extent> extents)
    : file_(std::move(file)), end_(format::kSegmentHeaderBytes) {
  extents_.reserve(extents.size());
  for (const format::Extent& extent : extents) {
    extents_.push_back({end_, extent});
    end_ += extent.raw_bytes;
  }
  end_ = format::round_up(end_, format::kFileAlignment);  // readers want whole pages
}

Result<std::size_t> DecodedFile::read(std::uint64_t offset, std::span<std::byte> bytes) {
  if (offset >= end_) return std::size_t{0};
  const std::uint64_t end = std::min<std::uint64_t>(end_, offset + bytes.size());
  auto next = std::upper_bound(extents_.begin(), extents_.end(), offset,
                               [](std::uint64_t at, const Placed& e) { return at < e.end(); });
  // Nobody wants what is before the first and after the last.
  const std::uint64_t first = next == extents_.end() ? end : next->begin;
  const std::uint64_t last = extents_.empty() ? offset : std::max(offset, extents_.back().end());
  if (offset < first) std::memset(bytes.data(), 0, std::min(first, end) - offset);
  if (last < end) std::memset(bytes.data() + (last - offset), 0, end - last);
  for (; next != extents_.end() && next->begin < end; ++next) {
    const std::uint64_t from = std::max(next->begin, offset);
    const auto into = bytes.subspan(from - offset, std::min(next->end(), end) - from);
    const auto extent = static_cast<std::size_t>(next - extents_.begin());
    if (!read_part(extent, from - next->begin, into)) std::memset(into.data(), 0, into.size());
  }
  return static_cast<std::size_t>(end - offset);
}

Result<void> DecodedFile::read_part(std::size_t number, std::uint64_t from,
                                    std::span<std::byte> into) {
  const format::Extent& extent = extents_[number].extent;
  if (extent.codec == CodecId::raw) {
    const std::uint64_t begin = extent.offset + from;
    BELAY_ASSIGN(const auto pages, read_pages(*file_, begin, begin + into.size()));
    std::memcpy(into.data(), pages.bytes().data(), into.size());
    return {};
  }
  if (into.size() == extent.raw_bytes) return decode(extent, into);
  BELAY_ASSIGN(const auto whole, decoded(number));
  std::memcpy(into.data(), whole->bytes.data() + from, into.size());
  return {};
}

Result<void> DecodedFile::decode(const format::Extent& extent, std::span<std::byte> raw) {
  const codec::Codec* const codec = codec::codec_of(extent.codec);
  if (codec == nullptr) return fail(Code::unsupported, "codec {}", static_cast<int>(extent.codec));
  BELAY_ASSIGN(const auto pages,
               read_pages(*file_, extent.offset, extent.offset + extent.encoded_bytes));
  auto workspace = take_workspace();
  auto done = codec->decode(pages.bytes(), raw, *workspace);
  give_back(std::move(workspace));
  return done;
}

std::shared_ptr<DecodedFile::Decoded> DecodedFile::slot_of(std::size_t number) {
  const std::lock_guard lock(mutex_);
  const auto is_it = [&](const auto& each) { return each->extent == number; };
  const auto found = std::find_if(recent_.begin(), recent_.end(), is_it);
  auto slot = found == recent_.end() ? std::make_shared<Decoded>() : *found;
  slot->extent = number;
  if (found != recent_.end()) recent_.erase(found);
  recent_.push_back(slot);
  std::uint64_t bytes = 0;
  for (const auto& each : recent_) bytes += extents_[each->extent].extent.raw_bytes;
  while (bytes > kRecentBytes && recent_.size() > 1) {
    bytes -= extents_[recent_.front()->extent].extent.raw_bytes;
    recent_.erase(recent_.begin());
  }
  return slot;
}

Result<std::shared_ptr<const DecodedFile::Decoded>> DecodedFile::decoded(std::size_t number) {
  const auto slot = slot_of(number);
  std::call_once(slot->once, [&] {
    slot->bytes.resize(extents_[number].extent.raw_bytes);
    slot->done = decode(extents_[number].extent, slot->bytes);
  });
  if (!slot->done) return Unexpected(slot->done.error());
  return std::shared_ptr<const Decoded>(slot);
}

void DecodedFile::release() {
  const std::lock_guard lock(mutex_);
  recent_.clear();
  workspaces_.clear();
}

std::unique_ptr<codec::Workspace> DecodedFile::take_workspace() {
  const std::lock_guard lock(mutex_);
  if (workspaces_.empty()) return std::make_unique<codec::Workspace>();
  auto workspace = std::move(workspaces_.back());
  workspaces_.pop_back();
  return workspace;
}

void DecodedFile::give_back(std::unique_ptr<codec::Workspace> workspace) {
  const std::lock_guard lock(mutex_);
  workspaces_.push_back(std::move(workspace));
}

Result<void> DecodedFile::write(std::uint64_t, std::span<const std::byte>) { return read_only(); }
Result<void> DecodedFile::sync() { return read_only(); }
Result<void> DecodedFile::reserve(std::uint64_t) { return read_only(); }
Result<void> DecodedFile::truncate(std::uint64_t) { return read_only(); }

}  // namespace belay::store
