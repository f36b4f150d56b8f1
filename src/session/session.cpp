// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "session/core.hpp"
#include "session/linkage.hpp"

namespace belay {
namespace {

/// Calls `work(core)`. Of a session that was moved from there is none.
template <class Work>
auto with(const std::unique_ptr<detail::SessionCore>& core, Work&& work) -> decltype(work(*core)) {
  if (!core)
    return fail(Code::invalid_argument,
                "the session was moved from: call the one that it was moved to");
  return within_memory([&] { return work(*core); });
}

/// The same; a failure is kept for wait() or close() as well.
template <class Work>
auto remembering(const std::unique_ptr<detail::SessionCore>& core, Work&& work)
    -> decltype(work(*core)) {
  auto result = with(core, std::forward<Work>(work));
  return core ? core->remembered(std::move(result)) : result;
}

}  // namespace

Session::Session(std::unique_ptr<detail::SessionCore> core) : core_(std::move(core)) {}
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;
Session::~Session() = default;

Result<void> Session::protect(std::string_view name, std::unique_ptr<RegionAccess> access) {
  return remembering(core_, [&](auto& core) { return core.protect(name, std::move(access)); });
}
Result<void> Session::unprotect(std::string_view name) {
  return remembering(core_, [&](auto& core) { return core.unprotect(name); });
}

std::optional<Version> Session::latest() const { return core_ ? core_->latest() : std::nullopt; }
std::vector<VersionInfo> Session::versions() const {
  return core_ ? core_->versions() : std::vector<VersionInfo>{};
}
Stats Session::stats() const { return core_ ? core_->stats() : Stats{}; }

Result<Version> Session::restore(RestoreOptions options) {
  return with(core_, [&](auto& core) { return core.restore(options); });
}
Result<Version> Session::restore(Version version) {
  return restore(RestoreOptions{.version = version});
}

bool Session::due() { return core_ && core_->due(); }
Result<Version> Session::checkpoint() {
  return remembering(core_, [](auto& core) { return core.checkpoint(); });
}
Result<void> Session::begin() {
  return remembering(core_, [](auto& core) { return core.begin(); });
}
Result<void> Session::add(std::string_view name) {
  return remembering(core_, [&](auto& core) { return core.add(name); });
}
Result<Version> Session::commit() {
  return remembering(core_, [](auto& core) { return core.commit(); });
}
Result<Version> Session::wait() {
  return with(core_, [](auto& core) { return core.wait(); });
}
Result<void> Session::close() {
  return with(core_, [](auto& core) { return core.close(); });
}

Result<Version> Session::dump(std::span<const std::span<const std::byte>> buffers, int copies) {
  return remembering(core_, [&](auto& core) { return core.dump(buffers, copies); });
}
Result<void> Session::load(Version version, std::span<const std::span<std::byte>> buffers) {
  return with(core_, [&](auto& core) { return core.load(version, buffers); });
}

detail::SessionCore* core_of(const Session& session) { return session.core_.get(); }

ranks::Group* session::group_of(const Session& session) {
  auto* const core = core_of(session);
  return core == nullptr ? nullptr : &core->group();
}

}  // namespace belay
