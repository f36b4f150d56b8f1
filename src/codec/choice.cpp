// SPDX-License-Identifier: Apache-2.0
#include "codec/choice.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "codec/sampling.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>

namespace belay::codec {
namespace {

constexpr std::string_view kAuto = "auto";
/// Of a variable that have come, below which sampling costs more than it can save.
constexpr std::uint64_t kWorthSampling = 16 << 20;
/// Of an extent that is worth it by itself.
constexpr std::size_t kLargeExtent = 1 << 20;
/// The same, of a glance.
constexpr std::uint64_t kWorthGlance = 128 << 10;
/// What changes by less is the same; and what is so small a part of all bytes, whatever it was.
constexpr double kDrift = 1.15;
constexpr double kLeastDrift = 0.02;
/// The same, of what is looked at.
constexpr double kLeastLoudDrift = 0.1;
constexpr double kLeastPartDrift = 0.05;
/// What a better choice may save of the time that a variable takes which has changed e-fold.
constexpr double kSavedByDrift = 0.25;
constexpr double kMostSaved = 0.5;
/// What another shape is like.
constexpr double kOtherShape = 2;
/// What may be saved of one that has not changed, as far as can be seen.
constexpr double kSavedAnyway = 0.001;
/// What codecs leave of what a look does, at a guess.
constexpr double kLeftOfLook = 0.5;
/// What a look takes, and may take of the time that a variable does.
constexpr double kLook_s = 15e-6;
constexpr double kLookPays = 0.005;
/// How many samplings' time must be at stake for another: more and more of them, and above all
/// after one that changed nothing, so that they cost little even where a variable never rests.
constexpr double kMorePatience = 2;
constexpr double kMuchMorePatience = 4;
constexpr double kMostPatience = 64;
/// How many times as large as the extent that was sampled another may be before it is sampled, too:
/// a small one shows little of what repeats.
constexpr std::uint64_t kMuchLarger = 4;

/// Machines are this much faster or slower than Appraiser says, at most; one extent may be, by
/// chance, by so much; and it tells this much about all.
constexpr double kMostPace = 8;
constexpr double kMostSurprise = 2;
constexpr double kLearning = 1.0 / 8;
/// The same for the sizes of a variable.
constexpr double kMostBias = 4;

Result<void> check_codec(const std::string& name, const std::string& place) {
  if (name == kAuto || codec_named(name)) return {};
  std::vector<std::string_view> names = {kAuto};
  for (const Codec* codec : all_codecs()) names.push_back(codec->name());
  return fail(Code::invalid_argument, "{} is not a codec{}; did you mean {}? There are {}",
              in_quotes(name), place, nearest(name, names), either_of(names));
}

/// Only * and ? have a meaning: names of variables may well have brackets.
bool fits(const std::string& glob, const std::string& name) {
  std::string pattern;
  for (const char c : glob) {
    if (c == '[' || c == '\\') pattern += '\\';
    pattern += c;
  }
  return ::fnmatch(pattern.c_str(), name.c_str(), 0) == 0;
}

bool are_of_one_type(Elements a, Elements b) {
  a.dimensions = b.dimensions = 0;
  a.shape = b.shape = {};
  return a == b;
}

/// Equal but for the slowest extent: lists of particles grow and shrink.
bool are_alike(Elements a, Elements b) {
  a.shape[0] = b.shape[0] = 0;
  return a == b;
}

/// How many times as much, or as little.
double fold(double now, double before) {
  const double larger = std::max(now, before), smaller = std::min(now, before);
  return larger / std::max(smaller, larger * 1e-3);
}

/// The same of parts of all bytes: what is next to nothing may change without a difference.
double fold_of_part(double now, double before, double least) {
  return std::abs(now - before) > least ? fold(now, before) : 1;
}

double fold(const Look& now, const Look& before) {
  return std::max(fold_of_part(now.loud, before.loud, kLeastLoudDrift),
                  fold_of_part(now.part, before.part, kLeastPartDrift));
}

/// What is known of a variable.
struct Variable {
  const Codec* codec = nullptr;
  bool fixed = false;  ///< by a rule
  Elements elements;
  Chosen sums;
  double sampling_s = 0;         ///< that it took to sample it; 0: not sampled yet
  std::size_t extent_bytes = 0;  ///< of the one that was sampled
  double bytes_per_second = 0;   ///< that it was sampled for
  double patience = 1;
  double at_stake_s = 0;           ///< what better choices might have saved since it was sampled
  double seconds_per_byte = 0;     ///< that the last extent took, with the time to write it
  std::uint64_t unseen_bytes = 0;  ///< that came since it was looked at
  std::uint64_t bytes_since = 0;   ///< encoded since it was sampled
  double encode_s = 0;             ///< that the extent which was sampled should take
  double encoded_bytes = 0;        ///< the same
  Biases biases;
  double part = 0;          ///< encoded bytes for each raw one; 0: not encoded since
  double drift = 1;         ///< how many times as many, or as few, they have become
  bool is_glanced = false;  ///< which counts until it is sampled
  Look look;                ///< when it was chosen

