// SPDX-License-Identifier: Apache-2.0
// Tables from and to bytes: a header, then one array after the other as they lie in memory.
#include "base/try.hpp"
#include "dedup/frequent_blocks.hpp"

#include <bit>
#include <cstring>

namespace belay::dedup {
namespace {

static_assert(std::endian::native == std::endian::little, "tables travel as they lie in memory");

constexpr std::uint64_t kMagic = 0x31424659'414c4542;  // "BELAYFB1"

struct Header {
  std::uint64_t magic = kMagic;
  std::uint64_t entries = 0;
  std::uint64_t designated = 0;
  std::uint64_t loads = 0;
};

template <class T>
void put(std::vector<std::byte>& bytes, std::span<const T> values) {
  if (values.empty()) return;
  const std::size_t end = bytes.size();
  bytes.resize(end + values.size_bytes());
  std::memcpy(bytes.data() + end, values.data(), values.size_bytes());
}

/// The next `count` values. REQUIRES: they are there.
template <class T>
std::vector<T> get(std::span<const std::byte>& bytes, std::size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), count * sizeof(T));
  bytes = bytes.subspan(count * sizeof(T));
  return values;
}

constexpr std::uint64_t kLoadBytes = sizeof(Rank) + sizeof(std::uint64_t);
constexpr std::uint64_t kEntryBytes = sizeof(FrequentBlocks::Entry) + sizeof(std::uint8_t);

template <class... Args>
Unexpected refuse(fmt::format_string<Args...> format, Args&&... args) {
  return fail(Code::corruption,
              "table of frequent blocks from another rank: {} (do all ranks run the same build of "
              "Belay with the same options?)",
              fmt::format(format, std::forward<Args>(args)...));
}

Result<Header> get_header(std::span<const std::byte>& bytes, const NodeLayout& layout,
                          std::size_t capacity) {
  if (bytes.size() < sizeof(Header)) return refuse("{} bytes are too short", bytes.size());
  const Header header = get<Header>(bytes, 1).front();
  if (header.magic != kMagic) return refuse("it does not begin like one");
  if (header.entries > capacity)
    return refuse("{} entries where at most {} are allowed", header.entries, capacity);
  // Each bound keeps the sums below from wrapping.
  if (header.loads > layout.ranks() || header.entries > bytes.size() ||
      header.designated > bytes.size())
    return refuse("it promises more than its {} bytes can hold", bytes.size());
  const std::uint64_t expected =
      header.entries * kEntryBytes + header.designated * sizeof(Rank) + header.loads * kLoadBytes;
  if (bytes.size() != expected)
    return refuse("{} bytes after the header instead of {}", bytes.size(), expected);
  return header;
}

Result<void> check_entry(const FrequentBlocks::Entry& entry, std::span<const Rank> designated,
                         const NodeLayout& layout) {
  if (entry.length < 1 || entry.length > kMaxBlockBytes)
    return refuse("block {} has {} bytes", to_hex(entry.fingerprint), entry.length);
  if (designated.empty() || designated.size() > layout.copies() ||
      designated.size() > entry.frequency || entry.frequency > layout.ranks())
    return refuse("block {} has frequency {} and {} designated ranks, of {} copies",
                  to_hex(entry.fingerprint), entry.frequency, designated.size(), layout.copies());
  for (std::size_t i = 0; i < designated.size(); ++i) {
    if (designated[i] >= layout.ranks() || (i > 0 && designated[i] <= designated[i - 1]))
      return refuse("rank {} cannot be designated there", designated[i]);
    for (std::size_t j = 0; j < i; ++j)
      if (layout.node_of(designated[i]) == layout.node_of(designated[j]))
        return refuse("ranks {} and {} share a node", designated[j], designated[i]);
  }
  return {};
}

}  // namespace

std::vector<std::byte> FrequentBlocks::encode() const {
  const Header header{
      .entries = entries_.size(), .designated = ranks_.size(), .loads = loads_.size()};
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof(Header) + entries_.size() * kEntryBytes + ranks_.size() * sizeof(Rank) +
                loads_.size() * kLoadBytes);
  put<Header>(bytes, {&header, 1});
  put<Entry>(bytes, entries_);
  for (std::size_t i = 0; i < entries_.size(); ++i)
    bytes.push_back(static_cast<std::byte>(designated(i).size()));
  put<Rank>(bytes, ranks_);
  for (const Load& load : loads_) put<Rank>(bytes, {&load.rank, 1});
  for (const Load& load : loads_) put<std::uint64_t>(bytes, {&load.bytes, 1});
  return bytes;
}

Result<FrequentBlocks> FrequentBlocks::decode(std::span<const std::byte> bytes,
                                              const NodeLayout& layout, std::size_t capacity) {
  BELAY_ASSIGN(const Header header, get_header(bytes, layout, capacity));
  FrequentBlocks table;
  table.entries_ = get<Entry>(bytes, header.entries);
  std::size_t end = 0;
  table.ends_.reserve(header.entries);
  for (const std::uint8_t count : get<std::uint8_t>(bytes, header.entries))
    table.ends_.push_back(end += count);
  if (end != header.designated)
    return refuse("{} designated ranks instead of {}", end, header.designated);
  table.ranks_ = get<Rank>(bytes, header.designated);
  const auto ranks = get<Rank>(bytes, header.loads);
  const auto loads = get<std::uint64_t>(bytes, header.loads);
  for (std::size_t i = 0; i < loads.size(); ++i) table.loads_.push_back({ranks[i], loads[i]});
  BELAY_TRY(table.check(layout));
  return table;
}

Result<void> FrequentBlocks::check(const NodeLayout& layout) const {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (i > 0 && !before(entries_[i - 1].block(), entries_[i].block()))
      return refuse("entry {} is not in order", i);
    BELAY_TRY(check_entry(entries_[i], designated(i), layout));
  }
  for (std::size_t i = 0; i < loads_.size(); ++i)
    if (loads_[i].rank >= layout.ranks() || (i > 0 && loads_[i].rank <= loads_[i - 1].rank))
      return refuse("the load of rank {} is not in order", loads_[i].rank);
  return {};
}

}  // namespace belay::dedup
