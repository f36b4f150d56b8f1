// SPDX-License-Identifier: Apache-2.0
#include "inspect/read_only_tier.hpp"

#include "base/try.hpp"

namespace belay::inspect {
namespace {

class ReadOnlyTier final : public store::Tier {
 public:
  explicit ReadOnlyTier(std::unique_ptr<store::Tier> tier) : tier_(std::move(tier)) {}

  Result<std::unique_ptr<os::File>> create(const std::string& name) override {
    return refuse("create", name);
  }
  Result<std::unique_ptr<os::File>> open(const std::string& name) override {
    return tier_->open(name);
  }
  Result<void> publish(const std::string&, const std::string& name, bool) override {
    return refuse("publish", name);
  }
  Result<std::uint64_t> touch(const std::string& name) override {
    BELAY_ASSIGN(const auto file, tier_->open(name));
    return file->size();
  }
  Result<void> remove(const std::string& name) override { return refuse("remove", name); }
  Result<void> sync_names() override { return {}; }
  Result<std::vector<std::string>> list() override { return tier_->list(); }
  Result<os::Space> space() override { return tier_->space(); }
  const std::string& place() const override { return tier_->place(); }

 private:
  Unexpected refuse(const char* operation, const std::string& name) const {
    return fail(Code::unsupported, "{} {}/{}: opened for reading only", operation, place(), name);
  }

  std::unique_ptr<store::Tier> tier_;
};

}  // namespace

std::unique_ptr<store::Tier> make_read_only_tier(std::unique_ptr<store::Tier> tier) {
  return std::make_unique<ReadOnlyTier>(std::move(tier));
}

}  // namespace belay::inspect
