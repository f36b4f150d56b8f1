// SPDX-License-Identifier: Apache-2.0
// A group as plain MPI_Init gives it: one thread may use it, and the background has none.
#pragma once

#include "comm/group.hpp"

#include <memory>
#include <utility>
#include <vector>

namespace belay::session {

class OneThreadGroup : public ranks::Group {
 public:
  explicit OneThreadGroup(std::unique_ptr<ranks::Group> group) : group_(std::move(group)) {}

  Rank rank() const override { return group_->rank(); }
  Rank size() const override { return group_->size(); }
  Result<void> reduce(std::span<std::uint64_t> values, ranks::Reduction reduction) override {
    return group_->reduce(values, reduction);
  }
  Result<std::vector<std::vector<std::byte>>> gather(std::span<const std::byte> mine) override {
    return group_->gather(mine);
  }
  Result<void> broadcast(std::span<std::byte> bytes, Rank root) override {
    return group_->broadcast(bytes, root);
  }
  Result<std::vector<std::vector<std::byte>>> exchange(std::span<const ranks::Message> out,
                                                       std::span<const Rank> from) override {
    return group_->exchange(out, from);
  }
  Result<std::unique_ptr<ranks::Window>> open_window(std::uint64_t bytes) override {
    return group_->open_window(bytes);
  }
  Result<std::unique_ptr<Group>> duplicate() override {
    return Unexpected(Error(Code::unsupported, "one thread at a time"));
  }
  Result<void> close() override { return group_->close(); }

 private:
  std::unique_ptr<Group> group_;
};

}  // namespace belay::session
