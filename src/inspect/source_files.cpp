// SPDX-License-Identifier: Apache-2.0
#include "inspect/source_files.hpp"

#include "base/try.hpp"
#include "inspect/stripe_reader.hpp"

#include <algorithm>
#include <mutex>

namespace belay::inspect {
namespace {

/// A segment's file that is not there, read through its stripe. Zeros stand for the gap, and for
/// what is lost: whoever reads verifies blocks one by one, and must get those that are not.
class MemberFile final : public os::File {
 public:
  MemberFile(std::unique_ptr<StripeReader> reader, const StripeMember& member)
      : reader_(std::move(reader)), member_(member) {}

  Result<std::size_t> read(std::uint64_t offset, std::span<std::byte> bytes) override {
    const std::lock_guard guard(mutex_);
    const std::uint64_t left = member_.file_bytes - std::min(offset, member_.file_bytes);
    bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), left));
    const std::uint64_t gap_end = member_.gap_begin + member_.gap_bytes;
    for (std::size_t done = 0; done < bytes.size();) {
      const std::uint64_t at = offset + done;
      const bool in_gap = at >= member_.gap_begin && at < gap_end;
      const std::uint64_t end = in_gap                   ? gap_end
                                : at < member_.gap_begin ? member_.gap_begin
                                                         : member_.file_bytes;
      const auto part = bytes.subspan(done, std::min<std::uint64_t>(bytes.size() - done, end - at));
      if (in_gap)
        std::fill(part.begin(), part.end(), std::byte{});
      else
        BELAY_TRY(read_member(at < member_.gap_begin ? at : at - member_.gap_bytes, part));
      done += part.size();
    }
    return bytes.size();
  }
  Result<std::uint64_t> size() override { return member_.file_bytes; }
  Result<void> close() override { return {}; }
  Result<void> write(std::uint64_t, std::span<const std::byte>) override { return refuse(); }
  Result<void> sync() override { return refuse(); }
  Result<void> reserve(std::uint64_t) override { return refuse(); }
  Result<void> truncate(std::uint64_t) override { return refuse(); }

 private:
  Result<void> read_member(std::uint64_t offset, std::span<std::byte> into) {
    if (auto all = reader_->read(offset, into); all || all.error().code() != Code::not_found)
      return all;
    while (!into.empty()) {
      const auto part = into.first(std::min(into.size(), kLeastBytes));
      auto got = reader_->read(offset, part);
      if (!got && got.error().code() != Code::not_found) return got;
      if (!got) std::fill(part.begin(), part.end(), std::byte{});
      into = into.subspan(part.size());
      offset += part.size();
    }
    return {};
  }
  static constexpr std::size_t kLeastBytes = 512;  ///< a block is not smaller

  static Unexpected refuse() { return fail(Code::unsupported, "a stripe is for reading only"); }

  std::mutex mutex_;
  std::unique_ptr<StripeReader> reader_;
  StripeMember member_;
};

/// What is lost of the member, as ranges of the file.
std::vector<store::FileRange> lost_of(const StripeReader& reader, const StripeMember& member) {
  std::vector<store::FileRange> lost;
  if (member.gap_bytes > 0) lost.push_back({member.gap_begin, member.gap_begin + member.gap_bytes});
  const auto in_file = [&](std::uint64_t at) {
    return at < member.gap_begin ? at : at + member.gap_bytes;
  };
  for (const redundancy::Range& range : reader.lost_ranges())
    lost.push_back({in_file(range.offset), in_file(range.end() - 1) + 1});
  return lost;
}

}  // namespace

Result<store::SegmentFile> hold_source(const StoreView& view, const BlockSource& source) {
  if (source.kind != FileKind::shard)
    return store::SegmentFile::hold(view.tier(source.node), source.id, source.kind);
  const std::string where = format::segment_name(source.id) + " by its stripe";
  const auto seat = view.stripes().of(source.id);
  if (!seat) return fail(Code::not_found, "{}: it is in none", where);
  const StripeMember& member = seat->stripe->stripe.members[seat->seat];
  BELAY_ASSIGN(auto reader, within(where, StripeReader::make(view, *seat->stripe, {seat->seat})));
  auto lost = lost_of(*reader, member);
  return store::SegmentFile::over(std::make_unique<MemberFile>(std::move(reader), member), where,
                                  source.id, std::move(lost));
}

Result<store::SegmentFile> open_source(const StoreView& view, const BlockSource& source,
                                       const StoreId& store,
                                       std::optional<std::uint64_t> file_bytes) {
  BELAY_ASSIGN(auto file, hold_source(view, source));
  BELAY_TRY(file.load(store, file_bytes));
  return file;
}

}  // namespace belay::inspect
