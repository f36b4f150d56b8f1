// SPDX-License-Identifier: Apache-2.0
// For tests: a stripe in memory, encoded as nodes would that send each other their chunks.
#pragma once

#include "redundancy/stripe_layout.hpp"

#include "base/try.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace belay::redundancy {

using String = std::vector<std::byte>;
using Places = std::vector<std::uint32_t>;

inline std::vector<std::uint64_t> random_lengths(std::mt19937_64& random, std::size_t count,
                                                 std::uint64_t most) {
  std::vector<std::uint64_t> lengths;
  for (std::size_t i = 0; i < count; ++i)
    lengths.push_back(random() % 5 == 0 ? 0 : random() % (most + 1));
  return lengths;
}

class PlayedStripe {
 public:
  using Key = std::pair<std::uint32_t, std::uint32_t>;  ///< place, shard or kMember

  PlayedStripe(StripeLayout layout, std::mt19937_64& random) : layout_(std::move(layout)) {
    const auto code = ErasureCode::make(layout_.scheme());
    std::map<std::uint32_t, std::vector<MutableBytes>> shards;  // by codeword
    for (std::uint32_t place = 0; place < layout_.nodes(); ++place) {
      String& member = parts_[{place, StripePart::kMember}];
      member.resize(layout_.bytes_of({place}));
      std::ranges::generate(member, [&] { return static_cast<std::byte>(random()); });
      for (const auto& [codeword, position, range] : layout_.shards(place)) {
        const std::uint32_t shard = position - layout_.scheme().members;
        String& kept = parts_[{place, shard}];
        kept.resize(range.length);
        shards[codeword].resize(layout_.scheme().shards);
        shards[codeword][shard] = kept;
      }
    }
    for (std::uint32_t place = 0; place < layout_.nodes(); ++place)
      for (const auto& [codeword, position, range] : layout_.contributions(place)) {
        const Bytes member = parts_[{place, StripePart::kMember}];
        code->add_member(position, member.subspan(range.offset, range.length), shards[codeword]);
      }
  }

  const StripeLayout& layout() const { return layout_; }
  const String& bytes_of(const StripePart& part) const {
    return parts_.at({part.place, part.shard});
  }
  const std::map<Key, String>& parts() const { return parts_; }

  void lose(const Places& places) { lost_ = {places.begin(), places.end()}; }
  /// Reading any byte of [begin, end) of this part fails from now on.
  void damage(const StripePart& part, Range range, Code code = Code::corruption) {
    damages_.push_back({part, range, code});
  }
  void heal() {
    damages_.clear();
    lost_.clear();
  }

  Result<void> read(const StripePart& part, std::uint64_t offset, MutableBytes into) {
    EXPECT_FALSE(lost_.contains(part.place)) << "a lost node was asked for " << name_of(part);
    const String& bytes = bytes_of(part);
    EXPECT_LE(offset + into.size(), bytes.size()) << name_of(part);
    EXPECT_FALSE(into.empty());
    most_read_at_once_ = std::max(most_read_at_once_, into.size());
    for (const Damage& damage : damages_)
      if (damage.part == part && offset < damage.range.end() &&
          damage.range.offset < offset + into.size())
        return fail(damage.code, "bad checksum at {}", offset);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    bytes_read_ += into.size();
    return {};
  }
  std::uint64_t take_bytes_read() { return std::exchange(bytes_read_, 0); }
  std::size_t most_read_at_once() const { return most_read_at_once_; }

 private:
  struct Damage {
    StripePart part;
    Range range;
    Code code;
  };

  StripeLayout layout_;
  std::map<Key, String> parts_;
  std::set<std::uint32_t> lost_;
  std::vector<Damage> damages_;
  std::uint64_t bytes_read_ = 0;
  std::size_t most_read_at_once_ = 0;
};

/// Every set of 1 to `most` of `nodes` places.
inline std::vector<Places> subsets(std::uint32_t nodes, std::uint32_t most) {
  std::vector<Places> all{{}};
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::uint32_t next = all[i].empty() ? 0 : all[i].back() + 1;
         all[i].size() < most && next < nodes; ++next) {
      Places longer = all[i];
      longer.push_back(next);
      all.push_back(std::move(longer));
    }
  all.erase(all.begin());
  return all;
}

}  // namespace belay::redundancy
