// SPDX-License-Identifier: Apache-2.0
#include "base/nouns.hpp"

#include <belay/result.hpp>

#include <fmt/format.h>

#include <algorithm>

namespace belay {

std::string to_hex(std::uint64_t low, std::uint64_t high) {
  return fmt::format("{:016x}{:016x}", high, low);
}

std::size_t Manifest::holding_segments() const {
  const auto holds = [this](const SegmentRef& segment) {
    return segment.id.rank == origin.rank || segment.id.rank == kAnyRank;
  };
  const auto end = std::find_if_not(segments.begin(), segments.end(), holds);
  return static_cast<std::size_t>(end - segments.begin());
}

const char* name_of(Code code) {
  switch (code) {
    case Code::not_found:
      return "not_found";
    case Code::corruption:
      return "corruption";
    case Code::io:
      return "io";
    case Code::no_space:
      return "no_space";
    case Code::unsupported:
      return "unsupported";
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::peer_lost:
      return "peer_lost";
    case Code::busy:
      return "busy";
  }
  return "unknown";
}

const char* name_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::bytes:
      return "bytes";
    case ElementKind::i8:
      return "i8";
    case ElementKind::i16:
      return "i16";
    case ElementKind::i32:
      return "i32";
    case ElementKind::i64:
      return "i64";
    case ElementKind::u8:
      return "u8";
    case ElementKind::u16:
      return "u16";
    case ElementKind::u32:
      return "u32";
    case ElementKind::u64:
      return "u64";
    case ElementKind::f32:
      return "f32";
    case ElementKind::f64:
      return "f64";
    case ElementKind::c64:
      return "c64";
    case ElementKind::c128:
      return "c128";
    case ElementKind::opaque:
      return "opaque";
    case ElementKind::serialized:
      return "serialized";
  }
  return "unknown";
}

}  // namespace belay
