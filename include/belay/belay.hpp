// SPDX-License-Identifier: Apache-2.0
// Belay: checkpoints of named memory that survive a kill at any instant.
//
//   auto opened = belay::open();
//   if (!opened) return fail(opened.error());
//   belay::Session session = std::move(*opened);
//   session.protect("step", step);
//   session.protect("grid", std::span<double>(grid), {rows, cols});
//   if (session.latest())
//     if (auto restored = session.restore(); !restored) return fail(restored.error());
//   while (step < last) {
//     advance();
//     ++step;                                    // what is saved is what comes back
//     if (session.due()) session.checkpoint();
//   }
//   if (auto closed = session.close(); !closed) return fail(closed.error());
//
// Programs with MPI include <belay/mpi.hpp> as well and call belay::open(MPI_COMM_WORLD).
#pragma once

#include <belay/api.h>
#include <belay/options.hpp>
#include <belay/region.hpp>
#include <belay/result.hpp>
#include <belay/stats.hpp>
#include <belay/types.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace belay {

struct RestoreOptions {
  std::optional<Version> version = {};    ///< the newest that all ranks can restore, if unset
  std::vector<std::string> regions = {};  ///< only these; empty: every protected region
  bool allow_missing = false;             ///< leave regions alone that the version does not have
  bool allow_resized = false;             ///< fill as many bytes as both sides have
};

namespace detail {
class SessionCore;
}

/// One group of ranks with one store. Move-only; several may coexist. All calls come from one
/// thread at a time. Calls marked collective are made by every rank, in the same order.
///
/// Nobody may write protected memory between entry and return of checkpoint(), or of add() and
/// commit() for the regions that these capture. Errors come back as Result; of calls whose result
/// was ignored, the first failure is kept and returned by wait() or close().
class BELAY_API Session {
 public:
  explicit Session(std::unique_ptr<detail::SessionCore> core);
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;
  /// Ends the session without communicating: what was captured is still made durable, but failures
  /// go only to the log. Call close() to know.
  ~Session();

  /// Names a value. Naming it again moves the region to the new address.
  template <class T>
  requires(std::is_trivially_copyable_v<T> && !detail::is_view_like<std::remove_cv_t<T>> &&
           !std::is_const_v<T>) Result<void> protect(std::string_view name, T& value) {
    return protect(name, detail::access_value(value));
  }

  /// Names an array. Without a shape it has one dimension.
  template <class T, std::size_t N>
  requires detail::Savable<T> Result<void> protect(std::string_view name, std::span<T, N> array,
                                                   Shape shape = {}) {
    return protect(name, std::make_unique<detail::ArrayAccess>(
                             std::as_writable_bytes(array), element_type<T>(),
                             shape.empty() ? Shape(array.size()) : std::move(shape)));
  }

  /// Names a vector, which may grow, shrink and move; restore() resizes it.
  template <class T, class Allocator>
  requires(detail::Savable<T> &&
           !std::is_same_v<T, bool>) Result<void> protect(std::string_view name,
                                                          std::vector<T, Allocator>& vector) {
    return protect(name, std::make_unique<detail::VectorAccess<T, Allocator>>(vector));
  }

  /// Names what `save(Writer&)` writes and `load(Reader&)` reads back.
  template <class Save, class Load>
  requires(std::is_invocable_v<Save&, Writer&>&& std::is_invocable_v<Load&, Reader&>)
      Result<void> protect(std::string_view name, Save save, Load load) {
    return protect(name,
                   std::make_unique<detail::SerializerAccess>(std::move(save), std::move(load)));
  }

  Result<void> protect(std::string_view name, std::unique_ptr<RegionAccess> access);
  Result<void> unprotect(std::string_view name);

  /// The newest version that can be restored. Empty only on a first start: where a version existed
  /// and is damaged, this names it and restore() says what is wrong with it.
  std::optional<Version> latest() const;
  /// The versions that every rank can restore, newest first.
  std::vector<VersionInfo> versions() const;
  Stats stats() const;

  /// Collective. Fills the protected regions from a version, every byte verified. Without a version
  /// named it takes the newest that all ranks can read. After an error the contents of the regions
  /// are unspecified, but no version was lost; after falling back from a damaged version so are
  /// those of regions that the older one does not have.
  [[nodiscard]] Result<Version> restore(RestoreOptions options = {});
  [[nodiscard]] Result<Version> restore(Version version);

  /// Collective. Is it time for a checkpoint? Rank 0 decides; the first call says yes. Waits for
  /// all ranks, but with an `interval` of calls.
  bool due();
  /// Collective. Captures all regions as a new version; it becomes durable in the background.
  /// Returns the new version's number, or with `late = skip` that of the version still in flight.
  Result<Version> checkpoint();

  /// Incremental completion: begin() and commit() are collective, add() is not. A region may be
  /// written again as soon as its add() has returned. commit() captures what was not added.
  Result<void> begin();
  Result<void> add(std::string_view name);
  Result<Version> commit();

  /// Collective. Waits until nothing is in flight. The newest existing version (0: none), or the
  /// first failure that was not reported yet.
  Result<Version> wait();
  /// Collective. Waits, reports like wait(), and releases the store.
  [[nodiscard]] Result<void> close();

  /// Collective. Saves buffers as a version of their own, on `copies` nodes each, and returns when
  /// it is durable and exists. They may differ in number and size between ranks, be empty, and
  /// overlap. `keep` neither counts nor retires it, latest() and restore() never choose it;
  /// versions() lists it, `belay prune` removes it.
  Result<Version> dump(std::span<const std::span<const std::byte>> buffers, int copies);
  /// Collective. Fills buffers of the same number and sizes with what dump() has saved, every byte
  /// verified. After an error their contents are unspecified.
  Result<void> load(Version version, std::span<const std::span<std::byte>> buffers);
  /// Processes that only do background work. This version of Belay has none: every rank computes.
  bool is_head() const { return false; }
  int serve() { return 0; }

 private:
  friend detail::SessionCore* core_of(const Session& session);
  std::unique_ptr<detail::SessionCore> core_;
};

/// Opens or creates a store for a program of one process.
[[nodiscard]] BELAY_API Result<Session> open(Options options = {});

}  // namespace belay
