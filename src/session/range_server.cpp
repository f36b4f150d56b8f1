// SPDX-License-Identifier: Apache-2.0
#include "session/range_server.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"
#include "store/verified_range.hpp"

#include <algorithm>

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

Result<void> RangeServer::read(const RangeQuestion& question, std::span<std::byte> into) {
  if (question.file.kind == FileKind::shard) {
    BELAY_ASSIGN(auto* const opened, shard(question.file));
    return opened->read(question.offset, into);
  }
  BELAY_ASSIGN(auto* const opened, segment(question.file));
  const fingerprint::Hasher* const names = hasher(opened->header());
  if (names == nullptr) return fail(Code::unsupported, "{}: unknown hash", opened->where());
  const StripeMember member{.gap_begin = question.gap_begin, .gap_bytes = question.gap_bytes};
  return store::read_member(
      *opened, member, [&](std::span<const std::byte> block) { return names->hash(block); },
      question.offset, into);
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