  bool is_sampled() const { return sampling_s > 0; }
  /// Much smaller ones show little, and what comes of them tells little.
  bool tells(std::size_t raw_bytes) const {
    return raw_bytes >= std::max(kLeastSampled, extent_bytes / kMuchLarger);
  }
  bool is_due(const Elements& now, std::size_t raw_bytes) const {
    if (fixed) return false;
    if (!is_sampled())
      return raw_bytes >= kLargeExtent || sums.raw_bytes + raw_bytes >= kWorthSampling;
    return !are_of_one_type(elements, now) || raw_bytes / kMuchLarger >= extent_bytes;
  }
  /// What an extent came to.
  void learn(double encoded_part) {
    if (part == 0) part = encoded_part;
    drift = std::max(drift, fold_of_part(encoded_part, part, kLeastDrift));
  }
  /// What the extent came to that was sampled. Of next to nothing most is heads, of which nothing
  /// was told.
  void learn_bias(double bytes) {
    if (std::max(encoded_bytes, bytes) < kLeastDrift * double(extent_bytes)) return;
    double& bias = biases.emplace(codec->id(), 1).first->second;
    bias = std::clamp(bias * bytes / std::max(encoded_bytes, 1.0), 1.0, kMostBias);
  }
  bool is_new() const { return !fixed && !is_sampled() && !is_glanced; }
  bool wants_glance(std::size_t raw_bytes) const {
    if (fixed || is_sampled() || codec->id() == CodecId::raw) return false;
    return is_glanced || sums.raw_bytes + raw_bytes >= kWorthGlance;
  }
  /// Since it was last glanced at.
  bool has_changed(const Look& now) const {
    return !is_glanced || std::max(drift, fold(now, look)) > kDrift;
  }
  const Codec* take_glance(const Codec* smallest, const Look& now) {
    if (is_sampled()) return codec;  // by another thread, meanwhile
    codec = smallest;
    is_glanced = true;
    look = now;
    part = 0;
    drift = 1;
    return codec;
  }
  /// What is left raw always comes to the same, what was quiet is encoded in the way of the quiet,
  /// and what was there again may be gone: it must be looked at.
  bool wants_look(std::size_t raw_bytes, double bandwidth) const {
    if (fixed || !is_sampled() || !tells(raw_bytes)) return false;
    return double(unseen_bytes) * std::max(seconds_per_byte, 1 / bandwidth) * kLookPays >= kLook_s;
  }
  /// What a better choice might save of what came since the last look.
  double saving_s(const Elements& shaped, const Look& now, double bandwidth) const {
    const double change = std::max({drift, fold(now, look), fold(bandwidth, bytes_per_second),
                                    are_alike(elements, shaped) ? 1.0 : kOtherShape});
    const double saved = change > kDrift ? kSavedByDrift * std::log(change) : kSavedAnyway;
    const double expected = std::max(seconds_per_byte, kLeftOfLook * now.part / bandwidth);
    return std::min(saved, kMostSaved) * expected * double(unseen_bytes);
  }
  bool is_worth_sampling() const { return at_stake_s >= patience * sampling_s; }

  void take(const Sampled& sampled, const Look& seen, const Elements& now, std::size_t raw_bytes,
            double bandwidth) {
    const bool again = is_sampled() && are_of_one_type(elements, now);
    const double longer = sampled.best == codec ? kMuchMorePatience : kMorePatience;
    patience = again ? std::min(patience * longer, kMostPatience) : 1;
    at_stake_s = 0;
    unseen_bytes = 0;
    codec = sampled.best;
    elements = now;
    sampling_s = sampled.took_s;
    extent_bytes = raw_bytes;
    bytes_per_second = bandwidth;
    bytes_since = 0;
    encode_s = sampled.encode_s;
    encoded_bytes = sampled.encoded_bytes;
    look = seen;
    part = 0;
    drift = 1;
    ++sums.samplings;
  }
};

}  // namespace

Result<void> check(const Wishes& wishes) {
  for (const auto& [glob, name] : wishes.rules)
    BELAY_TRY(check_codec(name, " (of " + in_quotes(glob) + ")"));
  return check_codec(wishes.otherwise, "");
}

struct Chooser::State {
  explicit State(Wishes w) : wishes(std::move(w)) { set_bandwidth(wishes.bytes_per_second); }

  void set_bandwidth(double value) {
    rates.bytes_per_second = std::isfinite(value) ? std::max(value, 1.0) : 1e15;
  }

  /// What an extent took, of what was told.
  void learn_pace(double ratio) {
    const double now = rates.pace * std::clamp(ratio, 1 / kMostSurprise, kMostSurprise);
    rates.pace = std::clamp(rates.pace + (now - rates.pace) * kLearning, 1 / kMostPace, kMostPace);
  }

