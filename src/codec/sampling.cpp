// SPDX-License-Identifier: Apache-2.0
#include "codec/sampling.hpp"

#include "codec/payload_layout.hpp"
#include "codec/quiet_groups.hpp"
#include "codec/workspace.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <vector>

namespace belay::codec {
namespace {

using Piece = std::span<const std::byte>;

/// How much of what is not quiet in an extent is tried: a part of it, within bounds.
struct Size {
  double part = 1;
  double least = 0;
  double least_if_loud = 0;  ///< all over
  double most = 0;
};
/// With several codecs to try, more would take longer than a good choice saves on the extent.
/// Numbers that are noise in most bytes need enough for PlaneCodec to notice, as it will.
constexpr Size kSample = {1.0 / 32, 64 << 10, 288 << 10, 288 << 10};
constexpr Size kGlance = {1.0 / 256, 8 << 10, 32 << 10, 32 << 10};
/// Of a sample from one place: large enough for what is there again to show, but not for much that
/// is quiet.
constexpr std::size_t kPiece = 32 << 10;
constexpr std::size_t kLoudPiece = 8 << 10;
constexpr std::size_t kPieces = 16;
/// Each codec is tried on this part of the sample, too, to tell what grows with an extent from what
/// any takes.
constexpr std::size_t kSmaller = 8;
/// Of the one piece for zstd-long, which finds what is far apart; and where nearly all is there
/// again, so that it is fast.
constexpr std::size_t kFarBytes = 4 << 20;
constexpr std::size_t kAgainBytes = 512 << 10;
/// Of an extent that is nearly all quiet: fewer bytes that are not are not worth trying much.
constexpr double kLeastLoud = 768 << 10;
/// At a glance, all that is not quiet is tried if it is no more than this.
constexpr std::size_t kMostAll = 64 << 10;
/// By what part zstd-long must be smaller there.
constexpr double kMuchSmaller = 0.1;
/// What the map of quiet groups takes of a small extent, and what is one.
constexpr double kMapBytes = 40;
constexpr std::size_t kMapCounts = 512 << 10;
/// What a smaller size may cost, of the time.
constexpr double kAsGood = 0.03;
/// What a byte takes that is left as it is.
constexpr double kCopyByte_s = 0.3e-9;
/// What Zstandard takes more than LZ4 for a byte of which nearly all are quiet.
constexpr double kEntropyByte_s = 0.1e-9;
/// What must be saved for what can be read as it is not to be.
constexpr double kWorthwhile = 0.05;
/// The part that is left, at a glance, of what is noise in most bytes.
constexpr double kNoise = 0.75;
/// How many of those that were tried on little are tried on more.
constexpr std::size_t kFinalists = 5;
/// What the others are measured by.
constexpr CodecId kYardstick = CodecId::shuffle_zstd;

/// What a quiet byte takes: most leave groups of them out.
double quiet_byte_s(CodecId id) {
  if (id == CodecId::lorenzo_zstd || id == CodecId::lorenzo_bits) return 0.4e-9;
  return id == CodecId::zstd_long ? 0.18e-9 : 0.06e-9;
}

/// An extent, and where something goes on in it: the places that are not quiet, of some.
class Field {
 public:
  Field(const Elements& elements, Piece raw)
      : elements_(elements),
        raw_(raw),
        record_(layout_for(Transform::shuffle, elements, raw.size()).record_bytes),
        groups_(std::min(record_, kGroup), raw.size()) {
    for (std::size_t i = 0; i < kLooks; ++i) {
      const std::size_t at = raw.size() / kGroup * (2 * i + 1) / (2 * kLooks) * kGroup;
      if (at == 0 || at + kGroup > raw.size() || !groups_.is_quiet(raw.data() + at))
        loud_[louds_++] = at;
    }
  }

  Piece raw() const { return raw_; }
  /// Pieces are cut between records. Elements may be larger: larger than the extent, even.
  std::size_t record() const { return record_; }
  double loud_part() const { return double(louds_) / kLooks; }
  double loud_bytes() const { return loud_part() * double(raw_.size()); }
  double quiet_bytes() const { return double(raw_.size()) - loud_bytes(); }

