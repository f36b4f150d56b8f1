// SPDX-License-Identifier: Apache-2.0
#include "codec/sampling.hpp"

#include "codec/appraiser.hpp"
#include "codec/workspace.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace belay::codec {
namespace {

/// Of what has come of a variable since the last time, what is looked at closely: more would take
/// longer than a good choice saves.
constexpr double kSampledPart = 1.0 / 320;
constexpr double kLeastSample = 16 << 10;
constexpr double kMostSample = 48 << 10;
/// Of the piece that zstd-long is tried on, which finds what is far apart; less would show little
/// of it.
constexpr std::size_t kMostFar = 320 << 10;
constexpr std::size_t kLeastFar = 256 << 10;
constexpr std::size_t kFarPart = 16;
/// At a glance, all that is not quiet is tried if it is no more than this.
constexpr std::size_t kMostAll = 64 << 10;
/// Of what is noise at a glance, and is looked at again.
constexpr std::size_t kLeastSecondGlance = 256 << 10;
constexpr std::size_t kMostSecondGlance = 512 << 10;
/// Of a look.
constexpr double kLookBytes = 4 << 10;
constexpr std::size_t kMostLookPlanes = 32;
/// What a sampling takes: by itself, for a byte of the sample and a plane of it, and for a byte
/// that zstd-long is tried on, and of rows.
constexpr double kSampling_s = 30e-6;
constexpr double kSampledByte_s = 2.5e-9;
constexpr double kSampledPlane_s = 3e-6;
constexpr double kFarByte_s = 0.5e-9;
constexpr double kRowByte_s = 1e-9;
/// Places that are not quiet, of those that were looked at: fewer do not show what goes on there.
constexpr std::size_t kFewLouds = 4;
/// By what part zstd-long must be smaller there.
constexpr double kMuchSmaller = 0.1;
/// What the map of quiet groups takes of a small extent, and what is one.
constexpr double kMapBytes = 40;
constexpr std::size_t kMapCounts = 512 << 10;
/// What a smaller size may cost, of the time.
constexpr double kAsGood = 0.01;
/// What zstd-long takes for a byte, and for one of what it leaves.
constexpr double kFar_ns = 0.08;
constexpr double kFarLiteral_ns = 18;
/// What a byte takes that is left as it is.
constexpr double kCopy_ns = 0.3;
/// What the fastest of those that compress with Zstandard takes for a byte that is not quiet.
constexpr double kLeastZstd_ns = 0.3;
/// What must be saved for what can be read as it is not to be.
constexpr double kWorthwhile = 0.05;
/// The part that is left, at a glance, of what is noise in most bytes.
constexpr double kNoise = 0.75;
/// The part that LZ4 leaves, of what counting bytes does, where much is there again.
constexpr double kAgain = 0.8;
/// Then, what others leave of what they leave of a sample.
constexpr double kFoundByShuffled = 0.55;
constexpr double kFoundBySearch = 0.4;
constexpr double kFoundByContext = 0.45;
/// The part that LZ4 leaves of bytes as they are where zstd-long may be worth it.
constexpr double kNearlyAllAgain = 0.25;
/// The others are measured by it.
constexpr CodecId kYardstick = CodecId::shuffle_zstd;

/// What a quiet byte takes: most leave groups of them out.
double quiet_ns(CodecId id) {
  if (id == CodecId::lorenzo_zstd || id == CodecId::lorenzo_bits) return 0.4;
  return 0.06;
}

/// What a codec would make of the extent.
struct Standing {
  const Codec* codec = nullptr;
  double bytes = 0;
  double encode_s = 0;
  double total_s = 0;  ///< with the time to write
};

/// Differences, and the codecs that take them.
struct Taken {
  Transform transform;
  CodecId leads, planes;
};
constexpr Taken kDelta1 = {Transform::delta1, CodecId::delta1_bits, CodecId::delta1_zstd};
constexpr Taken kDelta2 = {Transform::delta2, CodecId::delta2_bits, CodecId::delta2_zstd};
constexpr Taken kDelta3 = {Transform::delta3, CodecId::delta3_bits, CodecId::delta3_zstd};
constexpr Taken kLorenzo = {Transform::lorenzo, CodecId::lorenzo_bits, CodecId::lorenzo_zstd};

/// Compares what codecs would make of one extent.
class Contest {
 public:
  Contest(const Field& field, double sample_bytes, const Rates& rates, const Biases& biases,
          Workspace& workspace)
      : field_(field),
        rates_(rates),
        biases_(biases),
        workspace_(workspace),
        sample_(field.loud_sample(sample_bytes, workspace)),
        appraiser_(field.elements(), sample_, workspace) {
    const double bytes = double(field.raw().size());
    add(CodecId::raw, bytes, rates.pace * kCopy_ns * 1e-9 * bytes);
  }

