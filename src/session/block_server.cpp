// SPDX-License-Identifier: Apache-2.0
#include "session/block_server.hpp"

#include "format/wire.hpp"
#include "os/files.hpp"
#include "os/memory.hpp"
#include "store/pages.hpp"

#include <algorithm>

namespace belay::session {
namespace {

constexpr std::size_t kQuestionBytes = 45;

/// A read of whole pages, and the block inside of it.
struct Reading {
  os::File* file = nullptr;  ///< nullptr: there is nothing to read
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::size_t skip = 0;
  std::uint32_t length = 0;
  std::size_t at = 0;  ///< in the memory for all
  bool done = false;
  /// Without dedup the file may have the same content in other places.
  std::span<const store::StoredBlock> equals;
  std::vector<std::byte> other;  ///< what one of these gave instead
};

/// Where the first of several equal blocks is damaged, another one of them may be sound.
void read_equal(Reading& reading, const fingerprint::Hasher& hasher,
                std::span<const std::byte> first) {
  const auto is_sound = [&](std::span<const std::byte> content) {
    return hasher.hash(content) == reading.equals.front().fingerprint;
  };
  if (reading.done && is_sound(first)) return;
  for (const store::StoredBlock& equal : reading.equals.subspan(1)) {
    const auto pages = store::read_pages(*reading.file, equal.offset, equal.end());
    if (!pages || !is_sound(pages->bytes())) continue;
    reading.other.assign(pages->bytes().begin(), pages->bytes().end());
    reading.done = true;
    return;
  }
}

std::vector<BlockQuestion> decode_questions(std::span<const std::byte> bytes) {
  std::vector<BlockQuestion> questions;
  format::WireReader reader(bytes);
  while (reader.remaining() >= kQuestionBytes) {
    BlockQuestion& question = questions.emplace_back();
    question.file.id.key.run = reader.field<Run>();
    question.file.id.key.version = reader.field<Version>();
    question.file.id.rank = reader.field<Rank>();
    question.file.kind = static_cast<FileKind>(reader.field<std::uint8_t>());
    question.file.place = reader.field<catalog::Whereabouts::Place>();
    question.fingerprint.low = reader.field<std::uint64_t>();
    question.fingerprint.high = reader.field<std::uint64_t>();
    question.length = reader.field<std::uint32_t>();
  }
  return questions;
}

}  // namespace

std::vector<std::byte> encode_questions(const std::vector<BlockQuestion>& questions) {
  std::vector<std::byte> bytes;
  bytes.reserve(questions.size() * kQuestionBytes);
  format::WireWriter writer(bytes);
  for (const BlockQuestion& question : questions) {
    writer.pair(question.file.id.key.run, question.file.id.key.version);
    writer.field(question.file.id.rank);
    writer.field(static_cast<std::uint8_t>(question.file.kind));
    writer.field(question.file.place);
    writer.pair(question.fingerprint.low, question.fingerprint.high);
    writer.field(question.length);
  }
  return bytes;
}

store::SegmentFile* BlockServer::open(const StoredFile& file) {
  const auto [found, is_new] = files_.try_emplace(file);
  if (is_new) {
    auto& place = store::place_in(tier_, whereabouts_.directory(file.place));
    auto opened = store::SegmentFile::open(place, file.id, store_, {}, file.kind);
    if (opened) {
      opened->sort_blocks();
      found->second.emplace(*std::move(opened));
    } else {
      log_.warn("restore: {}", opened.error().message());
    }
  }
  return found->second ? &*found->second : nullptr;
}

std::vector<StoredFile> BlockServer::unreadable() const {
  std::vector<StoredFile> files;
  for (const auto& [file, opened] : files_)
    if (!opened) files.push_back(file);
  return files;
}

std::vector<std::byte> BlockServer::answer(std::span<const std::byte> bytes) {
  constexpr std::uint64_t kPage = os::kDirectAlignment;
  std::vector<Reading> readings;
  std::size_t memory_bytes = 0;
  std::size_t answer_bytes = 0;
  for (const BlockQuestion& question : decode_questions(bytes)) {
    Reading& reading = readings.emplace_back();
    store::SegmentFile* const file = open(question.file);
    ++answer_bytes;
    if (file == nullptr) continue;
    reading.equals = file->find_all(question.fingerprint, question.length);
    if (reading.equals.empty()) continue;
    const store::StoredBlock* const block = &reading.equals.front();
    reading.file = &file->file();
    reading.begin = block->offset / kPage * kPage;
    reading.end = format::round_up(block->end(), kPage);
    reading.skip = block->offset - reading.begin;
    reading.length = block->length;
    reading.at = memory_bytes;
    memory_bytes += reading.end - reading.begin;
    answer_bytes += block->length;
  }
  std::vector<std::byte> answer;
  answer.reserve(answer_bytes);
  format::WireWriter writer(answer);
  auto memory = os::AlignedMemory::allocate(std::max<std::size_t>(memory_bytes, kPage));
  if (memory)
    readers_.run(readings.size(), [&](std::size_t i) {
      Reading& reading = readings[i];
      if (reading.file == nullptr) return;
      const auto pages = memory->bytes().subspan(reading.at, reading.end - reading.begin);
      const auto got = reading.file->read(reading.begin, pages);
      reading.done = got && *got >= reading.skip + reading.length;
    });
  for (Reading& reading : readings) {
    if (memory && reading.equals.size() > 1)
      read_equal(reading, hasher_,
                 memory->bytes().subspan(reading.at + reading.skip, reading.length));
    writer.field(static_cast<std::uint8_t>(reading.done));
    if (!reading.done) continue;
    writer.bytes(reading.other.empty()
                     ? memory->bytes().subspan(reading.at + reading.skip, reading.length)
                     : std::span<const std::byte>(reading.other));
  }
  return answer;
}

}  // namespace belay::session