  /// Pieces from places all over it, one after the other, since a field is not the same everywhere.
  /// They are large enough for some rows or planes, so that differences across them show.
  Piece sample(const Size& size, Workspace& workspace) const {
    const double least = louds_ > kLooks * 3 / 4 ? size.least_if_loud : size.least;
    const double wanted = std::clamp(loud_bytes() * size.part, least, size.most);
    const std::size_t bytes = std::min(static_cast<std::size_t>(wanted), raw_.size() / 4);
    const std::size_t pieces = std::clamp(bytes / least_piece(), std::size_t{1}, kPieces);
    const std::size_t piece = std::max<std::size_t>(bytes / pieces / record_, 1) * record_;
    const auto room = workspace.sample(pieces * piece);
    std::byte* end = room.data();
    for (std::size_t i = 0; i < pieces; ++i) {
      const std::size_t place =
          louds_ > 0 ? loud_[(2 * i + 1) * louds_ / (2 * pieces)] : raw_.size() / 2;
      const std::size_t first = std::min(place - std::min(place, piece / 2), raw_.size() - piece);
      const Piece taken = raw_.subspan(first / record_ * record_, piece);
      end = std::copy(taken.begin(), taken.end(), end);
    }
    return room;
  }

  /// All that is not quiet, one after the other; empty: it is more than that.
  Piece all_loud(std::size_t most, Workspace& workspace) const {
    if (loud_bytes() > double(most) || raw_.size() < kLooks * kGroup) return {};
    const auto room = workspace.sample(most + kGroup);
    std::byte* end = room.data();
    std::byte* const last = end + most;
    for (std::size_t at = 0; at + kGroup <= raw_.size(); at += kGroup) {
      if (at > 0 && groups_.is_quiet(raw_.data() + at)) continue;
      if (end >= last) return {};
      end = std::copy_n(raw_.begin() + static_cast<std::ptrdiff_t>(at), kGroup, end);
    }
    return room.first(static_cast<std::size_t>(end - room.data()));
  }

  /// Not quiet, of a part of it.
  double loud_bytes_of(Piece piece) const {
    std::size_t quiet = 0;
    for (std::size_t at = kGroup; at + kGroup <= piece.size(); at += kGroup)
      quiet += groups_.is_quiet(piece.data() + at) ? kGroup : 0;
    return double(piece.size() - quiet);
  }

 private:
  static constexpr std::size_t kGroup = QuietGroups::kGroupBytes;
  static constexpr std::size_t kLooks = 256;

  std::size_t least_piece() const {
    const Differences strides = layout_for(Transform::lorenzo, elements_, raw_.size()).differences;
    const std::size_t far = strides.strides == 0 ? 0 : strides.stride[strides.strides - 1];
    const std::size_t rows = std::min(4 * far * strides.number_bytes, raw_.size() / 64);
    return std::max(rows, louds_ < kLooks / 2 ? kLoudPiece : kPiece);
  }

  const Elements& elements_;
  const Piece raw_;
  const std::size_t record_;
  const QuietGroups groups_;
  std::array<std::size_t, kLooks> loud_{};
  std::size_t louds_ = 0;
};

/// What a codec would make of the extent.
struct Trial {
  const Codec* codec = nullptr;
  double bytes = 0;
  double encode_s = 0;
  double total_s = 0;  ///< with the time to write
};

bool sooner(const Trial& a, const Trial& b) { return a.total_s < b.total_s; }

/// Tries one codec after the other on the same bytes.
class Contest {
 public:
  Contest(const Elements& elements, const Field& field, double bytes_per_second,
          Workspace& workspace, os::Clock& clock)
      : elements_(elements),
        field_(field),
        bytes_per_second_(bytes_per_second),
        workspace_(workspace),
        clock_(clock),
        sample_(field.sample(kSample, workspace)),
        sample_loud_(field.loud_bytes_of(sample_)),
        few_(sample_.first(std::max(sample_.size() / kSmaller / field.record(), std::size_t{1}) *
                           field.record())) {
    add({codec_of(CodecId::raw), extent_bytes(), kCopyByte_s * extent_bytes(), 0});
  }

  const Trial& best() const { return *std::min_element(trials_.begin(), trials_.end(), sooner); }

  /// On little, which tells who is worth trying on more.
  Trial attempt(CodecId id) {
    for (const Trial& trial : trials_)
      if (trial.codec->id() == id) return trial;
    const Codec* const codec = codec_of(id);
    const Measured few = once(codec, few_);
    few_of_[codec] = few;
    const double times = field_.loud_bytes() / std::max(field_.loud_bytes_of(few_), 1.0);
    return add({codec, std::min(few.bytes * times, extent_bytes()), few.encode_s * times, 0});
  }

  /// On more, those that were the best on little, and `former`.
  void attempt_more(const Codec* former) {
    std::vector<Trial> order(trials_.begin() + 1, trials_.end());
    std::sort(order.begin(), order.end(), sooner);
    trials_.resize(1);
    for (std::size_t i = 0; i < order.size(); ++i)
      if (i < kFinalists || order[i].codec == former) {
        const Codec* const codec = order[i].codec;
        add(grown(codec, few_of_[codec], once(codec, sample_)));
      }
  }