  void run() {
    const Appraisal unshuffled = appraiser_.lz4();
    const PlaneAppraisals shuffled = appraiser_.planes(Transform::shuffle);
    add(CodecId::lz4, unshuffled);
    if (may_win()) {
      sees_little_ = unshuffled.part < kAgain * shuffled.zstd.part;
      compare_zstd(shuffled, shuffled.lz4.part < kAgain * shuffled.zstd.part || sees_little_);
    }
    add(CodecId::shuffle_lz4, seen_whole(shuffled.lz4, kFoundByShuffled));
    const std::size_t far = std::min(kMostFar, field_.raw().size() / kFarPart);
    if (unshuffled.part < kNearlyAllAgain && far >= kLeastFar) try_far(far);
  }

  /// Of those that take about the least time the smallest, or `former` if it is as good; raw if
  /// nothing saves enough.
  const Standing& winner(const Codec* former) const {
    const Standing& raw = all_.front();
    const double most_s = best().total_s * (1 + kAsGood);
    const Standing* least = nullptr;
    const Standing* kept = nullptr;
    for (const Standing& one : all_) {
      if (one.total_s > most_s) continue;
      if (!least || one.bytes < least->bytes) least = &one;
      if (one.codec == former) kept = &one;
    }
    if (least->bytes > (1 - kWorthwhile) * raw.bytes) return raw;
    return kept && kept->bytes * (1 - kAsGood) <= least->bytes ? *kept : *least;
  }

  /// About what all this takes.
  double took_s() const {
    return kSampling_s + kSampledByte_s * double(sample_.size()) +
           kSampledPlane_s * double(field_.record()) + more_s_;
  }

 private:
  const Standing& best() const {
    return *std::min_element(all_.begin(), all_.end(), [](const Standing& a, const Standing& b) {
      return a.total_s < b.total_s;
    });
  }
  /// Whether one that compresses with Zstandard could take less time than the best so far.
  bool may_win() const {
    return rates_.pace * kLeastZstd_ns * 1e-9 * field_.loud_bytes() < best().total_s;
  }

  /// `again`: much is, so that a search pays.
  void compare_zstd(const PlaneAppraisals& shuffled, bool again) {
    const auto add_planes = [&](CodecId id, const PlaneAppraisals& planes) {
      add(id, again ? seen_whole(planes.zstd_search, kFoundBySearch) : planes.zstd);
    };
    add_planes(CodecId::shuffle_zstd, shuffled);
    if (!appraiser_.has_strides()) return;
    const auto [taken, part] = compare_leads();
    const bool may_suit = again || !is_floating() || part > kNoise / 2;
    // Differences of floats that leave more than the numbers do are no better as planes.
    if (may_suit && (part < shuffled.zstd.part || !is_floating()))
      add_planes(taken.planes, appraiser_.planes(taken.transform));
  }

  /// Of those that look farther than LZ4 does: what is there again nearby is there far apart, too,
  /// which a sample does not show.
  Appraisal seen_whole(const Appraisal& appraisal, double found) const {
    if (!sees_little_) return appraisal;
    return {appraisal.part * found, appraisal.ns * (0.7 + 0.3 * found)};
  }

