// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/exchange_window.hpp"
#include "comm/group.hpp"

namespace belay::ranks {
namespace {

class SoloGroup : public Group {
 public:
  Rank rank() const override { return 0; }
  Rank size() const override { return 1; }

  Result<void> reduce(std::span<std::uint64_t>, Reduction) override { return {}; }

  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override {
    return std::vector<std::vector<std::byte>>{{mine.begin(), mine.end()}};
  }

  Result<void> broadcast(std::span<std::byte>, Rank root) override {
    if (root != 0)
      return fail(Code::invalid_argument, "broadcast from rank {}: the group has 1 rank", root);
    return {};
  }

  Result<std::vector<std::vector<std::byte>>> exchange(std::span<const Message> out,
                                                       std::span<const Rank> from) override {
    BELAY_TRY(check_exchange(0, 1, out, from));
    std::vector<std::vector<std::byte>> received;
    for (const Message& message : out)
      received.emplace_back(message.bytes.begin(), message.bytes.end());
    return received;
  }

  Result<std::unique_ptr<Window>> open_window(std::uint64_t bytes) override {
    return open_exchange_window(*this, bytes);
  }

  Result<std::unique_ptr<Group>> duplicate() override { return make_solo_group(); }
};

}  // namespace

std::unique_ptr<Group> make_solo_group() { return std::make_unique<SoloGroup>(); }

}  // namespace belay::ranks