  /// zstd-long: what lies far apart shows only in a piece that is larger than the sample.
  void attempt_far(std::size_t most) {
    const Codec* const codec = codec_of(CodecId::zstd_long);
    const Piece raw = field_.raw();
    const std::size_t bytes = std::min(raw.size(), most);
    const Piece piece = raw.subspan((raw.size() - bytes) / 2, bytes);
    std::erase_if(trials_, [&](const Trial& other) { return other.codec == codec; });
    const auto [encoded, encode_s] = once(codec, piece);
    const double times = double(raw.size()) / double(bytes);
    add({codec, encoded * times, encode_s * times, 0});
  }

  /// Of those that take about the least time the smallest, or `former` if it is as good; raw if
  /// nothing saves enough.
  const Codec* winner(const Codec* former) const {
    const Trial& raw = trials_.front();
    const double most_s = best().total_s * (1 + kAsGood);
    const Trial* least = nullptr;
    const Trial* kept = nullptr;
    for (const Trial& trial : trials_) {
      if (trial.total_s > most_s) continue;
      if (!least || trial.bytes < least->bytes) least = &trial;
      if (trial.codec == former) kept = &trial;
    }
    if (least->bytes > (1 - kWorthwhile) * raw.bytes) return raw.codec;
    return kept && kept->bytes * (1 - kAsGood) <= least->bytes ? former : least->codec;
  }

  double write_s(double bytes) const { return bytes / bytes_per_second_; }
  double loud_bytes() const { return field_.loud_bytes(); }
  double extent_bytes() const { return double(field_.raw().size()); }
  std::size_t sample_bytes() const { return sample_.size(); }

 private:
  struct Measured {
    double bytes = 0;
    double encode_s = 0;
  };

  Measured once(const Codec* codec, Piece piece) {
    if (piece.empty()) return {};
    const std::span<std::byte> to = workspace_.trial(piece.size());
    const std::uint64_t begin = clock_.thread_ns();
    const auto encoded = codec->encode(elements_, piece, to, workspace_);
    const double encode_s = double(clock_.thread_ns() - begin) * 1e-9;
    return {double(encoded.value_or(piece.size())), encode_s};
  }

  /// What many take more than few is what grows with the extent.
  Trial grown(const Codec* codec, const Measured& few, const Measured& many) const {
    const double sample_quiet = double(sample_.size()) - sample_loud_;
    const double times = field_.loud_bytes() / std::max(sample_loud_, 1.0);
    const double quiet = std::max(field_.quiet_bytes() - times * sample_quiet, 0.0);
    const auto all = [&](double a, double b) {
      return a + std::max(b - a, 0.0) * times * kSmaller / (kSmaller - 1);
    };
    return {codec, std::min(all(few.bytes, many.bytes), extent_bytes()),
            all(few.encode_s, many.encode_s) + quiet_byte_s(codec->id()) * quiet, 0};
  }

  Trial add(Trial trial) {
    trial.total_s = trial.encode_s + write_s(trial.bytes);
    return trials_.emplace_back(trial);
  }

