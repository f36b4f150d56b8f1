// SPDX-License-Identifier: Apache-2.0
#include "compress/belay_way.hpp"

#include "codec/choice.hpp"
#include "codec/workspace.hpp"
#include "compress/cpu_timer.hpp"
#include "measure/must.hpp"

#include <algorithm>
#include <cstring>

namespace belay::bench {
namespace {

/// Small variables of all ranks together.
constexpr const char* kSmallName = "small variables";

/// The bytes of a variable as one long row, rank after rank, taken from the front.
class Row {
 public:
  explicit Row(const MergedVariable& variable) {
    for (const Variable* part : variable.ranks) append(*part);
  }
  Row() = default;
  void append(const Variable& part) {
    parts_.emplace_back(part.bytes);
    remaining_ += part.bytes.size();
  }
  std::uint64_t remaining() const { return remaining_; }

  /// The next pieces that make up so many bytes. REQUIRES: so many remain.
  template <class Visit>
  void take(std::uint64_t bytes, Visit visit) {
    remaining_ -= bytes;
    while (bytes > 0) {
      std::span<const std::byte>& front = parts_[first_];
      const std::uint64_t size = std::min<std::uint64_t>(bytes, front.size());
      visit(front.first(size));
      front = front.subspan(size);
      bytes -= size;
      if (front.empty()) ++first_;
    }
  }

 private:
  std::vector<std::span<const std::byte>> parts_;
  std::size_t first_ = 0;
  std::uint64_t remaining_ = 0;
};

struct ExtentHead {
  std::uint64_t encoded_bytes;
  std::uint32_t raw_bytes;
  CodecId codec;
};

}  // namespace

class BelayMemory {
 public:
  codec::Workspace workspace;
  Bytes raw = Bytes(kExtentBytes);   ///< of one extent
  Bytes room = Bytes(kExtentBytes);  ///< for what becomes of it
  Bytes packed;
};

std::shared_ptr<BelayMemory> make_belay_memory() { return std::make_shared<BelayMemory>(); }

struct BelayWay::State {
  State(std::string codec, double bytes_per_second, std::shared_ptr<BelayMemory> shared)
      : chooser({.rules = {}, .otherwise = std::move(codec), .bytes_per_second = bytes_per_second}),
        memory(std::move(shared)) {}

  void pack(const std::string& name, const codec::Elements& elements, Row row) {
    const std::uint64_t most = kExtentBytes / std::max<std::uint64_t>(elements.bytes, 1) *
                               std::max<std::uint64_t>(elements.bytes, 1);
    while (row.remaining() > 0) {
      const std::uint64_t bytes = std::min(most, row.remaining());
      std::byte* to = raw.data();
      row.take(bytes, [&](std::span<const std::byte> piece) {
        to = std::copy(piece.begin(), piece.end(), to);
      });
      put_extent(name, elements, std::span<const std::byte>(raw).first(bytes));
    }
  }

  void put_extent(const std::string& name, const codec::Elements& elements,
                  std::span<const std::byte> extent) {
    const codec::Codec* codec = &chooser.choose(name, elements, extent, workspace);
    const auto to = std::span(room).first(extent.size());
    const CpuTimer timer;
    std::optional<std::size_t> size = codec->encode(elements, extent, to, workspace);
    chooser.learn(name, extent.size(), size.value_or(extent.size()),
                  static_cast<std::uint64_t>(timer.seconds() * 1e9));
    if (!size) {
      codec = codec::codec_of(CodecId::raw);
      size = codec->encode(elements, extent, to, workspace);
    }
    const ExtentHead head = {*size, static_cast<std::uint32_t>(extent.size()), codec->id()};
    const auto head_bytes = std::as_bytes(std::span(&head, 1));
    packed.insert(packed.end(), head_bytes.begin(), head_bytes.end());
    packed.insert(packed.end(), to.begin(), to.begin() + static_cast<std::ptrdiff_t>(*size));
  }

  void unpack(Reader& reader, std::span<const std::byte>& bytes, Row row) {
    while (row.remaining() > 0) {
      const auto head = reader.value<ExtentHead>();
      const codec::Codec* codec = codec::codec_of(head.codec);
      if (reader.failed() || !codec || head.encoded_bytes > reader.remaining())
        die("an extent is damaged");
      const auto encoded = bytes.last(reader.remaining()).first(head.encoded_bytes);
      reader = Reader(bytes.last(reader.remaining()).subspan(head.encoded_bytes));
      const auto extent = std::span(raw).first(head.raw_bytes);
      must("decode", codec->decode(encoded, extent, workspace));
      const std::byte* from = extent.data();
      row.take(head.raw_bytes, [&](std::span<const std::byte> piece) {
        std::memcpy(const_cast<std::byte*>(piece.data()), from, piece.size());
        from += piece.size();
      });
    }
  }

  codec::Chooser chooser;
  const std::shared_ptr<BelayMemory> memory;
  codec::Workspace& workspace = memory->workspace;
  Bytes& raw = memory->raw;
  Bytes& room = memory->room;
  Bytes& packed = memory->packed;
};

BelayWay::BelayWay(std::string codec, double bytes_per_second, std::shared_ptr<BelayMemory> memory)
    : state_(std::make_unique<State>(std::move(codec), bytes_per_second, std::move(memory))) {}

BelayWay::~BelayWay() = default;

std::span<const std::byte> BelayWay::pack(std::span<const Checkpoint> ranks) {
  state_->packed.clear();
  Row small;
  for (const MergedVariable& variable : match_variables(ranks))
    if (variable.is_small)
      for (const Variable* part : variable.ranks) small.append(*part);
    else
      state_->pack(variable.name, codec::elements_of(variable.type, variable.shape), Row(variable));
  state_->pack(kSmallName, {}, std::move(small));
  return state_->packed;
}

void BelayWay::unpack(std::span<const std::byte> packed, std::span<Checkpoint> ranks) {
  Row small;
  Reader reader(packed);
  for (const MergedVariable& variable : match_variables(ranks))
    if (variable.is_small)
      for (const Variable* part : variable.ranks) small.append(*part);
    else
      state_->unpack(reader, packed, Row(variable));
  state_->unpack(reader, packed, std::move(small));
}

std::span<const std::byte> BelayWay::pack(const MergedVariable& variable) {
  state_->packed.clear();
  state_->pack(variable.name, codec::elements_of(variable.type, variable.shape), Row(variable));
  return state_->packed;
}

void BelayWay::unpack(std::span<const std::byte> packed, const MergedVariable& variable) {
  Reader reader(packed);
  state_->unpack(reader, packed, Row(variable));
}

std::vector<Choice> BelayWay::choices() const {
  std::vector<Choice> choices;
  for (const codec::Chosen& chosen : state_->chooser.chosen())
    choices.push_back({chosen.variable, std::string(chosen.codec->name()), chosen.samplings});
  return choices;
}

std::vector<std::string> codec_names() {
  std::vector<std::string> names;
  for (const codec::Codec* codec : codec::all_codecs()) names.emplace_back(codec->name());
  return names;
}

}  // namespace belay::bench
