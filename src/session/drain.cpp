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
enum class Ask : std::uint8_t { share = 0, bytes = 1 };
// How an answer begins.
constexpr std::uint8_t kDone = 0;
constexpr std::uint8_t kFailed = 1;

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
  std::vector<DrainShare> shares;
  for (const Rank rank : work_.set.members) {
    auto& opened = own_.emplace(rank, open_share(rank)).first->second;
    if (!opened) return Unexpected(opened.error());
    shares.push_back(opened->take_share());
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
    BELAY_ASSIGN(auto shares, gather_shares());
    return write(std::move(shares));
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

Result<std::vector<DrainShare>> Drain::gather_shares() {
  Letters questions;
  for (const Rank rank : work_.set.members)
    if (rank != version_.origin.rank) questions[rank] = {static_cast<std::byte>(Ask::share)};
  BELAY_ASSIGN(const Letters answers, ask(questions));
  std::vector<DrainShare> shares;
  for (const Rank rank : work_.set.members) {
    if (rank == version_.origin.rank) {
      shares.push_back(own_.at(rank)->take_share());
      continue;
    }
    BELAY_ASSIGN(const auto bytes, unwrap(rank, answers.at(rank)));
    BELAY_ASSIGN(auto share, DrainShare::decode(bytes));
    shares.push_back(std::move(share));
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
  if (reader.field<std::uint8_t>() == static_cast<std::uint8_t>(Ask::share)) {
    writer.bytes(own->take_share().encode());
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
    if (auto read = own->read(id, begin, std::span(bytes).subspan(at, length)); !read) {
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
    if (auto read = own->second->read(source.id, piece.begin, piece.into); !read) {
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
  std::vector<Manifest> manifests;
  std::vector<aggregate::MemberManifest> carried;
  for (DrainShare& share : shares) {
    carried.push_back({share.manifest.origin.rank, std::move(share.manifest_bytes)});
    manifests.push_back(std::move(share.manifest));
    std::move(share.sources.begin(), share.sources.end(), std::back_inserter(sources_));
    source_places_.insert(share.places.begin(), share.places.end());
  }
  std::sort(sources_.begin(), sources_.end(),
            [](const auto& a, const auto& b) { return a.id < b.id; });
  const auto plan = aggregate::plan_bundle(
      sources_, manifests, aggregate::extent_bytes_for(places_.memory_bytes), places_.match);
  manifests = {};
  const aggregate::Tools tools{
      places_.global,
      places_.chooser,
      places_.clock,
      [&](std::span<const std::span<const std::byte>> blocks, std::span<Fingerprint> names) {
        places_.hasher.hash(blocks, names);
      },
      [&](std::span<const aggregate::Piece> pieces, std::optional<std::size_t>& damaged) {
        return read(pieces, damaged);
      },
      places_.encoders,
      cancelled_};
  const SegmentId id{version_.origin.key, work_.set.number};
  const std::string name = format::bundle_name(id);
  const std::string temporary = format::temporary_name(name);
  (void)places_.global.remove(temporary);  // left by a drain that did not end
  format::SegmentHeader header{version_.origin, version_.hash, version_.block_bytes};
  header.origin.rank = work_.set.number;
  const bool early = planted(Mistake::drain_early);
  std::optional<std::size_t> damaged;
  auto written = aggregate::write_bundle(tools, early ? name : temporary, header, sources_, plan,
                                         carried, damaged);
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
  report_.written = *written;
  report_.bundle = id;
  for (const aggregate::Source& source : sources_) report_.bundled.push_back(source.id);
  return {};
}

/// From here on the ranks of the set have voted on the global tier.
Result<void> Drain::publish(const std::string& temporary, const std::string& name) {
  BELAY_TRY(vote::check_still_ours(places_.global, version_.origin.key.run));
  return places_.global.publish(temporary, name, /*exclusive=*/false);
}

}  // namespace belay::session
