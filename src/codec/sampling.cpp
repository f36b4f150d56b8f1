// SPDX-License-Identifier: Apache-2.0
#include "codec/sampling.hpp"

#include "codec/layout.hpp"
#include "codec/workspace.hpp"

#include <algorithm>
#include <vector>

namespace belay::codec {
namespace {

using Piece = std::span<const std::byte>;

constexpr std::size_t kPieceBytes = 128 << 10;
constexpr std::size_t kMostPieceBytes = 512 << 10;
constexpr std::size_t kSampleBytes = 512 << 10;
/// Of the one piece for zstd-long, which finds what is far apart.
constexpr std::size_t kFarBytes = 4 << 20;
/// What a codec must save to be worth the reader's time, and a new one to take a former one's
/// place.
constexpr double kWorthwhile = 0.97;
/// Encoded bytes for a raw one, above which a codec found nothing.
constexpr double kNothing = 0.99;
/// What the others are measured by.
constexpr CodecId kYardstick = CodecId::shuffle_zstd;

/// At most `bytes` from the middle of one of `parts` equal parts, from an element's border on.
Piece piece_of(Piece raw, const Elements& elements, std::size_t part, std::size_t parts,
               std::size_t bytes) {
  const std::size_t element =
      std::max<std::size_t>(std::size_t{elements.bytes} * elements.parts, 1);
  const std::size_t length = raw.size() / parts;
  const std::size_t taken = std::min(bytes, length);
  return raw.subspan((part * length + (length - taken) / 2) / element * element, taken);
}

/// Some pieces all over it, since a field is not the same everywhere. They are large enough for
/// some rows or planes, so that differences across them show.
std::vector<Piece> sample_of(const Elements& elements, Piece raw) {
  if (raw.size() <= kSampleBytes) return {raw};
  const Differences strides = layout_for(Transform::lorenzo, elements, raw.size()).differences;
  const std::size_t far = strides.strides == 0 ? 0 : strides.stride[strides.strides - 1];
  const std::size_t bytes =
      std::clamp(4 * far * strides.number_bytes, kPieceBytes, kMostPieceBytes);
  const std::size_t pieces = std::max<std::size_t>(kSampleBytes / bytes, 2);
  std::vector<Piece> sample;
  for (std::size_t part = 0; part < pieces; ++part)
    sample.push_back(piece_of(raw, elements, part, pieces, bytes));
  return sample;
}

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
  Contest(const Elements& elements, Piece raw, double bytes_per_second, Workspace& workspace,
          os::Clock& clock)
      : elements_(elements),
        raw_(raw),
        sample_(sample_of(elements, raw)),
        bytes_per_second_(bytes_per_second),
        workspace_(workspace),
        clock_(clock) {
    for (const Piece piece : sample_) sample_bytes_ += double(piece.size());
    tried_bytes_ = sample_bytes_;
    trials_.push_back({codec_of(CodecId::raw), sample_bytes_, 0, write_s(sample_bytes_)});
  }

  const Trial& best() const { return *std::min_element(trials_.begin(), trials_.end(), sooner); }

  Trial attempt(CodecId id) {
    for (const Trial& trial : trials_)
      if (trial.codec->id() == id) return trial;
    const Codec* codec = codec_of(id);
    Trial trial = once(codec, sample_);
    // Someone else may have had the processor, and the first to run pays for memory that all use.
    // What is smaller deserves another chance.
    const Trial& leader = best();
    const bool unlucky = trial.bytes < leader.bytes && trial.total_s > leader.total_s;
    if (unlucky || id == kYardstick) trial = std::min(trial, once(codec, sample_), sooner);
    trials_.push_back(trial);
    return trial;
  }

  /// zstd-long: what lies far apart shows only in a piece that is larger than the sample.
  void attempt_far() {
    const Piece piece = piece_of(raw_, elements_, 0, 1, kFarBytes);
    Trial trial = once(codec_of(CodecId::zstd_long), {&piece, 1});
    tried_bytes_ += double(piece.size());
    const double scale = sample_bytes_ / double(piece.size());
    for (double* measured : {&trial.bytes, &trial.encode_s, &trial.total_s}) *measured *= scale;
    trials_.push_back(trial);
  }

