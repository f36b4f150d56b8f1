// SPDX-License-Identifier: Apache-2.0
#include "session/range_server.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"
#include "store/pages.hpp"

#include <algorithm>
#include <cstring>

namespace belay::session {
namespace {

constexpr std::size_t kQuestionBytes = 53;
constexpr std::uint32_t kMostBytes = 64 << 20;  // that a question may ask for

std::vector<RangeQuestion> decode_questions(std::span<const std::byte> bytes) {
  std::vector<RangeQuestion> questions;
  format::WireReader reader(bytes);
  while (reader.remaining() >= kQuestionBytes) {
    RangeQuestion& question = questions.emplace_back();
    question.file.id.key.run = reader.field<Run>();
    question.file.id.key.version = reader.field<Version>();
    question.file.id.rank = reader.field<Rank>();
    question.file.kind = static_cast<FileKind>(reader.field<std::uint8_t>());
    question.file.place = reader.field<catalog::Whereabouts::Place>();
    question.gap_begin = reader.field<std::uint64_t>();
    question.gap_bytes = reader.field<std::uint64_t>();
    question.offset = reader.field<std::uint64_t>();
    question.length = reader.field<std::uint32_t>();
  }
  return questions;
}

/// The part of `into`, which begins at `offset`, that lies in [begin, end).
std::span<std::byte> overlap(std::span<std::byte> into, std::uint64_t offset, std::uint64_t begin,
                             std::uint64_t end) {
  const std::uint64_t first = std::max(offset, begin);
  const std::uint64_t last = std::min(offset + into.size(), end);
  return first >= last ? std::span<std::byte>{} : into.subspan(first - offset, last - first);
}

}  // namespace

std::vector<std::byte> encode_questions(const std::vector<RangeQuestion>& questions) {
  std::vector<std::byte> bytes;
  bytes.reserve(questions.size() * kQuestionBytes);
  format::WireWriter writer(bytes);
  for (const RangeQuestion& question : questions) {
    writer.pair(question.file.id.key.run, question.file.id.key.version);
    writer.field(question.file.id.rank);
    writer.field(static_cast<std::uint8_t>(question.file.kind));
    writer.field(question.file.place);
    writer.pair(question.gap_begin, question.gap_bytes);
    writer.field(question.offset);
    writer.field(question.length);
  }
  return bytes;
}

const fingerprint::Hasher* RangeServer::hasher(const format::SegmentHeader& header) {
  auto& made = hashers_[header.hash];
  if (!made) made = fingerprint::make_hasher(header.hash, header.origin.seed);
  return made.get();
}

Result<store::SegmentFile*> RangeServer::segment(const StoredFile& file) {
  if (const auto found = segments_.find(file); found != segments_.end()) return &found->second;
  auto& place = store::place_in(tier_, whereabouts_.directory(file.place));
  auto opened = store::SegmentFile::open(place, file.id, store_, {}, file.kind);
  if (!opened) unopened_.insert(file);
  if (!opened) return Unexpected(opened.error());
  return &segments_.emplace(file, std::move(*opened)).first->second;
}

Result<store::ShardFile*> RangeServer::shard(const StoredFile& file) {
  if (const auto found = shards_.find(file); found != shards_.end()) return &found->second;
  auto& place = store::place_in(tier_, whereabouts_.directory(file.place));
  auto opened = store::ShardFile::open(place, file.id, store_);
  if (!opened) unopened_.insert(file);
  if (!opened) return Unexpected(opened.error());
  return &shards_.emplace(file, std::move(*opened)).first->second;
}

Result<void> RangeServer::read_segment(store::SegmentFile& segment, std::uint64_t offset,
                                       std::span<std::byte> into) {
  if (into.empty()) return {};
  const auto& blocks = segment.blocks();
  const std::uint64_t payload_end =
      blocks.empty() ? format::kSegmentHeaderBytes : blocks.back().end();
  if (offset > segment.file_bytes() || into.size() > segment.file_bytes() - offset)
    return fail(Code::corruption, "{}: ends before byte {}", segment.where(), offset + into.size());
  // Header and end were verified when the file was opened.
  const auto copy_part = [&](std::uint64_t begin, std::uint64_t end) -> Result<void> {
    const auto part = overlap(into, offset, begin, end);
    if (part.empty()) return {};
    const std::uint64_t at = offset + static_cast<std::uint64_t>(part.data() - into.data());
    BELAY_ASSIGN(const auto pages, store::read_pages(segment.file(), at, at + part.size()));
    std::memcpy(part.data(), pages.bytes().data(), part.size());
    return {};
  };
  BELAY_TRY(copy_part(0, format::kSegmentHeaderBytes));
  BELAY_TRY(copy_part(payload_end, segment.file_bytes()));

  const fingerprint::Hasher* const names = hasher(segment.header());
  if (names == nullptr) return fail(Code::unsupported, "{}: unknown hash", segment.where());
  auto block =
      std::lower_bound(blocks.begin(), blocks.end(), offset,
                       [](const store::StoredBlock& b, std::uint64_t at) { return b.end() <= at; });
  for (; block != blocks.end() && block->offset < offset + into.size(); ++block) {
    BELAY_ASSIGN(const auto pages, store::read_pages(segment.file(), block->offset, block->end()));
    if (names->hash(pages.bytes()) != block->fingerprint)
      return fail(Code::corruption, "{}: the block at byte {} is damaged", segment.where(),
                  block->offset);
    const auto part = overlap(into, offset, block->offset, block->end());
    const std::uint64_t at = offset + static_cast<std::uint64_t>(part.data() - into.data());
    std::memcpy(part.data(), pages.bytes().data() + (at - block->offset), part.size());
  }
  return {};
}

Result<void> RangeServer::read(const RangeQuestion& question, std::span<std::byte> into) {
  if (question.file.kind == FileKind::shard) {
    BELAY_ASSIGN(auto* const opened, shard(question.file));
    return opened->read(question.offset, into);
  }
  BELAY_ASSIGN(auto* const opened, segment(question.file));
  const auto before = overlap(into, question.offset, 0, question.gap_begin);
  BELAY_TRY(read_segment(*opened, question.offset, before));
  const auto behind = into.subspan(before.size());
  if (behind.empty()) return {};
  return read_segment(*opened, question.offset + before.size() + question.gap_bytes, behind);
}

std::vector<std::byte> RangeServer::answer(std::span<const std::byte> bytes) {
  std::vector<std::byte> answer;
  for (const RangeQuestion& question : decode_questions(bytes)) {
    const std::size_t at = answer.size();
    answer.resize(at + 1 + std::min(question.length, kMostBytes));
    // A file that is damaged in one place may be good in all others.
    const auto done = unopened_.contains(question.file)
                          ? Result<void>(fail(Code::corruption, "cannot be opened"))
                          : read(question, std::span(answer).subspan(at + 1));
    answer[at] = std::byte{done.has_value()};
    if (done) continue;
    answer.resize(at + 1);
    if (damaged_.insert(question.file).second) log_.warn("restore: {}", done.error().message());
  }
  return answer;
}

}  // namespace belay::session
