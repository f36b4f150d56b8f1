// SPDX-License-Identifier: Apache-2.0
#include "simulator/application.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace belay::simulator {

namespace {

constexpr std::size_t kPiece = 512;      // the smallest block
constexpr std::size_t kMostPieces = 20;  // of a region
constexpr std::uint64_t kPatterns = 5;   // few, so that many blocks are equal

}  // namespace

std::vector<RegionSpec> make_specs(std::uint64_t seed, std::uint32_t rank) {
  // Names and kinds are the same on all ranks, sizes are not.
  SimRandom shared(sub_seed(seed, 100));
  SimRandom own(sub_seed(seed, 101 + rank));
  std::vector<RegionSpec> specs = {{"step", RegionKind::value, 0}};
  const std::uint64_t count = shared.between(1, 5);
  for (std::uint64_t i = 0; i < count; ++i) {
    RegionSpec spec;
    spec.kind = static_cast<RegionKind>(shared.below(4));
    spec.name = "r" + std::to_string(i);
    const std::uint64_t pieces = own.below(own.one_in(3) ? kMostPieces : 5);
    spec.bytes = pieces * kPiece + (own.one_in(2) ? 0 : own.below(kPiece));
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::span<std::byte> Application::Region::content() {
  if (spec.kind == RegionKind::value) return std::as_writable_bytes(std::span(value));
  return bytes;
}

Application::Application(std::vector<RegionSpec> specs, std::uint64_t seed) : random_(seed) {
  for (RegionSpec& spec : specs) {
    auto region = std::make_unique<Region>();
    region->spec = spec;
    if (spec.kind != RegionKind::value) region->bytes.resize(spec.bytes);
    regions_[spec.name] = std::move(region);
  }
}

void Application::scramble() {
  for (auto& [name, region] : regions_)
    for (std::byte& byte : region->content()) byte = static_cast<std::byte>(random_.next());
}

void Application::initialise() {
  for (auto& [name, region] : regions_) {
    const auto content = region->content();
    for (std::size_t at = 0; at < content.size(); at += kPiece)
      fill(content.subspan(at, std::min(kPiece, content.size() - at)));
  }
  log_.forget_all();
}

/// One of a few patterns, or bytes that nothing else has.
void Application::fill(std::span<std::byte> piece) {
  const std::uint64_t pattern = random_.below(kPatterns + 3);
  SimRandom source(pattern < kPatterns ? pattern : random_.next());
  for (std::byte& byte : piece)
    byte = pattern == 0 ? std::byte{0} : static_cast<std::byte>(source.next());
}

std::set<std::string> Application::all_names() const {
  std::set<std::string> names;
  for (const auto& [name, region] : regions_) names.insert(name);
  return names;
}

Result<void> Application::protect(Session& session, Region& region) {
  const std::string& name = region.spec.name;
  protected_.insert(name);
  log_.forget(name);
  if (region.spec.kind == RegionKind::value) return session.protect(name, region.value);
  if (region.spec.kind == RegionKind::vector) return session.protect(name, region.bytes);
  if (region.spec.kind == RegionKind::array)
    return session.protect(name, std::span<std::byte>(region.bytes));
  return session.protect(
      name, [&region](Writer& writer) { writer.array(std::span<const std::byte>(region.bytes)); },
      [&region](Reader& reader) { region.bytes = reader.array<std::byte>(); });
}

Result<void> Application::protect(Session& session, const std::set<std::string>& names) {
  for (const std::string& name : std::set<std::string>(protected_)) {
    if (names.count(name) > 0) continue;
    BELAY_TRY(session.unprotect(name));
    protected_.erase(name);
    log_.forget(name);
  }
  for (const std::string& name : names)
    if (protected_.count(name) == 0) BELAY_TRY(protect(session, *regions_.at(name)));
  return {};
}

Result<void> Application::come_or_go(Session& session) {
  auto chosen = regions_.begin();
  std::advance(chosen, static_cast<std::ptrdiff_t>(random_.below(regions_.size())));
  Region& region = *chosen->second;
  std::set<std::string> names = protected_;
  if (names.erase(chosen->first) == 0) {
    names.insert(chosen->first);
  } else if (random_.one_in(2)) {
    // The same name at another address.
    std::vector<std::byte> moved(region.bytes);
    region.bytes.swap(moved);
    return protect(session, region);
  }
  return protect(session, names);
}

Result<void> Application::advance(Session& session) {
  if (random_.one_in(6)) BELAY_TRY(come_or_go(session));
  for (const std::string& name : std::set<std::string>(protected_))
    if (random_.one_in(2)) write(name);
  return {};
}

void Application::write(const std::string& name) { write(*regions_.at(name)); }

void Application::resize(Region& region) {
  const std::size_t before = region.bytes.size();
  const std::size_t most = kMostPieces * kPiece;
  const std::size_t after = random_.one_in(8)   ? 0
                            : random_.one_in(2) ? before + random_.below(3 * kPiece)
                                                : random_.below(before + kPiece);
  region.bytes.resize(std::min(after, most));
  log_.wrote(region.spec.name, before, region.bytes.size());
}

void Application::write(Region& region) {
  const bool resizable =
      region.spec.kind == RegionKind::vector || region.spec.kind == RegionKind::serializer;
  if (resizable && random_.one_in(3)) resize(region);
  const auto content = region.content();
  if (!content.empty()) {
    std::vector<std::byte> before(content.begin(), content.end());
    if (random_.one_in(6) && region.earlier.size() == content.size()) {
      std::copy(region.earlier.begin(), region.earlier.end(), content.begin());
      log_.wrote(region.spec.name, 0, content.size());
    }
    for (std::uint64_t writes = random_.below(4); writes > 0; --writes) {
      const bool whole_piece = !random_.one_in(4);
      const std::size_t unit = whole_piece ? kPiece : 1;
      const std::size_t at = random_.below((content.size() + unit - 1) / unit) * unit;
      const auto piece = content.subspan(at, std::min(unit, content.size() - at));
      if (!random_.one_in(5)) fill(piece);  // else: written with what it held
      log_.wrote(region.spec.name, at, at + piece.size());
    }
    if (random_.one_in(3)) region.earlier = std::move(before);
  }
  if (region.spec.kind == RegionKind::serializer) log_.forget(region.spec.name);
}

std::vector<std::byte> Application::bytes_of(const std::string& name) const {
  const auto content = regions_.at(name)->content();
  return {content.begin(), content.end()};
}

State Application::state() const {
  State state;
  for (const std::string& name : protected_) state[name] = bytes_of(name);
  return state;
}

}  // namespace belay::simulator
