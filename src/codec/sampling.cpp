// SPDX-License-Identifier: Apache-2.0
#include "codec/sampling.hpp"

#include "codec/payload_layout.hpp"
#include "codec/workspace.hpp"

#include <algorithm>
#include <iterator>
#include <vector>

namespace belay::codec {
namespace {

using Piece = std::span<const std::byte>;

/// How much of an extent is tried: a part of it, within bounds.
struct Size {
  std::size_t part = 1;
  std::size_t least = 0;
  std::size_t most = 0;
  std::size_t piece = 1;  ///< the least that is taken from one place
};
/// With several codecs to try, more would take longer than a good choice saves on the extent.
/// Whether differences help shows in few numbers, what is there again only in many.
constexpr Size kFew = {32, 16 << 10, 256 << 10, 4 << 10};
constexpr Size kMany = {8, 128 << 10, 512 << 10, 128 << 10};
constexpr Size kGlance = {128, 4 << 10, 128 << 10, 1 << 10};
constexpr std::size_t kPieces = 4;
/// Of the one piece for zstd-long, which finds what is far apart.
constexpr std::size_t kFarBytes = 4 << 20;
/// Totals that are nearer to each other than this are the same: then what is smaller is better. It
/// is also what trying something that seldom pays may cost.
constexpr double kAsGood = 0.03;
/// Encoded bytes for a raw one, above which a codec found nothing, or nearly so.
constexpr double kNothing = 0.99;
constexpr double kLittle = 0.9;
/// What the others are measured by.
constexpr CodecId kYardstick = CodecId::shuffle_zstd;

std::size_t element_bytes(const Elements& elements) {
  return std::max<std::size_t>(std::size_t{elements.bytes} * elements.parts, 1);
}

/// At most `bytes` from the middle of one of `parts` equal parts, from an element's border on.
Piece piece_of(Piece raw, const Elements& elements, std::size_t part, std::size_t parts,
               std::size_t bytes) {
  const std::size_t element = element_bytes(elements);
  const std::size_t length = raw.size() / parts;
  const std::size_t taken = std::min(bytes, length);
  return raw.subspan((part * length + (length - taken) / 2) / element * element, taken);
}

/// Some pieces all over it, one after the other, since a field is not the same everywhere. They
/// are large enough for some rows or planes, so that differences across them show.
std::vector<std::byte> sample_of(const Elements& elements, Piece raw, const Size& size) {
  const Differences strides = layout_for(Transform::lorenzo, elements, raw.size()).differences;
  const std::size_t far = strides.strides == 0 ? 0 : strides.stride[strides.strides - 1];
  const std::size_t rows = 8 * far * strides.number_bytes;
  const std::size_t wanted =
      std::max(raw.size() / size.part, std::min(2 * rows, 2 * raw.size() / size.part));
  const std::size_t bytes = std::clamp(wanted, std::min(size.least, raw.size() / 4), size.most);
  const std::size_t pieces =
      std::clamp(bytes / std::max(rows, size.piece), std::size_t{1}, kPieces);
  const std::size_t element = element_bytes(elements);
  const std::size_t piece = std::max<std::size_t>(bytes / pieces / element, 1) * element;
  std::vector<std::byte> sample;
  for (std::size_t part = 0; part < pieces; ++part) {
    const Piece taken = piece_of(raw, elements, part, pieces, piece);
    sample.insert(sample.end(), taken.begin(), taken.end());
  }
  return sample;
}

struct Trial {
  const Codec* codec = nullptr;
  double bytes = 0;
  double encode_s = 0;
  double total_s = 0;  ///< with the time to write
};

bool sooner(const Trial& a, const Trial& b) { return a.total_s < b.total_s; }
bool smaller(const Trial& a, const Trial& b) { return a.bytes < b.bytes; }

/// Tries one codec after the other on the same bytes.
class Contest {
 public:
  Contest(const Elements& elements, Piece raw, const Size& size, double bytes_per_second,
          Workspace& workspace, os::Clock& clock)
      : elements_(elements),
        raw_(raw),
        sample_(sample_of(elements, raw, size)),
        bytes_per_second_(bytes_per_second),
        workspace_(workspace),
        clock_(clock) {
    trials_.push_back({codec_of(CodecId::raw), sample_bytes(), 0, write_s(sample_bytes())});
  }

  const Trial& best() const { return *std::min_element(trials_.begin(), trials_.end(), sooner); }

  Trial attempt(CodecId id) {
    for (const Trial& trial : trials_)
      if (trial.codec->id() == id) return trial;
    trials_.push_back(once(codec_of(id), sample_));
    return trials_.back();
  }

  /// zstd-long: what lies far apart shows only in a piece that is larger than the sample.
  void attempt_far() {
    const Piece piece = piece_of(raw_, elements_, 0, 1, kFarBytes);
    Trial trial = once(codec_of(CodecId::zstd_long), piece);
    const double scale = sample_bytes() / double(piece.size());
    for (double* measured : {&trial.bytes, &trial.encode_s, &trial.total_s}) *measured *= scale;
    std::erase_if(trials_, [&](const Trial& other) { return other.codec == trial.codec; });
    trials_.push_back(trial);
  }