  bool is_floating() const { return field_.elements().number == Elements::Number::floating; }

  /// The differences that leave the least, and what they leave.
  std::pair<Taken, double> compare_leads() {
    std::pair<Taken, double> least = {kDelta1, HUGE_VAL};
    const auto take = [&](const Taken& taken, const Appraisal& appraisal) {
      add(taken.leads, appraisal);
      const bool less = appraisal.part < least.second;
      if (less) least = {taken, appraisal.part};
      return less;
    };
    const auto compare = [&](const Taken& taken) {
      return take(taken, appraiser_.leads(taken.transform));
    };
    const Appraisal delta1 = appraiser_.leads(Transform::delta1);
    take(kDelta1, delta1);
    if (compare(kDelta2)) compare(kDelta3);
    if (const Piece rows = field_.rows(); !rows.empty()) {
      more_s_ += kRowByte_s * double(rows.size());
      // Of rows that have quiet places, and a sample that has none: held against the same there.
      Appraiser of_rows(field_.elements(), rows, workspace_);
      Appraisal across = of_rows.leads(Transform::lorenzo);
      const double along = of_rows.leads(Transform::delta1).part;
      across.part *= along > 0 ? delta1.part / along : 1;
      take(kLorenzo, across);
    }
    // What repeats in integers, a search finds.
    if (is_floating())
      add(CodecId::context_bits, seen_whole(appraiser_.leads(Transform::context), kFoundByContext));
    return least;
  }

  /// What lies far apart shows only in a piece that is larger than the sample.
  void try_far(std::size_t bytes) {
    const Piece raw = field_.raw();
    const Piece piece = raw.subspan((raw.size() - bytes) / 2, bytes);
    const std::span<std::byte> to = workspace_.trial(bytes);
    const auto encoded =
        codec_of(CodecId::zstd_long)->encode(field_.elements(), piece, to, workspace_);
    const double part = double(encoded.value_or(bytes)) / double(bytes);
    more_s_ += kFarByte_s * double(bytes);
    const double ns = kFar_ns + kFarLiteral_ns * part;
    add(CodecId::zstd_long, part * double(raw.size()),
        rates_.pace * ns * 1e-9 * double(raw.size()));
  }

  void add(CodecId id, const Appraisal& appraisal) {
    const double ns = appraisal.ns * field_.loud_bytes() + quiet_ns(id) * field_.quiet_bytes();
    add(id, appraisal.part * field_.loud_bytes(), rates_.pace * ns * 1e-9);
  }
  void add(CodecId id, double bytes, double encode_s) {
    if (const auto bias = biases_.find(id); bias != biases_.end())
      bytes = std::min(bytes * bias->second, double(field_.raw().size()));
    all_.push_back({codec_of(id), bytes, encode_s, encode_s + bytes / rates_.bytes_per_second});
  }

  const Field& field_;
  const Rates& rates_;
  const Biases& biases_;
  Workspace& workspace_;
  const Piece sample_;
  Appraiser appraiser_;
  bool sees_little_ = false;
  double more_s_ = 0;
  std::vector<Standing> all_;  ///< the first is raw
};

/// Little, for what must not take long.
Piece glance_at(const Field& field, Workspace& workspace) {
  constexpr double kLittle = 8 << 10, kMore = 32 << 10;
  return field.sample(field.is_loud_all_over() ? kMore : kLittle, workspace);
}

/// Encoded bytes of a sample.
double encoded_bytes(CodecId id, const Elements& elements, Piece sample, Workspace& workspace) {
  const auto to = workspace.trial(sample.size());
  return double(codec_of(id)->encode(elements, sample, to, workspace).value_or(sample.size()));
}

/// What is left raw may become smooth, which LZ4 does not see.
bool looks_at_planes(const Codec& chosen) { return chosen.id() == CodecId::raw; }

}  // namespace

