// SPDX-License-Identifier: Apache-2.0
// How a session reaches the memory of a region. Programs meet this header only through
// Session::protect and, for their own serializers, Writer and Reader.
#pragma once

#include <belay/api.h>
#include <belay/result.hpp>
#include <belay/types.hpp>

#include <array>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace belay {

/// Receives what a save function writes.
class Writer {
 public:
  explicit Writer(std::vector<std::byte>& sink) : sink_(&sink) {}

  void bytes(std::span<const std::byte> bytes) {
    sink_->insert(sink_->end(), bytes.begin(), bytes.end());
  }
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void value(const T& value) { bytes(std::as_bytes(std::span<const T, 1>(&value, 1))); }
  /// Length first, then the elements.
  template <class T>
  requires std::is_trivially_copyable_v<T>
  void array(std::span<const T> values) {
    value(static_cast<std::uint64_t>(values.size()));
    bytes(std::as_bytes(values));
  }
  void text(std::string_view text) { array(std::span<const char>(text.data(), text.size())); }

 private:
  std::vector<std::byte>* sink_;
};

/// Gives a load function what its save function wrote. Reading past the end sets failed() and
/// yields zeros; restore() then reports it.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> source) : source_(source) {}

  std::size_t remaining() const { return source_.size(); }
  bool failed() const { return failed_; }

  void bytes(std::span<std::byte> into) {
    if (into.size() > source_.size()) {
      failed_ = true;
      std::memset(into.data(), 0, into.size());
      return;
    }
    if (!into.empty()) std::memcpy(into.data(), source_.data(), into.size());
    source_ = source_.subspan(into.size());
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> T value() {
    T result{};
    bytes(std::as_writable_bytes(std::span<T, 1>(&result, 1)));
    return result;
  }
  template <class T>
  requires std::is_trivially_copyable_v<T> std::vector<T> array() {
    const auto count = value<std::uint64_t>();
    if (count > remaining() / sizeof(T)) {
      failed_ = true;
      return {};
    }
    std::vector<T> values(count);
    bytes(std::as_writable_bytes(std::span<T>(values)));
    return values;
  }
  std::string text() {
    const auto chars = array<char>();
    return {chars.begin(), chars.end()};
  }

 private:
  std::span<const std::byte> source_;
  bool failed_ = false;
};

/// One region's memory behind a uniform face. Owned by the session that protects it.
class BELAY_API RegionAccess {
 public:
  virtual ~RegionAccess() = default;
  virtual ElementType type() const = 0;
  virtual Shape shape() const = 0;
  /// The bytes to save, valid until the next view(), room() or restored(). Runs a save function.
  virtual Result<std::span<const std::byte>> view() = 0;
  /// Room for `bytes` saved bytes: resizes what can be resized, else the memory as it is.
  virtual Result<std::span<std::byte>> room(std::uint64_t bytes) = 0;
  /// After the room was filled. Runs a load function.
  virtual Result<void> restored() { return {}; }
};

namespace detail {

template <class T>
inline constexpr bool refers_elsewhere = false;
template <class T>
inline constexpr bool refers_elsewhere<std::reference_wrapper<T>> = true;
template <class T>
inline constexpr bool refers_elsewhere<std::initializer_list<T>> = true;

template <class T>
inline constexpr bool is_view_like = std::is_pointer_v<T> || std::is_member_pointer_v<T> ||
                                     std::ranges::view<T> || refers_elsewhere<T>;

template <class T>
concept Savable = std::is_trivially_copyable_v<T> && !is_view_like<std::remove_cv_t<T>> &&
                  !std::is_reference_v<T> && !std::is_const_v<T>;

class ArrayAccess final : public RegionAccess {
 public:
  ArrayAccess(std::span<std::byte> bytes, ElementType type, Shape shape)
      : bytes_(bytes), type_(std::move(type)), shape_(std::move(shape)) {}
  ElementType type() const override { return type_; }
  Shape shape() const override { return shape_; }
  Result<std::span<const std::byte>> view() override { return std::span<const std::byte>(bytes_); }
  Result<std::span<std::byte>> room(std::uint64_t) override { return bytes_; }

 private:
  std::span<std::byte> bytes_;
  ElementType type_;
  Shape shape_;
};

template <class T, class Allocator>
class VectorAccess final : public RegionAccess {
 public:
  explicit VectorAccess(std::vector<T, Allocator>& vector) : vector_(&vector) {}
  ElementType type() const override { return element_type<T>(); }
  Shape shape() const override { return Shape(vector_->size()); }
  Result<std::span<const std::byte>> view() override {
    return std::as_bytes(std::span<const T>(*vector_));
  }
  Result<std::span<std::byte>> room(std::uint64_t bytes) override {
    try {
      vector_->resize(bytes / sizeof(T));
    } catch (const std::exception&) {
      return Unexpected(Error(Code::no_space, "the vector cannot grow to " + std::to_string(bytes) +
                                                  " bytes; free memory or use more nodes"));
    }
    return std::as_writable_bytes(std::span<T>(*vector_));
  }

 private:
  std::vector<T, Allocator>* vector_;
};

class BELAY_API SerializerAccess final : public RegionAccess {
 public:
  SerializerAccess(std::function<void(Writer&)> save, std::function<void(Reader&)> load)
      : save_(std::move(save)), load_(std::move(load)) {}
  ElementType type() const override { return {ElementKind::serialized, 1, ""}; }
  Shape shape() const override { return Shape(buffer_.size()); }
  Result<std::span<const std::byte>> view() override;
  Result<std::span<std::byte>> room(std::uint64_t bytes) override;
  Result<void> restored() override;

 private:
  std::function<void(Writer&)> save_;
  std::function<void(Reader&)> load_;
  std::vector<std::byte> buffer_;
};

template <class T>
struct ArrayTraits {
  using Element = T;
  static Shape shape() { return {}; }
};
template <class T, std::size_t N>
struct ArrayTraits<T[N]> {
  using Element = typename ArrayTraits<T>::Element;
  static Shape shape() { return prepend(N, ArrayTraits<T>::shape()); }
  static Shape prepend(std::uint64_t first, const Shape& rest) {
    std::vector<std::uint64_t> extents{first};
    extents.insert(extents.end(), rest.extents().begin(), rest.extents().end());
    return Shape(std::move(extents));
  }
};
template <class T, std::size_t N>
struct ArrayTraits<std::array<T, N>> : ArrayTraits<T[N]> {};

template <class T>
std::unique_ptr<RegionAccess> access_value(T& value) {
  using Traits = ArrayTraits<T>;
  static_assert(Savable<typename Traits::Element>,
                "protect: arrays of pointers or views do not hold the data that they point to");
  return std::make_unique<ArrayAccess>(
      std::as_writable_bytes(std::span<T, 1>(std::addressof(value), 1)),
      element_type<typename Traits::Element>(), Traits::shape());
}

}  // namespace detail
}  // namespace belay
