// SPDX-License-Identifier: Apache-2.0
#include "session/drain.hpp"

#include "base/mistakes.hpp"
#include "base/try.hpp"
#include "format/names.hpp"
#include "format/wire.hpp"
#include "vote/claim.hpp"

#include <algorithm>

namespace belay::session {
namespace {

// What a question is about.
enum class Ask : std::uint8_t { share = 0, part = 1, bytes = 2 };
// How an answer begins.
constexpr std::uint8_t kDone = 0;
constexpr std::uint8_t kFailed = 1;

// Tables come in letters of so much of the memory.
constexpr std::uint64_t kLetters = 64;
constexpr std::uint64_t kLeastLetter = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostLetter = std::uint64_t{4} << 20;

/// Of tables, in a letter.
std::uint64_t part_bytes(std::uint64_t memory_bytes) {
  return std::clamp(memory_bytes / kLetters, kLeastLetter, kMostLetter);
}

std::vector<std::byte> failure(const Error& error) {
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(kFailed);
  writer.field(static_cast<std::uint8_t>(error.code()));
  writer.text(error.message());
  return bytes;
}

/// What follows an answer that is one.
Result<std::span<const std::byte>> unwrap(Rank rank, std::span<const std::byte> answer) {
  format::WireReader reader(answer);
  if (reader.field<std::uint8_t>() == kDone && !reader.failed()) return answer.subspan(1);
  const auto code = static_cast<Code>(reader.field<std::uint8_t>());
  return fail(code, "rank {}: {}", rank, reader.text(reader.remaining()));
}

}  // namespace

DrainedVersion DrainedVersion::of(const Manifest& manifest) {
  DrainedVersion version{manifest.origin, manifest.hash, manifest.block_bytes, {}};
  for (const SegmentRef& segment : manifest.segments) version.segments.push_back(segment.id);
  return version;
}

std::vector<CodecUse> codec_uses(const char* tier, const codec::Chooser& chooser) {
  std::vector<CodecUse> uses;
  for (const codec::Chosen& each : chooser.chosen())
    uses.push_back({tier, each.variable, std::string(each.codec->name()), each.raw_bytes,
                    each.encoded_bytes, each.encode_ns});
  return uses;
}

Drain::Drain(DrainPlaces places, DrainedVersion version, DrainWork work)
    : places_(places), version_(std::move(version)), work_(std::move(work)) {
  // What heaps keep of buffers that were freed.
  if (places_.memory_bytes >= (2 << 20)) places_.memory_bytes -= places_.memory_bytes / 8;
  if (places_.group != nullptr)
    own_.emplace(version_.origin.rank, fail(Code::io, "its files were not looked at"));
}

Drain::Drain(DrainPlaces places, DrainedVersion version, DrainWork work, Result<OwnShare> own)
    : Drain(places, std::move(version), std::move(work)) {
  own_.insert_or_assign(version_.origin.rank, std::move(own));
  brought_ = true;
}

void Drain::run() {
  report_.result =
      within_memory([&] { return places_.group == nullptr ? drain_node() : drain_across(); });
  own_.clear();
  sources_ = {};
  reader_ = {};
  answers_ = {};
  finished_.store(true, std::memory_order_release);
}

void Drain::land(DrainReport report) {
  report_ = std::move(report);
  finished_.store(true, std::memory_order_release);
}

Result<OwnShare> Drain::look_at_files(Rank rank) {
  Origin origin = version_.origin;
  origin.rank = rank;
  return within_memory([&] {
    return open_share({places_.nodes, places_.sight, places_.log, places_.memory_bytes}, origin,
                      work_.tasks, report_.damaged);
  });
}

ShareReader Drain::reader_of(Rank rank) {
  OwnShare& own = *own_.at(rank);
  return {rank, own.head(), part_bytes(places_.memory_bytes),
          [this, &own](std::uint64_t begin, std::uint64_t most) {
            auto part = own.part(begin, most, reader_);
            if (!part && own.failed()) note_damaged(*own.failed());
            return part;
          }};
}

ShareReader Drain::reader_of(Rank rank, ShareHead head) {
  return {rank, std::move(head), part_bytes(places_.memory_bytes),
          [this, rank](std::uint64_t begin, std::uint64_t most) {
            return ask_part(rank, begin, most);
          }};
}

Result<void> Drain::drain_node() {
  std::vector<ShareReader> group;
  for (const Rank rank : work_.set.members) {
    auto opened = look_at_files(rank);
    if (!opened) return Unexpected(opened.error());
    own_.insert_or_assign(rank, std::move(opened));
    BELAY_TRY(add_or_write(group, reader_of(rank)));
  }
  return group.empty() ? Result<void>{} : write(group);
}

Result<void> Drain::add_or_write(std::vector<ShareReader>& group, ShareReader share) {
  std::uint64_t planning = share.head().planning_bytes();
  for (const ShareReader& each : group) planning += each.head().planning_bytes();
  if (!group.empty() && planning > aggregate::most_planning_bytes(places_.memory_bytes)) {
    BELAY_TRY(write(group));
    // What this rank answers about itself stays until the end.
    for (const ShareReader& written : group)
      if (places_.group == nullptr) own_.erase(written.rank());
    group.clear();
  }
  group.push_back(std::move(share));
  return {};
}

Result<void> Drain::drain_across() {
  // Nobody is asked before all can answer: to look at what the tier has may take long.
  auto& own = own_.at(version_.origin.rank);
  auto looked = brought_ ? Result<void>{} : in_step([&]() -> Result<void> {
    own = look_at_files(version_.origin.rank);
    return {};
  });
  if (!looked && looked.error().code() == Code::peer_lost) return looked;
  // The others go on, and must be told.
  if (!looked) own = Unexpected(std::move(looked).error());
  return in_step([&]() -> Result<void> {
    if (!own) return Unexpected(own.error());
    if (work_.set.members.empty()) return {};
    BELAY_ASSIGN(auto others, ask_heads());
    std::vector<ShareReader> group = {reader_of(version_.origin.rank)};
    for (ShareReader& share : others) BELAY_TRY(add_or_write(group, std::move(share)));
    return write(group);
  });
}

Result<void> Drain::in_step(const std::function<Result<void>()>& work) {
  const auto answer_all = [&](auto question) { return answer(question); };
  if (places_.keeps_step) errand_.emplace(*places_.group, answer_all);
  const auto done = errand_ ? errand_->run(work) : within_memory(work);
  errand_.reset();
  // Others may still want to know something.
  while (done || done.error().code() != Code::peer_lost) {
    BELAY_ASSIGN(const auto more, inquire(*places_.group, {}, false, answer_all));
    if (!more) break;
  }
  return done;
}

Result<Letters> Drain::ask(const Letters& questions) {
  if (errand_) return errand_->ask(questions);
  BELAY_ASSIGN(auto answers, inquire(*places_.group, questions, true,
                                     [&](auto question) { return answer(question); }));
  return answers ? *std::move(answers) : Letters{};  // who asks is busy, and so gets answers
}

Result<std::vector<ShareReader>> Drain::ask_heads() {
  Letters questions;
  for (const Rank rank : work_.set.members)
    if (rank != version_.origin.rank) questions[rank] = {static_cast<std::byte>(Ask::share)};
  BELAY_ASSIGN(const Letters answers, ask(questions));
  std::vector<ShareReader> shares;
  for (const auto& [rank, letter] : questions) {
    BELAY_ASSIGN(const auto bytes, unwrap(rank, answers.at(rank)));
    BELAY_ASSIGN(auto head, ShareHead::decode(bytes));
    shares.push_back(reader_of(rank, std::move(head)));
  }
  return shares;
}

Result<std::vector<std::byte>> Drain::ask_part(Rank rank, std::uint64_t begin, std::uint64_t most) {
  Letters question;
  format::WireWriter writer(question[rank]);
  writer.field(static_cast<std::uint8_t>(Ask::part));
  writer.pair(begin, most);
  BELAY_ASSIGN(const Letters answers, ask(question));
  BELAY_ASSIGN(const auto bytes, unwrap(rank, answers.at(rank)));
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

std::vector<std::byte> Drain::answer(std::span<const std::byte> question) {
  // Who asked must not wait in vain.
  try {
    return look_up(question);
  } catch (const std::bad_alloc&) {
    return failure(out_of_memory());
  }
}

std::vector<std::byte> Drain::look_up(std::span<const std::byte> question) {
  auto& own = own_.at(version_.origin.rank);
  if (!own) return failure(own.error());
  std::vector<std::byte> bytes;
  format::WireWriter writer(bytes);
  writer.field(kDone);
  format::WireReader reader(question);
  const auto about = static_cast<Ask>(reader.field<std::uint8_t>());
  if (about == Ask::share) {
    writer.bytes(own->head().encode());
    return bytes;
  }
  if (about == Ask::part) {
    const auto begin = reader.field<std::uint64_t>();
    const auto most = reader.field<std::uint64_t>();
    const auto part = own->part(begin, most, answers_);
    if (!part && own->failed()) note_damaged(*own->failed());
    if (!part) return failure(part.error());
    writer.bytes(*part);
    return bytes;
  }
  while (reader.remaining() > 0) {
    SegmentId id;
    id.key.run = reader.field<Run>();
    id.key.version = reader.field<Version>();
    id.rank = reader.field<Rank>();
    const auto begin = reader.field<std::uint64_t>();
    const auto length = reader.field<std::uint64_t>();
    const std::size_t at = bytes.size();
    bytes.resize(at + length);
    if (auto read = own->read(id, begin, std::span(bytes).subspan(at, length), answers_); !read) {
      note_damaged(id);
      return failure(read.error());
    }
  }
  return bytes;
}

Result<void> Drain::read(std::span<const aggregate::Piece> pieces,
                         std::optional<std::size_t>& damaged) {
  std::map<Rank, std::vector<aggregate::Piece>> remote;
  for (const aggregate::Piece& piece : pieces) {
    const BundleDraft::Source& source = sources_[piece.source];
    const auto own = own_.find(source.keeper);
    if (own == own_.end()) {
      remote[source.keeper].push_back(piece);
      continue;
    }
    if (auto read = own->second->read(source.id, piece.begin, piece.into, reader_); !read) {
      damaged = piece.source;
      return read;
    }
  }
  if (remote.empty()) return {};
  Letters questions;
  for (const auto& [keeper, theirs] : remote) {
    format::WireWriter writer(questions[keeper]);
    writer.field(static_cast<std::uint8_t>(Ask::bytes));
    for (const aggregate::Piece& piece : theirs) {
      const SegmentId& id = sources_[piece.source].id;
      writer.pair(id.key.run, id.key.version);
      writer.field(id.rank);
      writer.pair(piece.begin, piece.into.size());
    }
  }
  BELAY_ASSIGN(const Letters answers, ask(questions));
  for (const auto& [keeper, theirs] : remote)
    BELAY_TRY(read_remote(keeper, theirs, answers.at(keeper), damaged));
  return {};
}

Result<void> Drain::read_remote(Rank keeper, std::span<const aggregate::Piece> pieces,
                                std::span<const std::byte> answer,
                                std::optional<std::size_t>& damaged) {
  auto bytes = unwrap(keeper, answer);
  if (!bytes) {
    damaged = pieces.front().source;  // one of them; the keeper has noted which
    return Unexpected(bytes.error());
  }
  format::WireReader reader(*bytes);
  for (const aggregate::Piece& piece : pieces) {
    const auto got = reader.bytes(piece.into.size());
    if (got.size() != piece.into.size())
      return fail(Code::corruption, "rank {} has sent too little", keeper);
    std::copy(got.begin(), got.end(), piece.into.begin());
  }
  return {};
}

void Drain::note_damaged(const SegmentId& id) {
  for (const DrainTask& task : work_.tasks)
    if (task.id == id) report_.damaged.push_back({id, FileKind::segment, task.place});
}

Result<void> Drain::write(std::vector<ShareReader>& group) {
  BELAY_ASSIGN(BundleDraft draft, make_draft(group, {places_.memory_bytes, version_.block_bytes,
                                                     places_.encoders, places_.match}));
  sources_ = std::move(draft.sources);
  const aggregate::Tools tools{
      places_.global,
      places_.chooser,
      places_.clock,
      [&](std::span<const std::span<const std::byte>> contents, std::span<Fingerprint> names) {
        places_.hasher.hash(contents, names);
      },
      [&](std::span<const aggregate::Piece> pieces, std::optional<std::size_t>& damaged) {
        return read(pieces, damaged);
      },
      places_.encoders,
      draft.portions,
      cancelled_};
  const SegmentId id{version_.origin.key, group.front().rank()};
  const std::string name = format::bundle_name(id);
  const std::string temporary = format::temporary_name(name);
  (void)places_.global.remove(temporary);  // left by a drain that did not end
  format::SegmentHeader header{version_.origin, version_.hash, version_.block_bytes};
  header.origin.rank = id.rank;
  // A segment of an earlier run that others count on may have larger blocks.
  for (const format::BundledSegment& segment : draft.draft.segments)
    header.block_bytes = std::max(header.block_bytes, segment.block_bytes);
  vote::KeptBundle made{id, {}, true};
  for (const BundleDraft::Source& source : sources_) made.segments.push_back(source.id);
  report_.bundles.reserve(report_.bundles.size() + 1);
  const bool early = planted(Mistake::drain_early);
  std::optional<std::size_t> damaged;
  auto written = aggregate::write_bundle(tools, early ? name : temporary, header,
                                         std::move(draft.draft), damaged);
  if (damaged)
    report_.damaged.push_back({sources_[*damaged].id, FileKind::segment, sources_[*damaged].place});
  Result<void> done;
  if (!written) done = Unexpected(written.error());
  if (written && !early) done = publish(temporary, name);
  if (!done) {
    (void)places_.global.remove(temporary);
    return done;
  }
  report_.written.file_bytes += written->file_bytes;
  report_.written.raw_bytes += written->raw_bytes;
  if (written->bandwidth) report_.written.bandwidth = written->bandwidth;
  report_.bundles.push_back(std::move(made));
  return {};
}

/// From here on the ranks of the set have voted on the global tier.
Result<void> Drain::publish(const std::string& temporary, const std::string& name) {
  BELAY_TRY(vote::check_still_ours(places_.global, version_.origin.key.run));
  return places_.global.publish(temporary, name, /*exclusive=*/false);
}

}  // namespace belay::session
