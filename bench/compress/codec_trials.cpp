// SPDX-License-Identifier: Apache-2.0
#include "compress/belay_way.hpp"
#include "compress/cpu_timer.hpp"
#include "compress/trials.hpp"
#include "measure/cost.hpp"
#include "measure/must.hpp"

#include <algorithm>
#include <deque>
#include <functional>
#include <numeric>
#include <random>

namespace belay::bench {
namespace {

constexpr std::uint64_t kLeastBytes = 100 << 10;  ///< of a variable whose speed means something

const char* class_of(const ElementType& type) {
  switch (type.kind) {
    case ElementKind::f32:
    case ElementKind::f64:
    case ElementKind::c64:
    case ElementKind::c128:
      return "float";
    case ElementKind::bytes:
    case ElementKind::opaque:
    case ElementKind::serialized:
      return "other";
    default:
      return "integer";
  }
}

double seconds_of(const std::function<void()>& work) {
  const CpuTimer timer;
  work();
  return timer.seconds();
}

/// One variable of one moment, and memory of the same shape to come back to.
struct Subject {
  const Moment* moment = nullptr;
  MergedVariable variable, room;
  std::uint64_t bytes = 0;

  bool came_back() const {
    for (std::size_t i = 0; i < variable.ranks.size(); ++i)
      if (variable.ranks[i]->bytes != room.ranks[i]->bytes) return false;
    return true;
  }
};

struct Measured {
  std::vector<double> encoded_bytes, encode_s, decode_s;
};

void measure_belay(BelayWay& way, const Subject& subject, Measured& measured) {
  std::span<const std::byte> packed;
  measured.encode_s.push_back(seconds_of([&] { packed = way.pack(subject.variable); }));
  measured.decode_s.push_back(seconds_of([&] { way.unpack(packed, subject.room); }));
  measured.encoded_bytes.push_back(double(packed.size()));
  if (!subject.came_back()) die("what came back is not what went in");
}

/// The stream is merged outside of the timing: it is the same for all of them.
void measure_pass(const Pass& pass, const Subject& subject, Measured& measured) {
  Stream raw = {subject.variable.type, subject.variable.shape, {}};
  for (const Variable* part : subject.variable.ranks)
    raw.bytes.insert(raw.bytes.end(), part->bytes.begin(), part->bytes.end());
  Stream back = raw;
  Bytes encoded;
  measured.encode_s.push_back(seconds_of([&] { encoded = pass.encode(raw); }));
  measured.decode_s.push_back(seconds_of([&] { pass.decode(encoded, back); }));
  measured.encoded_bytes.push_back(double(encoded.size()));
  if (back != raw) die(fmt::format("{}: what came back is not what went in", pass.name()));
}

Json row_of(const Subject& subject, const std::string& codec, const Measured& measured) {
  return {{"application", subject.moment->application},
          {"when", subject.moment->when},
          {"variable", subject.variable.name},
          {"type", class_of(subject.variable.type)},
          {"codec", codec},
          {"bytes", subject.bytes},
          {"encoded_bytes", median(measured.encoded_bytes)},
          {"encode_s", median(measured.encode_s)},
          {"encode_turns_s", measured.encode_s},
          {"decode_s", median(measured.decode_s)}};
}

/// Every codec and `auto` in turn, over all moments, several times, in another order each time:
/// what one leaves in the caches may help or hinder the next.
void try_belay(const std::vector<Subject>& subjects, int repetitions, Json& rows) {
  std::vector<std::string> names = codec_names();
  names.push_back("auto");
  std::vector<std::vector<Measured>> measured(names.size(), std::vector<Measured>(subjects.size()));
  std::vector<std::string> chosen(subjects.size());
  std::vector<std::size_t> order(names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937 random(1);
  const auto memory = make_belay_memory();
  for (int turn = 0; turn < repetitions; ++turn) {
    std::deque<BelayWay> ways;
    for (const std::string& name : names) ways.emplace_back(name, kBandwidth, memory);
    for (std::size_t i = 0; i < subjects.size(); ++i) {
      std::shuffle(order.begin(), order.end(), random);
      for (const std::size_t k : order) measure_belay(ways[k], subjects[i], measured[k][i]);
    }
    for (std::size_t i = 0; i < subjects.size(); ++i)
      for (const Choice& choice : ways.back().choices())
        if (choice.variable == subjects[i].variable.name)
          chosen[i] = fmt::format("{} ({} samplings)", choice.codec, choice.samplings);
  }
  for (std::size_t i = 0; i < subjects.size(); ++i)
    for (std::size_t k = 0; k < names.size(); ++k) {
      rows.push_back(row_of(subjects[i], names[k], measured[k][i]));
      if (names[k] == "auto") rows.back()["chosen"] = chosen[i];
    }
}

}  // namespace

Json try_codecs(const std::vector<Moment>& moments, const TrialSettings& settings) {
  std::vector<std::vector<Checkpoint>> rooms;
  std::vector<Subject> subjects;
  for (const Moment& moment : moments) {
    rooms.push_back(blank(moment.ranks));
    const auto variables = match_variables(moment.ranks);
    const auto empty = match_variables(rooms.back());
    for (std::size_t i = 0; i < variables.size(); ++i) {
      Subject subject = {&moment, variables[i], empty[i], 0};
      for (const Variable* part : subject.variable.ranks) subject.bytes += part->bytes.size();
      if (subject.bytes >= kLeastBytes) subjects.push_back(std::move(subject));
    }
  }
  Json rows = Json::array();
  try_belay(subjects, settings.codec_repetitions, rows);
  for (const Subject& subject : subjects)
    for (const Pass* pass : {&fpc(), &fpzip(), &lz(), &gzip()})
      if (pass->takes(subject.variable.type)) {
        Measured measured;
        measure_pass(*pass, subject, measured);
        rows.push_back(row_of(subject, fmt::format("{} (paper)", pass->name()), measured));
      }
  return rows;
}

}  // namespace belay::bench
