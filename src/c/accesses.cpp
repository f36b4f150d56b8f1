// SPDX-License-Identifier: Apache-2.0
#include "c/accesses.hpp"

#include "c/handle.hpp"

#include <limits>

/// A failure is kept, so that a function which ignores it cannot save or load only a part.
struct belay_writer {
  belay::Writer writer;
  bool failed = false;
};
struct belay_reader {
  belay::Reader reader;
};

namespace belay::c {
namespace {

constexpr std::uint64_t kMaxBytes = std::numeric_limits<std::ptrdiff_t>::max();

/// Calls a function of the program's, which may be C++ and throw.
template <class Call>
auto call_program(const char* function, Call&& call) -> Result<decltype(call())> {
  try {
    return call();
  } catch (const std::exception& thrown) {
    return fail(Code::invalid_argument, "the {} function threw: {}", function, thrown.what());
  } catch (...) {
    return fail(Code::invalid_argument, "the {} function threw", function);
  }
}

}  // namespace

Result<std::span<std::byte>> DynamicAccess::elements() const {
  size_t count = 0;
  BELAY_ASSIGN(void* const memory,
               call_program("view", [&] { return memory_.view(&count, memory_.user); }));
  if (type_.bytes > 0 && count > kMaxBytes / type_.bytes)
    return fail(Code::invalid_argument,
                "the view function says {} elements of {} bytes, more than memory can have", count,
                type_.bytes);
  if (memory == nullptr && count > 0)
    return fail(Code::invalid_argument,
                "the view function says {} elements, but their memory is a null pointer", count);
  return std::span(static_cast<std::byte*>(memory), count * type_.bytes);
}

Shape DynamicAccess::shape() const {
  const auto found = elements();
  return Shape(!found || type_.bytes == 0 ? 0 : found->size() / type_.bytes);
}

Result<std::span<const std::byte>> DynamicAccess::view() {
  BELAY_ASSIGN(const auto found, elements());
  return std::span<const std::byte>(found);
}

Result<std::span<std::byte>> DynamicAccess::room(std::uint64_t bytes) {
  // A restore asks more than once: what has its size already stays where it is.
  BELAY_ASSIGN(const auto found, elements());
  if (found.size() == bytes) return found;
  const size_t count = bytes / type_.bytes;
  BELAY_ASSIGN(void* const memory,
               call_program("resize", [&] { return memory_.resize(count, memory_.user); }));
  if (memory == nullptr && count > 0)
    return fail(Code::no_space,
                "the resize function found no memory for {} elements of {} bytes; free memory or "
                "use more nodes",
                count, type_.bytes);
  BELAY_ASSIGN(const auto resized, elements());
  if (resized.data() != memory || resized.size() != count * type_.bytes)
    return fail(Code::invalid_argument,
                "after the resize function made room for {} elements, the view function does not "
                "show it; both must speak of the same memory",
                count);
  return resized;
}

Result<std::span<const std::byte>> FunctionsAccess::view() {
  buffer_.clear();
  belay_writer writer{Writer(buffer_)};
  BELAY_ASSIGN(const int failed,
               call_program("save", [&] { return serializer_.save(&writer, serializer_.user); }));
  if (failed != 0)
    return fail(Code::invalid_argument, "the save function returned {}, not 0", failed);
  if (writer.failed)
    return fail(Code::no_space, "the save function could not write all that it wanted to");
  return std::span<const std::byte>(buffer_);
}

Result<std::span<std::byte>> FunctionsAccess::room(std::uint64_t bytes) {
  try {
    buffer_.resize(bytes);
  } catch (const std::exception&) {
    return fail(Code::no_space, "no memory for {} bytes of a serialized region", bytes);
  }
  return std::span<std::byte>(buffer_);
}

Result<void> FunctionsAccess::restored() {
  belay_reader reader{Reader(buffer_)};
  BELAY_ASSIGN(const int failed,
               call_program("load", [&] { return serializer_.load(&reader, serializer_.user); }));
  if (reader.reader.failed())
    return fail(Code::invalid_argument,
                "the load function read past the end of what was saved; it must read exactly what "
                "the save function wrote");
  if (failed != 0)
    return fail(Code::invalid_argument, "the load function returned {}, not 0", failed);
  return {};
}

}  // namespace belay::c

int belay_write(belay_writer* writer, const void* bytes, size_t count) {
  using belay::c::refuse;
  if (writer == nullptr) return refuse(nullptr, "belay_write", "the writer is a null pointer");
  const int code = bytes == nullptr && count > 0
                       ? refuse(nullptr, "belay_write", "the bytes are a null pointer")
                       : belay::c::run(nullptr, [&]() -> belay::Result<void> {
                           writer->writer.bytes({static_cast<const std::byte*>(bytes), count});
                           return {};
                         });
  writer->failed = writer->failed || code != BELAY_OK;
  return code;
}

int belay_read(belay_reader* reader, void* into, size_t count) {
  using belay::c::refuse;
  if (reader == nullptr) return refuse(nullptr, "belay_read", "the reader is a null pointer");
  if (into == nullptr && count > 0)
    return refuse(nullptr, "belay_read", "the place to read into is a null pointer");
  const size_t left = reader->reader.remaining();
  reader->reader.bytes({static_cast<std::byte*>(into), count});
  if (count <= left) return BELAY_OK;
  return belay::c::run(nullptr, [&]() -> belay::Result<void> {
    return belay::fail(belay::Code::invalid_argument,
                       "belay_read: {} bytes are wanted, but only {} are left", count, left);
  });
}

size_t belay_remaining(const belay_reader* reader) {
  return reader == nullptr ? 0 : reader->reader.remaining();
}
