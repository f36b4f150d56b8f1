// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "c/accesses.hpp"
#include "c/handle.hpp"

#include <limits>

using belay::Code;
using belay::ElementKind;
using belay::ElementType;
using belay::fail;
using belay::Result;
using belay::Shape;

namespace {

using Access = std::unique_ptr<belay::RegionAccess>;

constexpr size_t kMaxDimensions = 32;
constexpr size_t kMaxBytes = std::numeric_limits<std::ptrdiff_t>::max();

static_assert(static_cast<int>(ElementKind::bytes) == BELAY_BYTES);
static_assert(static_cast<int>(ElementKind::i64) == BELAY_I64);
static_assert(static_cast<int>(ElementKind::u64) == BELAY_U64);
static_assert(static_cast<int>(ElementKind::f64) == BELAY_F64);
static_assert(static_cast<int>(ElementKind::c128) == BELAY_C128);
static_assert(static_cast<int>(ElementKind::opaque) == BELAY_OPAQUE);
static_assert(static_cast<int>(ElementKind::serialized) == BELAY_SERIALIZED);

/// Elements of BELAY_BYTES to BELAY_C128.
constexpr std::uint32_t kElementBytes[] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16};

Result<ElementType> plain_type(int type) {
  if (type < BELAY_BYTES || type > BELAY_C128)
    return fail(Code::invalid_argument,
                "type {} is none from BELAY_BYTES to BELAY_C128; structures have functions of "
                "their own, which end in _opaque",
                type);
  return ElementType{static_cast<ElementKind>(type), kElementBytes[type], ""};
}

Result<ElementType> opaque_type(size_t bytes, const char* name) {
  if (bytes > std::numeric_limits<std::uint32_t>::max())
    return fail(Code::invalid_argument,
                "elements of {} bytes are too large (at most 4 GiB); protect their parts", bytes);
  return ElementType{ElementKind::opaque, static_cast<std::uint32_t>(bytes),
                     name == nullptr ? "" : name};
}

struct Array {
  void* memory;
  size_t count;
  size_t dimensions;
  const size_t* extents;
};

Result<void> check_array(const Array& array, const ElementType& type) {
  if (array.dimensions > kMaxDimensions)
    return fail(Code::invalid_argument, "{} dimensions; at most {} can be recorded",
                array.dimensions, kMaxDimensions);
  if (array.dimensions > 0 && array.extents == nullptr)
    return fail(Code::invalid_argument, "{} dimensions, but the extents are a null pointer",
                array.dimensions);
  if (type.bytes > 0 && array.count > kMaxBytes / type.bytes)
    return fail(Code::invalid_argument,
                "{} elements of {} bytes are more than memory can have; is the count negative?",
                array.count, type.bytes);
  return {};
}

Shape shape_of(const Array& array) {
  if (array.dimensions > 0)
    return Shape(std::vector<std::uint64_t>(array.extents, array.extents + array.dimensions));
  return array.count == 1 ? Shape() : Shape(array.count);
}

Result<Access> access_array(const Array& array, Result<ElementType> type) {
  BELAY_ASSIGN(const ElementType element, std::move(type));
  BELAY_TRY(check_array(array, element));
  const std::span bytes(static_cast<std::byte*>(array.memory), array.count * element.bytes);
  return Access(std::make_unique<belay::detail::ArrayAccess>(bytes, element, shape_of(array)));
}

Result<Access> access_dynamic(const belay_dynamic& memory, Result<ElementType> type) {
  BELAY_ASSIGN(const ElementType element, std::move(type));
  if (memory.view == nullptr || memory.resize == nullptr)
    return fail(Code::invalid_argument, "view and resize must both be given");
  return Access(std::make_unique<belay::c::DynamicAccess>(memory, element));
}

/// `access()` gives the Result<Access>.
template <class MakeAccess>
int protect(belay_session* session, const char* call, const char* name, MakeAccess&& access) {
  if (session == nullptr) return belay::c::refuse(session, call, belay::c::kNoSession);
  if (name == nullptr) return belay::c::refuse_and_keep(session, call, belay::c::kNoName);
  return belay::c::run(session, [&]() -> Result<void> {
    auto made = belay::within(fmt::format("{} {}", call, belay::in_quotes(name)), access());
    if (!made) return belay::Unexpected(belay::c::kept(*session, made.error()));
    return session->session.protect(name, *std::move(made));
  });
}

}  // namespace

int belay_protect(belay_session* session, const char* name, void* memory, size_t count,
                  belay_type type, size_t dimensions, const size_t* extents) {
  return protect(session, "belay_protect", name, [&] {
    return access_array({memory, count, dimensions, extents}, plain_type(static_cast<int>(type)));
  });
}

int belay_protect_opaque(belay_session* session, const char* name, void* memory, size_t count,
                         size_t type_bytes, const char* type_name, size_t dimensions,
                         const size_t* extents) {
  return protect(session, "belay_protect_opaque", name, [&] {
    return access_array({memory, count, dimensions, extents}, opaque_type(type_bytes, type_name));
  });
}

int belay_protect_dynamic(belay_session* session, const char* name, belay_dynamic memory,
                          belay_type type) {
  return protect(session, "belay_protect_dynamic", name,
                 [&] { return access_dynamic(memory, plain_type(static_cast<int>(type))); });
}

int belay_protect_dynamic_opaque(belay_session* session, const char* name, belay_dynamic memory,
                                 size_t type_bytes, const char* type_name) {
  return protect(session, "belay_protect_dynamic_opaque", name,
                 [&] { return access_dynamic(memory, opaque_type(type_bytes, type_name)); });
}

int belay_protect_serialized(belay_session* session, const char* name,
                             belay_serializer serializer) {
  return protect(session, "belay_protect_serialized", name, [&]() -> Result<Access> {
    if (serializer.save == nullptr || serializer.load == nullptr)
      return fail(Code::invalid_argument, "save and load must both be given");
    return Access(std::make_unique<belay::c::FunctionsAccess>(serializer));
  });
}

int belay_unprotect(belay_session* session, const char* name) {
  constexpr const char* kCall = "belay_unprotect";
  if (session == nullptr) return belay::c::refuse(session, kCall, belay::c::kNoSession);
  if (name == nullptr) return belay::c::refuse_and_keep(session, kCall, belay::c::kNoName);
  return belay::c::run(session, [&] { return session->session.unprotect(name); });
}
