// SPDX-License-Identifier: Apache-2.0
// Where the raw bytes of variables lie in a file that an application wrote.
//
// Packing never interprets a file: it cuts ranges of bytes out and keeps the rest, so that putting
// all back gives the same file whatever the ranges mean. A wrong layout costs ratio, never data.
#pragma once

#include <belay/result.hpp>
#include <belay/types.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace belay::files {

struct Range {
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  std::uint64_t end() const { return offset + length; }
  bool operator==(const Range&) const = default;
};

/// The values are part of the format of packed sets.
enum class FileFormat : std::uint8_t { other = 0, hdf5 = 1, netcdf = 2 };
const char* name_of(FileFormat format);

/// What ElementType::name says of numbers whose bytes lie the other way round.
inline constexpr const char* kBigEndian = "big-endian";
/// And what it says of opaque elements that are texts of fixed length.
inline constexpr const char* kFixedText = "string";
/// Or that say where something is, instead of being it.
inline constexpr const char* kReference = "reference";
/// Or numbers of two bytes, as IEEE 754 has them.
inline constexpr const char* kFloat16 = "float16";

struct ArrayType {
  ElementType type;
  Shape shape;

  /// Unset: more than any file has.
  std::optional<std::uint64_t> bytes() const;
  /// Elements of a kind and a size, in no more dimensions than there may be, and bytes().
  bool makes_sense() const;
  bool operator==(const ArrayType&) const = default;
};

/// A dataset or variable of a file. Its bytes are those of the ranges, in their order.
struct Variable {
  std::string name;
  ElementType type;
  Shape shape;  ///< of the bytes: chunks come one after the other
  std::vector<Range> ranges;
  std::optional<ArrayType> whole = {};  ///< what it is, where its bytes are not simply that

  std::uint64_t bytes() const;
};

/// One that is not worth ranges of its own, or has none: its bytes are among the rest of the file.
struct SkeletonVariable {
  std::string name;
  ArrayType array;
  std::uint64_t bytes = 0;  ///< that it takes in the file

  bool operator==(const SkeletonVariable&) const = default;
};

struct Layout {
  FileFormat format = FileFormat::other;
  std::vector<Variable> variables;
  std::vector<SkeletonVariable> in_skeleton = {};
  std::string remark;  ///< why a file of a known format has no variables; for people
};

/// Smaller ones are not worth a region of their own.
inline constexpr std::uint64_t kLeastVariableBytes = 100;
inline constexpr std::size_t kMostDimensions = 32;
inline constexpr std::size_t kMostVariables = 1 << 16;            ///< of one file, of both kinds
inline constexpr std::size_t kMostRanges = std::size_t{1} << 20;  ///< of one file
inline constexpr std::size_t kMostVariableNameBytes = 0xFFFF;

/// Adds a range; one that begins where the last ends makes it longer.
void add_range(std::vector<Range>& ranges, Range range);
std::uint64_t bytes_of(std::span<const Range> ranges);

/// Leaves out of the skeleton's variables what cannot be listed: names that are taken, empty or too
/// long, arrays that make no sense, and what would be too many.
void keep_listable(Layout& layout, std::uint64_t file_bytes);

/// corruption unless all ranges are in the file and apart from each other, there are not too many,
/// names are not empty, and types and shapes fit the bytes; of the skeleton's variables, unless
/// keep_listable() would keep them all.
Result<void> check_layout(const Layout& layout, std::uint64_t file_bytes);

/// All bytes that belong to no variable, front to back. REQUIRES: check_layout().
std::vector<Range> rest_of(const Layout& layout, std::uint64_t file_bytes);

/// What lies in many pieces must be gathered in memory: a variable that is larger than this and not
/// in one piece becomes several, `x[0]`, `x[1]` ..., each of whole rows of the slowest dimension
/// where these are small enough; each knows the whole.
std::vector<Variable> split_large(Variable variable,
                                  std::uint64_t most_bytes = std::uint64_t{256} << 20);

/// If the bytes are not `shape` elements of `type`, they become a row of plain bytes.
void fit_shape(Variable& variable);

}  // namespace belay::files