  /// Raw if it is as good as the best, since reading takes time, too; else the smallest of those
  /// that are, or `former` if it is as small.
  const Codec* winner(const Codec* former) const {
    std::vector<Trial> good;
    const double most_s = best().total_s / (1 - kAsGood);
    std::copy_if(trials_.begin(), trials_.end(), std::back_inserter(good),
                 [&](const Trial& trial) { return trial.total_s <= most_s; });
    if (good.front().codec->id() == CodecId::raw) return good.front().codec;
    const auto smallest = std::min_element(good.begin(), good.end(), smaller);
    for (const Trial& trial : good)
      if (trial.codec == former && trial.bytes * (1 - kAsGood) <= smallest->bytes) return former;
    return smallest->codec;
  }

  /// Bytes encoded for each raw one.
  double part(const Trial& trial) const { return trial.bytes / sample_bytes(); }
  double write_s(double bytes) const { return bytes / bytes_per_second_; }
  double sample_bytes() const { return double(sample_.size()); }
  double extent_bytes() const { return double(raw_.size()); }

 private:
  Trial once(const Codec* codec, Piece piece) {
    if (to_.size() < piece.size()) to_.resize(piece.size());
    const std::span<std::byte> to = std::span(to_).first(piece.size());
    const std::uint64_t begin = clock_.thread_ns();
    const auto encoded = codec->encode(elements_, piece, to, workspace_);
    const double encode_s = double(clock_.thread_ns() - begin) * 1e-9;
    const auto bytes = double(encoded.value_or(piece.size()));
    return {codec, bytes, encode_s, encode_s + write_s(bytes)};
  }

  const Elements& elements_;
  const Piece raw_;
  const std::vector<std::byte> sample_;
  const double bytes_per_second_;
  Workspace& workspace_;
  os::Clock& clock_;
  std::vector<std::byte> to_;
  std::vector<Trial> trials_;  ///< the first is raw
};

/// The best of those that compress planes with Zstandard: the shuffle alone, and as many
/// differences as make it smaller. Others of them would be slower: they can win only what writing
/// the best so far takes.
CodecId best_transform(Contest& contest, std::uint32_t strides) {
  const Trial shuffled = contest.attempt(kYardstick);
  const auto may_pay = [&] {
    return contest.write_s(contest.best().bytes) > shuffled.encode_s / 4;
  };
  if (strides > 0 && may_pay()) {
    const Trial once = contest.attempt(CodecId::delta1_zstd);
    if (once.bytes < shuffled.bytes && may_pay()) {
      if (contest.attempt(CodecId::delta2_zstd).bytes < once.bytes)
        contest.attempt(CodecId::delta3_zstd);
      if (strides > 1) contest.attempt(CodecId::lorenzo_zstd);
    }
  }
  const CodecId best = contest.winner(nullptr)->id();
  return best == CodecId::raw ? kYardstick : best;
}

/// zstd-long on a large piece takes long: it may only be a small part of what the extent takes.
bool may_try_far(const Contest& contest, const Trial& yardstick) {
  const double piece_bytes = std::min(contest.extent_bytes(), double(kFarBytes));
  return 4 * yardstick.encode_s * piece_bytes <
         kAsGood * contest.best().total_s * contest.extent_bytes();
}

void compete(Contest& contest, CodecId transform) {
  const Trial quick = contest.attempt(CodecId::shuffle_lz4);
  const Trial transformed = contest.attempt(transform);
  if (contest.part(quick) < kNothing || contest.part(transformed) < kNothing) {
    // Without a shuffle, only what is there again makes bytes fewer: LZ4 sees that soonest.
    if (contest.part(contest.attempt(CodecId::lz4)) < kLittle) contest.attempt(CodecId::zstd_long);
  }
  if (may_try_far(contest, transformed)) contest.attempt_far();
}

}  // namespace

Sampled sample(const Elements& elements, std::span<const std::byte> raw, double bytes_per_second,
               const Codec* former, Workspace& workspace, os::Clock& clock) {
  // The first to run would pay for memory that all use.
  glance(*codec_of(kYardstick), elements, raw, workspace);
  Contest many(elements, raw, kMany, bytes_per_second, workspace, clock);
  const Trial quick = many.attempt(CodecId::shuffle_lz4);
  CodecId transform = kYardstick;
  // Differences win time to write; where that is next to nothing, they need not be tried.
  if (many.write_s(quick.bytes) > quick.encode_s / 4) {
    Contest few(elements, raw, kFew, bytes_per_second, workspace, clock);
    const Layout layout = layout_for(Transform::lorenzo, elements, raw.size());
    transform = best_transform(few, layout.differences.strides);
  }
  compete(many, transform);
  if (former) many.attempt(former->id());
  const Codec* const best = many.winner(former);
  return {best, static_cast<std::size_t>(many.sample_bytes()),
          glance(*best, elements, raw, workspace)};
}

double glance(const Codec& codec, const Elements& elements, std::span<const std::byte> raw,
              Workspace& workspace) {
  const Codec& looking = codec.id() == CodecId::raw ? *codec_of(kYardstick) : codec;
  const std::vector<std::byte> sample = sample_of(elements, raw, kGlance);
  std::vector<std::byte> to(sample.size());
  const auto bytes = looking.encode(elements, sample, to, workspace);
  return double(bytes.value_or(sample.size())) / double(sample.size());
}

const Codec& unsampled(double bytes_per_second) {
  // What shuffle-zstd does to fields of real programs on a core of 2020, careful in both.
  constexpr double kEncoded = 1.0e9;
  constexpr double kSaved = 0.4;
  const bool pays = kSaved / bytes_per_second > 1 / kEncoded;
  return *codec_of(pays ? CodecId::shuffle_zstd : CodecId::raw);
}

}  // namespace belay::codec
