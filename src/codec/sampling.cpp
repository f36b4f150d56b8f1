// SPDX-License-Identifier: Apache-2.0
#include "codec/sampling.hpp"

#include "codec/layout.hpp"
#include "codec/workspace.hpp"

#include <algorithm>
#include <optional>
#include <vector>

namespace belay::codec {
namespace {

constexpr std::size_t kSampleBytes = 256 << 10;
constexpr std::size_t kMostSampleBytes = 1 << 20;
/// What a codec must save to be worth the reader's time, and a new one to take a former one's
/// place.
constexpr double kWorthwhile = 0.97;
/// Encoded bytes for a raw one, above which a codec found nothing.
constexpr double kNothing = 0.99;
/// What the others are measured by.
constexpr CodecId kYardstick = CodecId::shuffle_zstd;

/// From the middle, since the edges of a field are often unlike the rest, and at an element's
/// border. Large enough for some rows or planes, so that differences across them show.
std::span<const std::byte> sample_of(const Elements& elements, std::span<const std::byte> raw) {
  const Differences strides = layout_for(Transform::lorenzo, elements, raw.size()).differences;
  const std::size_t far = strides.strides == 0 ? 0 : strides.stride[strides.strides - 1];
  const std::size_t wanted =
      std::clamp(4 * far * strides.number_bytes, kSampleBytes, kMostSampleBytes);
  if (raw.size() <= wanted) return raw;
  const std::size_t element =
      std::max<std::size_t>(std::size_t{elements.bytes} * elements.parts, 1);
  const std::size_t begin = (raw.size() - wanted) / 2 / element * element;
  return raw.subspan(begin, wanted);
}

struct Trial {
  const Codec* codec = nullptr;
  double bytes = 0;
  double encode_s = 0;
  double total_s = 0;  ///< with the time to write
};

/// Tries one codec after the other on the same bytes.
class Contest {
 public:
  Contest(const Elements& elements, std::span<const std::byte> from, double bytes_per_second,
          Workspace& workspace, os::Clock& clock)
      : elements_(elements),
        from_(from),
        bytes_per_second_(bytes_per_second),
        workspace_(workspace),
        clock_(clock),
        to_(from.size()) {
    trials_.push_back(
        {codec_of(CodecId::raw), double(from.size()), 0, write_s(double(from.size()))});
  }

  const Trial& best() const {
    return *std::min_element(trials_.begin(), trials_.end(),
                             [](const Trial& a, const Trial& b) { return a.total_s < b.total_s; });
  }
  const Trial* of(const Codec* codec) const {
    for (const Trial& trial : trials_)
      if (trial.codec == codec) return &trial;
    return nullptr;
  }

  Trial attempt(CodecId id) {
    const Codec* codec = codec_of(id);
    if (const Trial* made = of(codec)) return *made;
    Trial trial = once(codec);
    // Someone else may have had the processor, and the first to run pays for memory that all use.
    // What is smaller deserves another chance.
    const Trial& leader = best();
    const bool unlucky = trial.bytes < leader.bytes && trial.total_s > leader.total_s;
    if (unlucky || id == kYardstick)
      trial = std::min(trial, once(codec),
                       [](const Trial& a, const Trial& b) { return a.total_s < b.total_s; });
    trials_.push_back(trial);
    return trial;
  }

  /// Bytes encoded for each raw one.
  double part(const Trial& trial) const { return trial.bytes / double(from_.size()); }
  double write_s(double bytes) const { return bytes / bytes_per_second_; }

 private:
  Trial once(const Codec* codec) {
    const std::uint64_t begin = clock_.now_ns();
    const auto bytes = codec->encode(elements_, from_, to_, workspace_);
    const double seconds = double(clock_.now_ns() - begin) * 1e-9;
    const auto size = double(bytes.value_or(from_.size()));
    return {codec, size, seconds, seconds + write_s(size)};
  }

  const Elements& elements_;
  const std::span<const std::byte> from_;
  const double bytes_per_second_;
  Workspace& workspace_;
  os::Clock& clock_;
  std::vector<std::byte> to_;
  std::vector<Trial> trials_;
};

/// How many strides its differences have: none where there are no numbers.
std::uint32_t strides_of(const Elements& elements, std::size_t bytes) {
  return layout_for(Transform::lorenzo, elements, bytes).differences.strides;
}

void compete(Contest& contest, std::uint32_t strides) {
  const Trial shuffled = contest.attempt(kYardstick);
  const Trial delta = strides > 0 ? contest.attempt(CodecId::delta1_zstd) : shuffled;
  if (contest.part(shuffled) > kNothing && contest.part(delta) > kNothing) return;
  contest.attempt(CodecId::lz4);
  contest.attempt(CodecId::shuffle_lz4);
  // The rest are slower still: they can win only what writing the best so far takes.
  const auto to_gain = [&] { return contest.write_s(contest.best().bytes); };
  if (strides > 0 && to_gain() > shuffled.encode_s / 4) contest.attempt(CodecId::delta2_zstd);
  if (strides > 1 && to_gain() > shuffled.encode_s / 4) contest.attempt(CodecId::lorenzo_zstd);
  if (to_gain() > shuffled.encode_s) contest.attempt(CodecId::zstd_long);
}

}  // namespace

Sampled sample(const Elements& elements, std::span<const std::byte> raw, double bytes_per_second,
               const Codec* former, Workspace& workspace, os::Clock& clock) {
  const auto from = sample_of(elements, raw);
  Contest contest(elements, from, bytes_per_second, workspace, clock);
  compete(contest, strides_of(elements, from.size()));
  Trial standing = contest.attempt(CodecId::raw);
  const Trial defended = former ? contest.attempt(former->id()) : standing;
  if (defended.total_s < kWorthwhile * standing.total_s) standing = defended;
  const Trial& best = contest.best();
  return {best.total_s < kWorthwhile * standing.total_s ? best.codec : standing.codec, from.size()};
}

const Codec& unsampled(double bytes_per_second) {
  // What shuffle-zstd does to fields of real programs on a core of 2020, careful in both.
  constexpr double kEncoded = 1.0e9;
  constexpr double kSaved = 0.4;
  const bool pays = kSaved / bytes_per_second > 1 / kEncoded;
  return *codec_of(pays ? CodecId::shuffle_zstd : CodecId::raw);
}

}  // namespace belay::codec
