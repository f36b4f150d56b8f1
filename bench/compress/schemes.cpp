// SPDX-License-Identifier: Apache-2.0
#include "compress/schemes.hpp"

#include "measure/must.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <map>

namespace belay::bench {
namespace {

/// Pieces of memory that are merged, or that a merged stream is dealt out to.
using Parts = std::vector<std::span<const std::byte>>;

/// Visits the pieces in the order in which a merged stream has them.
void in_turn(
    const Parts& parts, std::uint64_t block,
    const std::function<void(std::size_t part, std::uint64_t offset, std::uint64_t size)>& visit) {
  if (block == 0) {
    for (std::size_t i = 0; i < parts.size(); ++i) visit(i, 0, parts[i].size());
    return;
  }
  std::uint64_t longest = 0;
  for (const auto& part : parts) longest = std::max<std::uint64_t>(longest, part.size());
  for (std::uint64_t offset = 0; offset < longest; offset += block)
    for (std::size_t i = 0; i < parts.size(); ++i)
      if (offset < parts[i].size()) visit(i, offset, std::min(block, parts[i].size() - offset));
}

Bytes merge(const Parts& parts, std::uint64_t block) {
  std::uint64_t total = 0;
  for (const auto& part : parts) total += part.size();
  Bytes merged(total);
  std::byte* to = merged.data();
  in_turn(parts, block, [&](std::size_t part, std::uint64_t offset, std::uint64_t size) {
    const auto piece = parts[part].subspan(offset, size);
    to = std::copy(piece.begin(), piece.end(), to);
  });
  return merged;
}

/// The other way: parts that belong to `ranks`, so that they may be written.
void deal_out(const Bytes& merged, const Parts& parts, std::uint64_t block) {
  const std::byte* from = merged.data();
  in_turn(parts, block, [&](std::size_t part, std::uint64_t offset, std::uint64_t size) {
    std::memcpy(const_cast<std::byte*>(parts[part].data()) + offset, from, size);
    from += size;
  });
}

/// One merged stream, and what it is merged from.
struct Plan {
  ElementType type;
  Shape shape;
  Parts parts;
  bool is_small = false;
};

Plan plan_of(const MergedVariable& variable, bool in_blocks) {
  Plan plan = {variable.type, in_blocks ? Shape() : variable.shape, {}, variable.is_small};
  for (const Variable* part : variable.ranks) plan.parts.emplace_back(part->bytes);
  return plan;
}

/// Without knowledge of variables a checkpoint is bytes: they are brought together in `whole`.
std::vector<Plan> make_plans(std::span<const Checkpoint> ranks, const Scheme& scheme,
                             std::vector<Bytes>& whole) {
  std::vector<Plan> plans;
  if (scheme.is_aware()) {
    Plan small = {{}, {}, {}, true};
    for (const MergedVariable& variable : match_variables(ranks)) {
      Plan plan = plan_of(variable, scheme.merging == Merging::aware_block);
      if (variable.is_small)
        small.parts.insert(small.parts.end(), plan.parts.begin(), plan.parts.end());
      else
        plans.push_back(std::move(plan));
    }
    plans.push_back(std::move(small));
    return plans;
  }
  Plan all;
  for (const Checkpoint& checkpoint : ranks) {
    Bytes& bytes = whole.emplace_back();
    bytes.reserve(total_bytes(checkpoint));
    for (const Variable& variable : checkpoint)
      bytes.insert(bytes.end(), variable.bytes.begin(), variable.bytes.end());
  }
  for (const Bytes& bytes : whole) all.parts.emplace_back(bytes);
  plans.push_back(std::move(all));
  return plans;
}

/// nullptr: as it is. Without knowledge of types there is but gzip.
const Pass* first_pass(const Plan& plan, const Scheme& scheme) {
  if (!scheme.is_aware()) return &gzip();
  if (plan.is_small) return nullptr;
  return &first_pass_for(plan.type, scheme.fpzip_for_doubles);
}

void put_sized(Bytes& to, std::uint64_t raw_bytes, const Bytes& encoded) {
  Writer writer(to);
  writer.value(raw_bytes);
  writer.array(std::span<const std::byte>(encoded));
}

Stream bytes_stream(Bytes bytes) { return {element_type<std::byte>(), {}, std::move(bytes)}; }

Bytes second_pass(Bytes first) {
  Bytes packed;
  const std::uint64_t raw_bytes = first.size();
  put_sized(packed, raw_bytes, gzip().encode(bytes_stream(std::move(first))));
  return packed;
}

Bytes undo_second_pass(std::span<const std::byte> packed) {
  Reader reader(packed);
  Stream first = bytes_stream(Bytes(reader.value<std::uint64_t>()));
  const auto encoded = reader.array<std::byte>();
  if (reader.failed() || reader.remaining() > 0) die("a packed set is cut off or too long");
  gzip().decode(encoded, first);
  return std::move(first.bytes);
}

bool folds(const Shape& one, const Shape& other) {
  const auto a = one.extents(), b = other.extents();
  return a.size() > 1 && a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

}  // namespace

std::string Scheme::name() const {
  constexpr const char* kNames[] = {"agnostic", "agnostic-block", "aware", "aware-block"};
  return fmt::format("{}{}, {}", kNames[static_cast<int>(merging)],
                     block_bytes ? fmt::format(" {}", block_bytes) : "",
                     !is_aware()         ? (passes == 2 ? "gzip twice" : "gzip")
                     : fpzip_for_doubles ? (passes == 2 ? "fpzip+gzip" : "fpzip")
                                         : (passes == 2 ? "fpc+gzip" : "fpc"));
}

std::vector<MergedVariable> match_variables(std::span<const Checkpoint> ranks) {
  std::vector<MergedVariable> merged;
  std::map<std::tuple<std::string, ElementKind, std::uint32_t>, std::size_t> places;
  for (const Checkpoint& checkpoint : ranks)
    for (const Variable& variable : checkpoint) {
      const auto [place, is_new] = places.try_emplace(
          {variable.name, variable.type.kind, variable.type.bytes}, merged.size());
      if (is_new)
        merged.push_back({variable.name, variable.type, variable.shape, {&variable}, true});
      else
        merged[place->second].ranks.push_back(&variable);
    }
  for (MergedVariable& variable : merged) {
    std::uint64_t elements = 0;
    bool all_fold = true;
    for (const Variable* part : variable.ranks) {
      elements += part->bytes.size() / variable.type.bytes;
      all_fold = all_fold && folds(part->shape, variable.ranks[0]->shape);
      variable.is_small = variable.is_small && part->bytes.size() < kSmallBytes;
    }
    std::vector<std::uint64_t> extents(variable.shape.extents().begin(),
                                       variable.shape.extents().end());
    std::uint64_t row = 1;
    for (std::size_t i = 1; i < extents.size(); ++i) row *= extents[i];
    if (all_fold && row > 0) {
      extents[0] = elements / row;
      variable.shape = Shape(std::move(extents));
    } else {
      variable.shape = Shape(elements);
    }
  }
  return merged;
}

Bytes pack(std::span<const Checkpoint> ranks, const Scheme& scheme) {
  std::vector<Bytes> whole;
  Bytes packed;
  for (const Plan& plan : make_plans(ranks, scheme, whole)) {
    const Stream raw = {plan.type, plan.shape, merge(plan.parts, scheme.block_bytes)};
    const Pass* pass = first_pass(plan, scheme);
    put_sized(packed, raw.bytes.size(), pass && !raw.bytes.empty() ? pass->encode(raw) : raw.bytes);
  }
  return scheme.passes == 2 ? second_pass(std::move(packed)) : packed;
}

void unpack(std::span<const std::byte> packed, const Scheme& scheme, std::span<Checkpoint> ranks) {
  Bytes first;
  if (scheme.passes == 2) packed = first = undo_second_pass(packed);
  std::vector<Bytes> whole;
  Reader reader(packed);
  for (const Plan& plan : make_plans(ranks, scheme, whole)) {
    Stream raw = {plan.type, plan.shape, Bytes(reader.value<std::uint64_t>())};
    Bytes encoded = reader.array<std::byte>();
    if (reader.failed()) die("a packed set is cut off");
    if (const Pass* pass = first_pass(plan, scheme); pass && !raw.bytes.empty())
      pass->decode(encoded, raw);
    else
      raw.bytes = std::move(encoded);
    deal_out(raw.bytes, plan.parts, scheme.block_bytes);
  }
  for (std::size_t rank = 0; rank < whole.size(); ++rank) {
    Reader variables(whole[rank]);
    for (Variable& variable : ranks[rank]) variables.bytes(variable.bytes);
  }
}

std::vector<Checkpoint> blank(std::span<const Checkpoint> ranks) {
  std::vector<Checkpoint> copy(ranks.begin(), ranks.end());
  for (Checkpoint& checkpoint : copy)
    for (Variable& variable : checkpoint)
      std::fill(variable.bytes.begin(), variable.bytes.end(), std::byte{});
  return copy;
}

}  // namespace belay::bench
