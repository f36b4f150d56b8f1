// SPDX-License-Identifier: Apache-2.0
#include "capture/regions.hpp"

#include "base/settings.hpp"
#include "base/try.hpp"

#include <limits>
#include <numeric>

namespace belay::capture {
namespace {

constexpr std::size_t kMaxDimensions = 32;

/// Elements that the shape promises, or nothing if they are beyond counting.
std::optional<std::uint64_t> elements_of(const Shape& shape) {
  std::uint64_t elements = 1;
  for (const std::uint64_t extent : shape.extents()) {
    if (extent != 0 && elements > std::numeric_limits<std::uint64_t>::max() / extent) return {};
    elements *= extent;
  }
  return elements;
}

std::uint64_t bytes_of(const RegionAccess& access) {
  return elements_of(access.shape()).value_or(0) * access.type().bytes;
}

Result<void> check_shape(std::string_view name, RegionAccess& access) {
  const Shape shape = access.shape();
  const ElementType type = access.type();
  if (shape.dimensions() > kMaxDimensions)
    return fail(Code::invalid_argument, "protect '{}': {} dimensions; at most {} can be recorded",
                name, shape.dimensions(), kMaxDimensions);
  if (type.kind == ElementKind::serialized) return {};
  if (type.bytes == 0)
    return fail(Code::invalid_argument, "protect '{}': elements of 0 bytes hold nothing", name);
  BELAY_ASSIGN(const auto bytes, access.view());
  const auto elements = elements_of(shape);
  if (!elements || *elements > std::numeric_limits<std::uint64_t>::max() / type.bytes ||
      *elements * type.bytes != bytes.size())
    return fail(
        Code::invalid_argument,
        "protect '{}': the shape does not fit the memory, which has {} elements of {} bytes; "
        "the extents' product must be that number",
        name, bytes.size() / type.bytes, type.bytes);
  if (bytes.data() == nullptr && !bytes.empty())
    return fail(Code::invalid_argument, "protect '{}': the memory is a null pointer", name);
  return {};
}

}  // namespace

Result<void> Regions::protect(std::string_view name, std::unique_ptr<RegionAccess> access) {
  BELAY_TRY(check_name("region", name));
  if (!access) return fail(Code::invalid_argument, "protect '{}': no access given", name);
  if (const std::string type = access->type().name; !type.empty())
    BELAY_TRY(check_name("type name", type));
  BELAY_TRY(check_shape(name, *access));
  regions_.insert_or_assign(std::string(name), Region{std::move(access)});
  return {};
}

Result<void> Regions::unprotect(std::string_view name) {
  const auto found = regions_.find(name);
  if (found == regions_.end())
    return fail(Code::not_found, "unprotect '{}': no region of that name is protected", name);
  regions_.erase(found);
  return {};
}

Regions::Region* Regions::find(std::string_view name) {
  const auto found = regions_.find(name);
  return found == regions_.end() ? nullptr : &found->second;
}

const Regions::Region* Regions::find(std::string_view name) const {
  return const_cast<Regions*>(this)->find(name);
}

std::uint64_t Regions::bytes() const {
  return std::accumulate(
      regions_.begin(), regions_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const auto& region) { return sum + bytes_of(*region.second.access); });
}

}  // namespace belay::capture

namespace belay::detail {

Result<std::span<const std::byte>> SerializerAccess::view() {
  buffer_.clear();
  try {
    Writer writer(buffer_);
    save_(writer);
  } catch (const std::exception& thrown) {
    return fail(Code::invalid_argument, "the save function threw: {}", thrown.what());
  } catch (...) {
    return fail(Code::invalid_argument, "the save function threw");
  }
  return std::span<const std::byte>(buffer_);
}

Result<std::span<std::byte>> SerializerAccess::room(std::uint64_t bytes) {
  try {
    buffer_.resize(bytes);
  } catch (const std::exception&) {
    return fail(Code::no_space, "no memory for {} bytes of a serialized region", bytes);
  }
  return std::span<std::byte>(buffer_);
}

Result<void> SerializerAccess::restored() {
  try {
    Reader reader(buffer_);
    load_(reader);
    if (reader.failed())
      return fail(Code::invalid_argument,
                  "the load function read past the end of what was saved; it must read exactly "
                  "what the save function wrote");
  } catch (const std::exception& thrown) {
    return fail(Code::invalid_argument, "the load function threw: {}", thrown.what());
  } catch (...) {
    return fail(Code::invalid_argument, "the load function threw");
  }
  return {};
}

}  // namespace belay::detail
