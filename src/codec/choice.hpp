// SPDX-License-Identifier: Apache-2.0
// Which codec for which variable: as the user's rules say, or the one that takes the least time
// to encode and to write, found from a sample and remembered.
#pragma once

#include <belay/result.hpp>

#include "codec/codec.hpp"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace belay::codec {

/// What the user wants.
struct Wishes {
  /// Glob of names of variables, and "auto" or a codec's name; the first that fits counts.
  std::vector<std::pair<std::string, std::string>> rules;
  std::string otherwise = "auto";
  /// Of the place that encoded bytes go to, as one writer sees it.
  double bytes_per_second = 200e6;
};

/// invalid_argument: a rule names no codec; the message has the nearest name.
Result<void> check(const Wishes& wishes);

/// What came of a choice.
struct Chosen {
  std::string variable;
  const Codec* codec = nullptr;
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t encode_ns = 0;
  std::uint32_t samplings = 0;
};

/// Thread-safe. Choices are kept for each variable.
class Chooser {
 public:
  /// REQUIRES: check(wishes).
  explicit Chooser(Wishes wishes);
  ~Chooser();

  /// For an extent of this variable, of which `raw` are the bytes. Appraises a sample of it once
  /// enough has come of the variable to be worth it, and again if its type changed, it is much
  /// larger than what was sampled, or so much has changed, as far as extents before it and a look
  /// at this one tell, that a better choice may save more than another sample takes; else says what
  /// was chosen. Until then, the smallest at a glance, or what suits most.
  const Codec& choose(std::string_view variable, const Elements& elements,
                      std::span<const std::byte> raw, Workspace& workspace);
  /// What encoding an extent of it came to.
  void learn(std::string_view variable, std::uint64_t raw_bytes, std::uint64_t encoded_bytes,
             std::uint64_t encode_ns);
  void set_bandwidth(double bytes_per_second);
  std::vector<Chosen> chosen() const;  ///< sorted by name

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace belay::codec