  /// Bytes encoded for each raw one.
  double part(const Trial& trial) const { return trial.bytes / sample_bytes_; }
  double write_s(double bytes) const { return bytes / bytes_per_second_; }
  double sample_bytes() const { return sample_bytes_; }
  double tried_bytes() const { return tried_bytes_; }
  double extent_bytes() const { return double(raw_.size()); }

 private:
  Trial once(const Codec* codec, std::span<const Piece> pieces) {
    Trial trial{.codec = codec};
    for (const Piece piece : pieces) {
      if (to_.size() < piece.size()) to_.resize(piece.size());
      const std::span<std::byte> to = std::span(to_).first(piece.size());
      const std::uint64_t begin = clock_.now_ns();
      const auto bytes = codec->encode(elements_, piece, to, workspace_);
      trial.encode_s += double(clock_.now_ns() - begin) * 1e-9;
      trial.bytes += double(bytes.value_or(piece.size()));
    }
    trial.total_s = trial.encode_s + write_s(trial.bytes);
    return trial;
  }

  const Elements& elements_;
  const Piece raw_;
  const std::vector<Piece> sample_;
  const double bytes_per_second_;
  Workspace& workspace_;
  os::Clock& clock_;
  double sample_bytes_ = 0;
  double tried_bytes_ = 0;
  std::vector<std::byte> to_;
  std::vector<Trial> trials_;
};

/// zstd-long takes about four times as long as the yardstick. Trying it must be able to pay: for
/// each byte, and on the whole extent for the piece that is tried.
bool may_pay_far(const Contest& contest, const Trial& yardstick) {
  const double to_gain = contest.write_s(contest.best().bytes);
  const double far_s = 4 * yardstick.encode_s;
  const double piece_bytes = std::min(contest.extent_bytes(), double(kFarBytes));
  return to_gain > far_s && to_gain * contest.extent_bytes() > 4 * far_s * piece_bytes;
}

void compete(Contest& contest, std::uint32_t strides) {
  const Trial shuffled = contest.attempt(kYardstick);
  const Trial delta = strides > 0 ? contest.attempt(CodecId::delta1_zstd) : shuffled;
  const bool nothing = contest.part(shuffled) > kNothing && contest.part(delta) > kNothing;
  if (!nothing) {
    contest.attempt(CodecId::lz4);
    contest.attempt(CodecId::shuffle_lz4);
    // The rest are slower still: they can win only what writing the best so far takes.
    const auto to_gain = [&] { return contest.write_s(contest.best().bytes); };
    if (strides > 0 && to_gain() > shuffled.encode_s / 4) contest.attempt(CodecId::delta2_zstd);
    if (strides > 1 && to_gain() > shuffled.encode_s / 4) contest.attempt(CodecId::lorenzo_zstd);
  }
  if (may_pay_far(contest, shuffled)) contest.attempt_far();
}

}  // namespace

Sampled sample(const Elements& elements, std::span<const std::byte> raw, double bytes_per_second,
               const Codec* former, Workspace& workspace, os::Clock& clock) {
  Contest contest(elements, raw, bytes_per_second, workspace, clock);
  compete(contest, layout_for(Transform::lorenzo, elements, raw.size()).differences.strides);
  Trial standing = contest.attempt(CodecId::raw);
  const Trial defended = former ? contest.attempt(former->id()) : standing;
  if (defended.total_s < kWorthwhile * standing.total_s) standing = defended;
  const Trial& best = contest.best();
  return {best.total_s < kWorthwhile * standing.total_s ? best.codec : standing.codec,
          static_cast<std::size_t>(contest.tried_bytes())};
}

const Codec& unsampled(double bytes_per_second) {
  // What shuffle-zstd does to fields of real programs on a core of 2020, careful in both.
  constexpr double kEncoded = 1.0e9;
  constexpr double kSaved = 0.4;
  const bool pays = kSaved / bytes_per_second > 1 / kEncoded;
  return *codec_of(pays ? CodecId::shuffle_zstd : CodecId::raw);
}

}  // namespace belay::codec
