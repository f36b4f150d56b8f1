// SPDX-License-Identifier: Apache-2.0
#include "session/inquiry.hpp"

#include "base/try.hpp"
#include "format/wire.hpp"

namespace belay::session {

Result<std::optional<Letters>> inquire(
    ranks::Group& group, const Letters& questions, bool busy,
    const std::function<std::vector<std::byte>(std::span<const std::byte>)>& answer) {
  std::vector<std::byte> notice;
  format::WireWriter writer(notice);
  writer.field(static_cast<std::uint8_t>(busy));
  for (const auto& [rank, letter] : questions) writer.field(rank);
  BELAY_ASSIGN(const auto all, group.gather(notice));
  bool any = false;
  std::vector<Rank> askers;
  for (Rank asker = 0; asker < all.size(); ++asker) {
    format::WireReader reader(all[asker]);
    any = reader.field<std::uint8_t>() != 0 || any;
    while (reader.remaining() > 0)
      if (reader.field<Rank>() == group.rank()) askers.push_back(asker);
  }
  if (!any) return std::optional<Letters>();

  std::vector<Rank> asked;
  std::vector<ranks::Message> out;
  for (const auto& [rank, letter] : questions) {
    asked.push_back(rank);
    out.push_back({rank, letter});
  }
  BELAY_ASSIGN(const auto received, group.exchange(out, askers));
  std::vector<std::vector<std::byte>> answers;
  for (const auto& letter : received) answers.push_back(answer(letter));
  out.clear();
  for (std::size_t i = 0; i < askers.size(); ++i) out.push_back({askers[i], answers[i]});
  BELAY_ASSIGN(auto mine, group.exchange(out, asked));
  Letters letters;
  for (std::size_t i = 0; i < asked.size(); ++i) letters[asked[i]] = std::move(mine[i]);
  return std::optional(std::move(letters));
}

}  // namespace belay::session
