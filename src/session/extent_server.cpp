// SPDX-License-Identifier: Apache-2.0
#include "session/extent_server.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"

namespace belay::session {
namespace {

constexpr std::size_t kNameBytes = 28;
constexpr std::size_t kQuestionBytes = kNameBytes + 8;
constexpr std::uint64_t kDecodedBytes = std::uint64_t{64} << 20;

void put_name(format::WireWriter& writer, const ExtentName& name) {
  writer.field(name.place);
  writer.pair(name.bundle.key.run, name.bundle.key.version);
  writer.field(name.bundle.rank);
  writer.field(name.extent);
}

ExtentName get_name(format::WireReader& reader) {
  ExtentName name;
  name.place = reader.field<catalog::Whereabouts::Place>();
  name.bundle.key.run = reader.field<Run>();
  name.bundle.key.version = reader.field<Version>();
  name.bundle.rank = reader.field<Rank>();
  name.extent = reader.field<std::uint32_t>();
  return name;
}

std::vector<ExtentName> decode_names(std::span<const std::byte> bytes) {
  std::vector<ExtentName> names;
  format::WireReader reader(bytes);
  while (reader.remaining() >= kNameBytes) names.push_back(get_name(reader));
  return names;
}

std::vector<EntryQuestion> decode_questions(std::span<const std::byte> bytes) {
  std::vector<EntryQuestion> questions;
  format::WireReader reader(bytes);
  while (reader.remaining() >= kQuestionBytes) {
    EntryQuestion& question = questions.emplace_back();
    question.extent = get_name(reader);
    question.entry = reader.field<std::uint32_t>();
    question.length = reader.field<std::uint32_t>();
  }
  return questions;
}

}  // namespace

std::vector<std::byte> encode_names(const std::vector<ExtentName>& names) {
  std::vector<std::byte> bytes;
  bytes.reserve(names.size() * kNameBytes);
  format::WireWriter writer(bytes);
  for (const ExtentName& name : names) put_name(writer, name);
  return bytes;
}

std::vector<std::byte> encode_questions(const std::vector<EntryQuestion>& questions) {
  std::vector<std::byte> bytes;
  bytes.reserve(questions.size() * kQuestionBytes);
  format::WireWriter writer(bytes);
  for (const EntryQuestion& question : questions) {
    put_name(writer, question.extent);
    writer.field(question.entry);
    writer.field(question.length);
  }
  return bytes;
}

void OpenBundles::add(catalog::Whereabouts::Place place, std::shared_ptr<store::Bundle> bundle) {
  const SegmentId id = bundle->id();
  bundles_.insert_or_assign({place, id}, std::move(bundle));
}

store::Bundle* OpenBundles::open(const ExtentName& name) {
  const auto [found, is_new] = bundles_.try_emplace({name.place, name.bundle});
  if (is_new) {
    auto& place = store::place_in(sight_, whereabouts_.directory(name.place));
    // One that cannot be opened is reported by whoever reads it for itself.
    if (auto opened = store::Bundle::open(place, name.bundle)) found->second = *std::move(opened);
  }
  return found->second.get();
}

void OpenBundles::release() {
  for (const auto& [key, bundle] : bundles_)
    if (bundle) bundle->release();
}

std::vector<std::shared_ptr<store::Bundle>> OpenBundles::take() {
  release();
  std::vector<std::shared_ptr<store::Bundle>> all;
  for (auto& [key, bundle] : bundles_)
    if (bundle) all.push_back(std::move(bundle));
  bundles_.clear();
  return all;
}

std::vector<std::byte> ExtentServer::hear(std::span<const std::byte> names) {
  for (const ExtentName& name : decode_names(names)) ++askers_[name];
  return {};
}

std::vector<std::byte> ExtentServer::tell_shared(std::span<const std::byte> names) const {
  std::vector<std::byte> answer;
  for (const ExtentName& name : decode_names(names)) {
    const auto found = askers_.find(name);
    answer.push_back(std::byte{found != askers_.end() && found->second > 1});
  }
  return answer;
}

void ExtentServer::make_room(const std::vector<EntryQuestion>& questions) {
  const auto count = [&] {
    for (const EntryQuestion& question : questions) {
      store::Bundle* const bundle = bundles_.open(question.extent);
      if (bundle == nullptr || !decoded_.insert(question.extent).second) continue;
      const auto place = bundle->place_of(question.entry);
      if (place) decoded_bytes_ += place->extent_bytes;
    }
  };
  count();
  if (decoded_bytes_ <= kDecodedBytes) return;
  bundles_.release();
  decoded_.clear();
  decoded_bytes_ = 0;
  count();
}

std::vector<std::byte> ExtentServer::answer(std::span<const std::byte> letter) {
  const auto questions = decode_questions(letter);
  make_room(questions);
  std::vector<std::size_t> begins;
  std::size_t bytes = 0;
  for (const EntryQuestion& question : questions) {
    begins.push_back(bytes);
    bytes += 1 + std::size_t{question.length};
  }
  std::vector<std::byte> answer(bytes);
  std::vector<store::Bundle*> bundles;
  for (const EntryQuestion& question : questions) bundles.push_back(bundles_.open(question.extent));
  readers_.run(questions.size(), [&](std::size_t i) {
    if (bundles[i] == nullptr) return;
    const auto place = bundles[i]->place_of(questions[i].entry);
    if (!place || place->length != questions[i].length) return;
    const auto into = std::span(answer).subspan(begins[i] + 1, place->length);
    const auto done =
        within_memory([&] { return bundles[i]->read_entry(questions[i].entry, 0, into); });
    answer[begins[i]] = std::byte{done.has_value()};
  });
  return answer;
}

}  // namespace belay::session
