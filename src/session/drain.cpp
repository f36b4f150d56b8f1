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
constexpr std::uint64_t kLetters = 16;
constexpr std::uint64_t kLeastLetter = std::uint64_t{64} << 10;
constexpr std::uint64_t kMostLetter = std::uint64_t{4} << 20;

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

Result<OwnShare> Drain::open_share(Rank rank) {
  Origin origin = version_.origin;
  origin.rank = rank;
  return within_memory([&] {
    return OwnShare::open({places_.nodes, places_.sight, places_.log}, origin, work_.tasks,
                          report_.damaged);
  });
}

Result<void> Drain::drain_node() {
  const std::uint64_t most = aggregate::most_planning_bytes(places_.memory_bytes);
  std::vector<DrainShare> shares;
  std::uint64_t planning = 0;
  for (const Rank rank : work_.set.members) {
    auto opened = open_share(rank);
    if (opened && !shares.empty() && planning + opened->share().planning_bytes() > most) {
      (void)OwnShare(*std::move(opened));  // until the others are written
      BELAY_TRY(write(std::exchange(shares, {})));
      own_.clear();
      planning = 0;
      opened = open_share(rank);
    }
    if (!opened) return Unexpected(opened.error());
    planning += opened->share().planning_bytes();
    shares.push_back(opened->take_share());
    own_.insert_or_assign(rank, std::move(opened));
  }
  return shares.empty() ? Result<void>{} : write(std::move(shares));
}

Result<void> Drain::drain_across() {
  // Nobody is asked before all can answer: to look at what the tier has may take long.
  auto& own = own_.at(version_.origin.rank);
  auto looked = brought_ ? Result<void>{} : in_step([&]() -> Result<void> {
    own = open_share(version_.origin.rank);
    return {};
  });
  if (!looked && looked.error().code() == Code::peer_lost) return looked;
  // The others go on, and must be told.
  if (!looked) own = Unexpected(std::move(looked).error());
  return in_step([&]() -> Result<void> {
    if (!own) return Unexpected(own.error());
    if (work_.set.members.empty()) return {};
    BELAY_ASSIGN(auto coming, ask_heads());
    return write_all(std::move(coming));
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

Result<std::map<Rank, ComingShare>> Drain::ask_heads() {
  Letters questions;
  for (const Rank rank : work_.set.members)
    if (rank != version_.origin.rank) questions[rank] = {static_cast<std::byte>(Ask::share)};
  BELAY_ASSIGN(const Letters answers, ask(questions));
  std::map<Rank, ComingShare> coming;
  for (const auto& [rank, letter] : questions) {
    BELAY_ASSIGN(const auto head, unwrap(rank, answers.at(rank)));
    BELAY_ASSIGN(auto share, ComingShare::decode_head(head));
    coming.emplace(rank, std::move(share));
  }
  return coming;
}

Result<void> Drain::write_all(std::map<Rank, ComingShare> coming) {
  const std::uint64_t most = aggregate::most_planning_bytes(places_.memory_bytes);
  // This rank's own is here anyhow, and comes first.
  std::uint64_t planning = own_.at(version_.origin.rank)->share().planning_bytes();
  std::map<Rank, ComingShare> next;
  for (auto& [rank, share] : coming) {
    if (planning > 0 && planning + share.planning_bytes() > most) {
      BELAY_ASSIGN(auto shares, gather_shares(std::exchange(next, {})));
      BELAY_TRY(write(std::move(shares)));
      planning = 0;
    }
    planning += share.planning_bytes();
    next.emplace(rank, std::move(share));
  }
  BELAY_ASSIGN(auto shares, gather_shares(std::move(next)));
  return write(std::move(shares));
}

Result<std::vector<DrainShare>> Drain::gather_shares(std::map<Rank, ComingShare> coming) {
  std::vector<DrainShare> shares;
  auto& own = own_.at(version_.origin.rank);
  // It brings a manifest, whatever else.
  if (!own->share().manifest_bytes.empty()) shares.push_back(own->take_share());
  const std::uint64_t part = std::clamp(places_.memory_bytes / kLetters, kLeastLetter, kMostLetter);
  for (auto& [rank, share] : coming) {
    while (!share.complete()) {
      Letters question;
      format::WireWriter writer(question[rank]);
      writer.field(static_cast<std::uint8_t>(Ask::part));
      writer.pair(share.taken(), part);
      BELAY_ASSIGN(const Letters answers, ask(question));
      BELAY_ASSIGN(const auto bytes, unwrap(rank, answers.at(rank)));
      BELAY_TRY(share.take(bytes));
    }
    shares.push_back(share.release());
  }
  return shares;
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
    writer.bytes(own->share().encode_head());
    return bytes;
  }
  if (about == Ask::part) {
    const auto begin = reader.field<std::uint64_t>();
    const auto most = reader.field<std::uint64_t>();
    writer.bytes(own->share().encode_part(begin, most));
    if (begin + bytes.size() - 1 == own->share().parts_bytes()) (void)own->take_share();
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
    const aggregate::Source& source = sources_[piece.source];
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

Result<void> Drain::write(std::vector<DrainShare> shares) {
  sources_ = {};
  source_places_ = {};
  std::vector<format::ManifestView> manifests;
  std::vector<aggregate::MemberManifest> carried;
  std::uint64_t blocks = 0;
  for (DrainShare& share : shares) {
    BELAY_ASSIGN(auto manifest, format::view_manifest(share.manifest_bytes));
    carried.push_back({manifest.head().origin.rank, std::move(share.manifest_bytes)});
    manifests.push_back(std::move(manifest));
    for (const aggregate::Source& source : share.sources) blocks += source.blocks.size();
    std::move(share.sources.begin(), share.sources.end(), std::back_inserter(sources_));
    source_places_.insert(share.places.begin(), share.places.end());
  }
  shares = {};
  std::sort(sources_.begin(), sources_.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto portions = aggregate::divide_memory(places_.memory_bytes, blocks, version_.block_bytes,
                                                 places_.encoders);
  auto plan = aggregate::plan_bundle(sources_, manifests, portions.extent_bytes, places_.match);
  manifests = {};
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
      portions,
      cancelled_};
  const SegmentId id{version_.origin.key, carried.front().rank};
  const std::string name = format::bundle_name(id);
  const std::string temporary = format::temporary_name(name);
  (void)places_.global.remove(temporary);  // left by a drain that did not end
  format::SegmentHeader header{version_.origin, version_.hash, version_.block_bytes};
  header.origin.rank = id.rank;
  vote::KeptBundle made{id, {}, true};
  for (const aggregate::Source& source : sources_) made.segments.push_back(source.id);
  report_.bundles.reserve(report_.bundles.size() + 1);
  const bool early = planted(Mistake::drain_early);
  std::optional<std::size_t> damaged;
  auto written = aggregate::write_bundle(tools, early ? name : temporary, header, sources_,
                                         std::move(plan), std::move(carried), damaged);
  if (damaged)
    report_.damaged.push_back(
        {sources_[*damaged].id, FileKind::segment, source_places_.at(sources_[*damaged].id)});
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
