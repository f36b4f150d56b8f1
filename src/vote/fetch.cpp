// SPDX-License-Identifier: Apache-2.0
#include "vote/fetch.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/names.hpp"

#include <algorithm>
#include <set>
#include <string_view>

namespace belay::vote {
namespace {

/// Which rank asks which other one in this attempt; nobody twice.
struct Question {
  Rank asker = 0;
  Rank reader = 0;
};

std::vector<Question> questions_of(const ManifestSources& sources, VersionKey key,
                                   const std::vector<std::vector<std::byte>>& needy,
                                   std::size_t attempt) {
  std::vector<Question> questions;
  for (Rank asker = 0; asker < needy.size(); ++asker) {
    const auto readers = sources.readers(key, asker);
    if (!needy[asker].empty() && attempt < readers.size())
      questions.push_back({asker, readers[attempt]});
  }
  return questions;
}

/// Empty if it cannot be read.
std::vector<std::byte> read_manifest(store::Tier& tier, VersionKey key, Rank owner, Log& log) {
  const std::string name = format::manifest_name(key, owner);
  for (store::Tier* const place : tier.places()) {
    auto bytes = store::read_whole(*place, name, format::check_manifest_front);
    const auto whole =
        bytes ? format::decode_manifest(*bytes) : Result<Manifest>(Unexpected(bytes.error()));
    if (whole) return *std::move(bytes);
    if (whole.error().code() == Code::not_found) continue;  // only in another place
    log.warn("manifest of rank {} for others: {}", owner, whole.error().message());
  }
  return {};
}

/// What the others asked of this rank is answered; what it asked itself comes back.
Result<std::vector<std::byte>> answer(ranks::Group& group, store::Tier& tier, VersionKey key,
                                      const std::vector<Question>& questions, Log& log) {
  std::vector<std::vector<std::byte>> answers;
  std::vector<Rank> askers;
  std::vector<Rank> from;
  for (const Question& question : questions) {
    if (question.asker == group.rank()) from.push_back(question.reader);
    if (question.reader != group.rank()) continue;
    askers.push_back(question.asker);
    answers.push_back(read_manifest(tier, key, question.asker, log));
  }
  std::vector<ranks::Message> out;
  for (std::size_t i = 0; i < askers.size(); ++i) out.push_back({askers[i], answers[i]});
  BELAY_ASSIGN(auto received, group.exchange(out, from));
  return received.empty() ? std::vector<std::byte>{} : std::move(received.front());
}

Result<Manifest> decode_for(std::span<const std::byte> bytes, VersionKey key, Rank rank,
                            const StoreId& store) {
  BELAY_ASSIGN(auto manifest, format::decode_manifest(bytes));
  const Origin& origin = manifest.origin;
  if (origin.key != key || origin.rank != rank || origin.store != store)
    return fail(Code::corruption, "another node sent another file's content");
  return manifest;
}

}  // namespace

ManifestSources::ManifestSources(const std::vector<Survey>& surveys) {
  for (Rank reader = 0; reader < surveys.size(); ++reader)
    for (const SurveyedManifest& manifest : surveys[reader].manifests)
      if (manifest.readable) {
        const PlaceSurvey& place = surveys[reader].places[manifest.place];
        add(manifest.key, manifest.rank, reader, place.directory, place.global);
      }
}

void ManifestSources::forget(VersionKey key, bool global) {
  for (auto& [id, readers] : readers_)
    if (id.key == key)
      std::erase_if(readers, [&](const Reader& reader) { return reader.global == global; });
  std::erase_if(readers_, [](const auto& entry) { return entry.second.empty(); });
}

std::vector<Rank> ManifestSources::readers(VersionKey key, Rank owner) const {
  const auto found = readers_.find({key, owner});
  if (found == readers_.end()) return {};
  std::vector<Rank> readers;
  for (const Reader& reader : found->second) readers.push_back(reader.rank);
  std::stable_partition(readers.begin(), readers.end(), [&](Rank r) { return r == owner; });
  readers.erase(std::unique(readers.begin(), readers.end()), readers.end());
  return readers;
}

std::vector<std::string> ManifestSources::directories(VersionKey key, Rank owner) const {
  const auto found = readers_.find({key, owner});
  std::set<std::string> directories;
  if (found != readers_.end())
    for (const Reader& reader : found->second)
      if (!reader.global) directories.insert(reader.directory);
  return {directories.begin(), directories.end()};
}

std::size_t ManifestSources::most_readers(VersionKey key) const {
  std::size_t most = 0;
  for (auto entry = readers_.lower_bound({key, 0});
       entry != readers_.end() && entry->first.key == key; ++entry)
    most = std::max(most, entry->second.size());
  return most;
}

std::vector<VersionKey> ManifestSources::versions() const {
  std::vector<VersionKey> keys;
  for (const auto& [id, readers] : readers_)
    if (keys.empty() || keys.back() != id.key) keys.push_back(id.key);
  return keys;
}

bool ManifestSources::all_at_home(VersionKey key, Rank ranks) const {
  for (Rank rank = 0; rank < ranks; ++rank) {
    const auto all = readers(key, rank);
    if (all.empty() || all.front() != rank) return false;
  }
  return true;
}

Result<Manifest> fetch_manifest(ranks::Group& group, store::Tier& tier,
                                const ManifestSources& sources, VersionKey key,
                                const StoreId& store, Log& log) {
  const Rank rank = group.rank();
  auto manifest = load_manifest(tier, key, rank, store);
  for (std::size_t attempt = 0; attempt < sources.most_readers(key); ++attempt) {
    const std::byte wanted{1};
    BELAY_ASSIGN(const auto needy,
                 group.gather({&wanted, manifest ? std::size_t{0} : std::size_t{1}}));
    const bool any =
        std::any_of(needy.begin(), needy.end(), [](const auto& n) { return !n.empty(); });
    if (!any) break;
    const auto questions = questions_of(sources, key, needy, attempt);
    BELAY_ASSIGN(const auto bytes, answer(group, tier, key, questions, log));
    if (!manifest && !bytes.empty()) manifest = decode_for(bytes, key, rank, store);
  }
  return manifest;
}

}  // namespace belay::vote
