// SPDX-License-Identifier: Apache-2.0
// Regions that functions of a C program stand for.
#pragma once

#include <belay/belay.h>
#include <belay/region.hpp>

#include <vector>

namespace belay::c {

/// Memory whose place and length are asked for each time, and that is resized on restore.
class DynamicAccess final : public RegionAccess {
 public:
  DynamicAccess(const belay_dynamic& memory, ElementType type)
      : memory_(memory), type_(std::move(type)) {}
  ElementType type() const override { return type_; }
  /// No elements, if they cannot be viewed: view() says why.
  Shape shape() const override;
  Result<std::span<const std::byte>> view() override;
  Result<std::span<std::byte>> room(std::uint64_t bytes) override;

 private:
  Result<std::span<std::byte>> elements() const;

  belay_dynamic memory_;
  ElementType type_;
};

/// What a save function writes and a load function reads.
class FunctionsAccess final : public RegionAccess {
 public:
  explicit FunctionsAccess(const belay_serializer& serializer) : serializer_(serializer) {}
  ElementType type() const override { return {ElementKind::serialized, 1, ""}; }
  Shape shape() const override { return Shape(buffer_.size()); }
  Result<std::span<const std::byte>> view() override;
  Result<std::span<std::byte>> room(std::uint64_t bytes) override;
  Result<void> restored() override;

 private:
  belay_serializer serializer_;
  std::vector<std::byte> buffer_;
};

}  // namespace belay::c
