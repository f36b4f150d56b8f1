// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "session/core.hpp"
#include "session/linkage.hpp"

namespace belay {

Session::Session(std::unique_ptr<detail::SessionCore> core) : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<void> Session::protect(std::string_view name, std::unique_ptr<RegionAccess> access) {
  return core_->remembered(within_memory([&] { return core_->protect(name, std::move(access)); }));
}

Result<void> Session::unprotect(std::string_view name) {
  return core_->remembered(core_->unprotect(name));
}

std::optional<Version> Session::latest() const { return core_->latest(); }
std::vector<VersionInfo> Session::versions() const { return core_->versions(); }
Stats Session::stats() const { return core_->stats(); }

Result<Version> Session::restore(RestoreOptions options) {
  return within_memory([&] { return core_->restore(options); });
}
Result<Version> Session::restore(Version version) {
  return restore(RestoreOptions{.version = version});
}

bool Session::due() { return core_->due(); }
Result<Version> Session::checkpoint() {
  return core_->remembered(within_memory([&] { return core_->checkpoint(); }));
}
Result<void> Session::begin() {
  return core_->remembered(within_memory([&] { return core_->begin(); }));
}
Result<void> Session::add(std::string_view name) {
  return core_->remembered(within_memory([&] { return core_->add(name); }));
}
Result<Version> Session::commit() {
  return core_->remembered(within_memory([&] { return core_->commit(); }));
}
Result<Version> Session::wait() {
  return within_memory([&] { return core_->wait(); });
}
Result<void> Session::close() {
  return within_memory([&] { return core_->close(); });
}

Result<Version> Session::dump(std::span<const std::span<const std::byte>>, int) {
  return core_->remembered(Result<Version>(
      fail(Code::unsupported, "dump: this version of Belay has no replicas; use checkpoint()")));
}

Result<void> Session::load(Version, std::span<const std::span<std::byte>>) {
  return core_->remembered(Result<void>(
      fail(Code::unsupported, "load: this version of Belay has no replicas; use restore()")));
}

detail::SessionCore& core_of(const Session& session) { return *session.core_; }

ranks::Group& session::group_of(const Session& session) { return core_of(session).group(); }

}  // namespace belay