  /// nullptr: auto.
  const Codec* wished(const std::string& name) const {
    for (const auto& [glob, codec] : wishes.rules)
      if (fits(glob, name)) return codec_named(codec);
    return codec_named(wishes.otherwise);
  }

  Variable& known(std::string_view name) {
    auto found = variables.find(name);
    if (found == variables.end()) {
      found = variables.emplace(std::string(name), Variable{}).first;
      Variable& variable = found->second;
      variable.codec = wished(found->first);
      variable.fixed = variable.codec != nullptr;
    }
    return found->second;
  }

  const Wishes wishes;
  mutable std::mutex mutex;
  Rates rates;
  std::map<std::string, Variable, std::less<>> variables;
};

Chooser::Chooser(Wishes wishes) : state_(std::make_unique<State>(std::move(wishes))) {}

Chooser::~Chooser() = default;

const Codec& Chooser::choose(std::string_view variable, const Elements& elements,
                             std::span<const std::byte> raw, Workspace& workspace) {
  Variable known;
  Rates rates;
  {
    const std::lock_guard lock(state_->mutex);
    Variable& shared = state_->known(variable);
    rates = state_->rates;
    shared.unseen_bytes += raw.size();
    if (shared.is_new()) shared.codec = &unsampled(rates.bytes_per_second);
    known = shared;
  }
  if (raw.size() < kLeastSampled) return *known.codec;
  const double bandwidth = rates.bytes_per_second;
  const bool is_due = known.is_due(elements, raw.size());
  const bool wants_glance = known.wants_glance(raw.size());
  if (!is_due && !wants_glance && !known.wants_look(raw.size(), bandwidth)) return *known.codec;
  const Field field(elements, raw);
  std::optional<Look> seen;
  if (!is_due) {
    seen = look(*known.codec, field, workspace);
    if (wants_glance) {
      if (!known.has_changed(*seen)) return *known.codec;
      const Codec* const smallest = codec::smallest(field, workspace);
      const std::lock_guard lock(state_->mutex);
      return *state_->known(variable).take_glance(smallest, *seen);
    }
    const std::lock_guard lock(state_->mutex);
    Variable& shared = state_->known(variable);
    if (shared.sums.samplings != known.sums.samplings) return *shared.codec;
    shared.at_stake_s += shared.saving_s(elements, *seen, bandwidth);
    shared.unseen_bytes = 0;
    if (!shared.is_worth_sampling()) return *shared.codec;
    shared.at_stake_s = 0;  // so that no other thread samples it for the same reason
  }
  const Codec* const former = known.is_sampled() ? known.codec : nullptr;
  // Others may choose meanwhile. Of two that sample the same variable at once the first counts.
  const Sampled sampled =
      sample(field, known.bytes_since + raw.size(), rates, former, known.biases, workspace);
  if (!seen || !look_alike(*known.codec, *sampled.best))
    seen = look(*sampled.best, field, workspace);
  const std::lock_guard lock(state_->mutex);
  Variable& shared = state_->known(variable);
  if (shared.sums.samplings == known.sums.samplings)
    shared.take(sampled, *seen, elements, raw.size(), bandwidth);
  return *sampled.best;
}

void Chooser::learn(std::string_view variable, std::uint64_t raw_bytes, std::uint64_t encoded_bytes,
                    std::uint64_t encode_ns) {
  const std::lock_guard lock(state_->mutex);
  const auto found = state_->variables.find(variable);
  if (found == state_->variables.end() || raw_bytes == 0) return;
  Variable& known = found->second;
  // Of the first extent since it was sampled, which is that one.
  if (known.bytes_since == 0 && known.is_sampled() && raw_bytes == known.extent_bytes) {
    if (encode_ns > 0) state_->learn_pace(double(encode_ns) * 1e-9 / known.encode_s);
    known.learn_bias(double(encoded_bytes));
  }
  known.sums.raw_bytes += raw_bytes;
  known.sums.encoded_bytes += encoded_bytes;
  known.sums.encode_ns += encode_ns;
  known.bytes_since += raw_bytes;
  if (!known.tells(raw_bytes)) return;
  const double write_s = double(encoded_bytes) / state_->rates.bytes_per_second;
  known.seconds_per_byte = (double(encode_ns) * 1e-9 + write_s) / double(raw_bytes);
  known.learn(double(encoded_bytes) / double(raw_bytes));
}

void Chooser::set_bandwidth(double bytes_per_second) {
  const std::lock_guard lock(state_->mutex);
  state_->set_bandwidth(bytes_per_second);
}

std::vector<Chosen> Chooser::chosen() const {
  const std::lock_guard lock(state_->mutex);
  std::vector<Chosen> all;
  for (const auto& [name, variable] : state_->variables) {
    all.push_back(variable.sums);
    all.back().variable = name;
    all.back().codec = variable.codec;
  }
  return all;
}

}  // namespace belay::codec