const Codec* smallest(const Field& field, Workspace& workspace) {
  const Elements& elements = field.elements();
  const Piece raw = field.raw();
  const Piece few = field.all_loud(std::min(kMostAll, raw.size() / 2), workspace);
  const Piece sample = few.empty() ? glance_at(field, workspace) : few;
  const bool has_strides =
      layout_for(Transform::delta1, elements, raw.size()).differences.strides > 0;
  const bool is_floating = elements.number == Elements::Number::floating;
  CodecId best = CodecId::raw;
  double least = HUGE_VAL;
  const auto attempt = [&](CodecId id, double more_bytes = 0) {
    const double bytes = encoded_bytes(id, elements, sample, workspace) + more_bytes;
    const bool better = bytes < least;
    if (better) least = bytes, best = id;
    return better;
  };
  if (few.empty() || !has_strides) attempt(kYardstick);
  if (has_strides) {
    const bool leads_are_better = attempt(kDelta1.leads);
    // Numbers that are noise by themselves and in their differences are so in any form.
    const bool is_noise = !leads_are_better && least > kNoise * double(sample.size());
    const bool planes_are_better =
        (few.empty() || !is_floating) && !is_noise && attempt(kDelta1.planes);
    const auto form = planes_are_better ? &Taken::planes : &Taken::leads;
    if ((leads_are_better || planes_are_better) && attempt(kDelta2.*form)) attempt(kDelta3.*form);
    if (is_floating) attempt(CodecId::context_bits);  // noise to all others may be there again
    if (is_floating && best != CodecId::context_bits && field.is_loud_all_over() &&
        raw.size() >= kLeastSecondGlance && least > kNoise * double(sample.size())) {
      // Perhaps farther apart than a glance shows. All that is noise takes long to write.
      const Piece more = raw.first(std::min(raw.size(), kMostSecondGlance));
      const double bytes = encoded_bytes(CodecId::context_bits, elements, more, workspace) *
                           double(sample.size()) / double(more.size());
      if (bytes < least * (1 - kMuchSmaller)) least = bytes, best = CodecId::context_bits;
    }
  }
  // Without a map of what is quiet, it may be the smallest where little is not; but it is slower,
  // and what it found again may not be there again the next time.
  least *= 1 - kMuchSmaller;
  if (!few.empty() && raw.size() <= kMapCounts) attempt(CodecId::zstd_long, -kMapBytes);
  return codec_of(best);
}

Sampled sample(const Field& field, std::uint64_t seen_bytes, const Rates& rates,
               const Codec* former, const Biases& biases, Workspace& workspace) {
  if (field.louds() < kFewLouds && field.looks() < Field::kCloseLooks)
    return sample(Field(field.elements(), field.raw(), Field::kCloseLooks), seen_bytes, rates,
                  former, biases, workspace);
  const double wanted = std::clamp(double(seen_bytes) * kSampledPart, kLeastSample, kMostSample);
  Contest contest(field, wanted, rates, biases, workspace);
  contest.run();
  const Standing best = contest.winner(former);
  return {best.codec, contest.took_s(), best.encode_s, best.bytes};
}

Look look(const Codec& chosen, const Field& field, Workspace& workspace) {
  const Piece some = field.sample(kLookBytes, workspace);
  double part = 1;
  if (looks_at_planes(chosen) && field.record() <= kMostLookPlanes)
    part = Appraiser(field.elements(), some, workspace).planes(Transform::shuffle).zstd.part;
  else
    part = encoded_bytes(CodecId::lz4, field.elements(), some, workspace) / double(some.size());
  return {field.loud_part(), part * field.loud_part()};
}

bool look_alike(const Codec& a, const Codec& b) { return looks_at_planes(a) == looks_at_planes(b); }

const Codec& unsampled(double bytes_per_second) {
  // What shuffle-zstd does to fields of real programs on a core of 2020, careful in both.
  constexpr double kEncoded = 1.0e9;
  constexpr double kSaved = 0.4;
  const bool pays = kSaved / bytes_per_second > 1 / kEncoded;
  return *codec_of(pays ? CodecId::shuffle_zstd : CodecId::raw);
}

}  // namespace belay::codec
