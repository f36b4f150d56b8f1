// SPDX-License-Identifier: Apache-2.0
#include "vote/agreement.hpp"

#include "base/try.hpp"

namespace belay::vote {

Result<std::vector<std::string>> gather_texts(ranks::Group& group, std::string_view mine) {
  BELAY_ASSIGN(const auto all,
               group.gather(std::as_bytes(std::span<const char>(mine.data(), mine.size()))));
  std::vector<std::string> texts;
  texts.reserve(all.size());
  for (const auto& bytes : all)
    texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

Result<void> agree(ranks::Group& group, const Result<void>& mine) {
  if (group.size() == 1) return mine;
  std::uint64_t all_succeeded = mine.has_value() ? 1 : 0;
  BELAY_TRY(group.reduce({&all_succeeded, 1}, ranks::Reduction::min));
  if (all_succeeded == 1) return {};

  // The first byte is the code, so that an empty text means success.
  std::string report;
  if (!mine) report = static_cast<char>('a' + static_cast<int>(mine.error().code()));
  if (!mine) report += mine.error().message();
  BELAY_ASSIGN(const auto reports, gather_texts(group, report));
  for (std::size_t rank = 0; rank < reports.size(); ++rank)
    if (!reports[rank].empty())
      return fail(static_cast<Code>(reports[rank][0] - 'a'), "rank {}: {}", rank,
                  reports[rank].substr(1));
  return fail(Code::peer_lost, "a rank reported a failure but did not say which");
}

}  // namespace belay::vote