  const Elements& elements_;
  const Field& field_;
  const double bytes_per_second_;
  Workspace& workspace_;
  os::Clock& clock_;
  const Piece sample_;
  const double sample_loud_;
  const Piece few_;  ///< of the sample
  std::map<const Codec*, Measured> few_of_;
  std::vector<Trial> trials_;  ///< the first is raw
};

/// What is made of residuals. Planes suit those that repeat; leads those of measured numbers,
/// which are noise below.
struct Forms {
  CodecId delta1, delta2, delta3, lorenzo;
};
constexpr Forms kPlanes = {CodecId::delta1_zstd, CodecId::delta2_zstd, CodecId::delta3_zstd,
                           CodecId::lorenzo_zstd};
constexpr Forms kLeads = {CodecId::delta1_bits, CodecId::delta2_bits, CodecId::delta3_bits,
                          CodecId::lorenzo_bits};

/// Those that compress with Zstandard: the shuffle alone, and as many differences as make it
/// smaller. They can win only what writing the best so far takes.
void try_transforms(Contest& contest, std::uint32_t strides) {
  const Trial shuffled = contest.attempt(kYardstick);
  const auto may_pay = [&] {
    return contest.write_s(contest.best().bytes) > kAsGood * contest.best().total_s;
  };
  if (strides == 0 || !may_pay()) return;
  const double planes = contest.attempt(kPlanes.delta1).bytes;
  const bool is_noise = planes > (1 - kWorthwhile) * contest.extent_bytes();
  const double leads = is_noise ? planes : contest.attempt(kLeads.delta1).bytes;
  const double once = std::min(leads, planes);
  if (once >= shuffled.bytes || !may_pay()) return;
  const Forms& forms = leads < planes ? kLeads : kPlanes;
  if (contest.attempt(forms.delta2).bytes < once) contest.attempt(forms.delta3);
  if (strides > 1) contest.attempt(forms.lorenzo);
}

/// zstd-long on a large piece takes long: it may only be a small part of what the extent takes.
bool may_try_far(const Contest& contest, const Trial& yardstick) {
  const double piece_bytes = std::min(contest.extent_bytes(), double(kFarBytes));
  return 4 * yardstick.encode_s * piece_bytes <
         kAsGood * contest.best().total_s * contest.extent_bytes();
}

/// Without a shuffle, only what is there again makes bytes fewer: LZ4 sees that soonest.
bool is_there_again(Contest& contest) {
  return contest.attempt(CodecId::lz4).bytes < contest.loud_bytes() / 4;
}

/// Encoded bytes of a sample.
double encoded_bytes(CodecId id, const Elements& elements, Piece sample, Workspace& workspace) {
  const auto to = workspace.trial(sample.size());
  return double(codec_of(id)->encode(elements, sample, to, workspace).value_or(sample.size()));
}

double glance(const Codec& codec, const Elements& elements, const Field& field,
              Workspace& workspace) {
  const CodecId looking = codec.id() == CodecId::raw ? kYardstick : codec.id();
  const Piece sample = field.sample(kGlance, workspace);
  const double part = encoded_bytes(looking, elements, sample, workspace) / double(sample.size());
  return part * field.loud_part();
}

}  // namespace

const Codec* smallest(const Elements& elements, std::span<const std::byte> raw,
                      Workspace& workspace) {
  const Field field(elements, raw);
  const Piece few = field.all_loud(std::min(kMostAll, raw.size() / 2), workspace);
  const Piece sample = few.empty() ? field.sample(kGlance, workspace) : few;
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
    const bool leads_are_better = attempt(kLeads.delta1);
    // Numbers that are noise by themselves and in their differences are so in any form.
    const bool is_noise = !leads_are_better && least > kNoise * double(sample.size());
    const bool planes_are_better =
        (few.empty() || !is_floating) && !is_noise && attempt(kPlanes.delta1);
    const Forms& forms = planes_are_better ? kPlanes : kLeads;
    if ((leads_are_better || planes_are_better) && attempt(forms.delta2)) attempt(forms.delta3);
  }
  // Without a map of what is quiet, it may be the smallest where little is not; but it is slower,
  // and what it found again may not be there again the next time.
  least *= 1 - kMuchSmaller;
  if (!few.empty() && raw.size() <= kMapCounts) attempt(CodecId::zstd_long, -kMapBytes);
  return codec_of(best);
}

Sampled sample(const Elements& elements, std::span<const std::byte> raw, double bytes_per_second,
               const Codec* former, Workspace& workspace, os::Clock& clock) {
  const Field field(elements, raw);
  if (field.loud_bytes() < kLeastLoud && field.quiet_bytes() > 3 * field.loud_bytes()) {
    const bool pays = kEntropyByte_s <= kAsGood / bytes_per_second;
    return {pays ? smallest(elements, raw, workspace) : codec_of(CodecId::shuffle_lz4), kLoudPiece,
            0, field.loud_part()};
  }
  // The first to run would pay for memory that all use.
  glance(*codec_of(kYardstick), elements, field, workspace);
  Contest contest(elements, field, bytes_per_second, workspace, clock);
  contest.attempt(CodecId::shuffle_lz4);
  try_transforms(contest, layout_for(Transform::lorenzo, elements, raw.size()).differences.strides);
  const bool again = is_there_again(contest);
  const Trial yardstick = contest.attempt(kYardstick);
  if (former) contest.attempt(former->id());
  contest.attempt_more(former);
  if (again) contest.attempt_far(kAgainBytes);
  if (may_try_far(contest, yardstick)) contest.attempt_far(kFarBytes);
  const Codec* const best = contest.winner(former);
  const std::size_t bytes = contest.sample_bytes();
  return {best, bytes, best->id() == CodecId::raw ? glance(*best, elements, field, workspace) : 0,
          field.loud_part()};
}

double glance(const Codec& codec, const Elements& elements, std::span<const std::byte> raw,
              Workspace& workspace) {
  return glance(codec, elements, Field(elements, raw), workspace);
}

double loud_part(const Elements& elements, std::span<const std::byte> raw) {
  return Field(elements, raw).loud_part();
}

const Codec& unsampled(double bytes_per_second) {
  // What shuffle-zstd does to fields of real programs on a core of 2020, careful in both.
  constexpr double kEncoded = 1.0e9;
  constexpr double kSaved = 0.4;
  const bool pays = kSaved / bytes_per_second > 1 / kEncoded;
  return *codec_of(pays ? CodecId::shuffle_zstd : CodecId::raw);
}

}  // namespace belay::codec
