// SPDX-License-Identifier: Apache-2.0
#include "base/option_table.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "base/units.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <variant>
#include <vector>

namespace belay {
namespace {

/// One word that an option may have.
template <class T>
struct Choice {
  std::string_view word;
  T value = {};
  bool built = true;  ///< false: `word` and `word:...` belong to a stage that is not there yet
};

constexpr std::array kHashes = {
    Choice<HashKind>{"xxh3", HashKind::xxh3},
    Choice<HashKind>{"md5", HashKind::md5},
    Choice<HashKind>{"sha1", HashKind::sha1},
    Choice<HashKind>{"sha256", HashKind::sha256},
};
constexpr std::array kBackgrounds = {
    Choice<Background>{"thread", Background::thread},
    Choice<Background>{"inline", Background::inline_},
    Choice<Background>{"head", Background::head},
};
constexpr std::array kLates = {
    Choice<Late>{"wait", Late::wait},
    Choice<Late>{"skip", Late::skip},
};
constexpr std::array kDedups = {
    Choice<Dedup>{"none", Dedup::none},
    Choice<Dedup>{"local", Dedup::local},
    Choice<Dedup>{"collective", Dedup::collective},
    Choice<Dedup>{"collective-unshuffled", Dedup::collective_unshuffled},
};
constexpr std::array kLogLevels = {
    Choice<LogLevel>{"error", LogLevel::error},
    Choice<LogLevel>{"warn", LogLevel::warn},
    Choice<LogLevel>{"info", LogLevel::info},
    Choice<LogLevel>{"debug", LogLevel::debug},
};

// Options that can have only their default so far: there is nothing to keep in Settings.
using Checked = Choice<std::monostate>;
constexpr std::array kTracks = {
    Checked{"auto"},
    Checked{"none"},
    Checked{.word = "uffd", .built = false},
    Checked{.word = "mprotect", .built = false},
};
template <class T>
bool names(const Choice<T>& choice, std::string_view text) {
  const auto word = choice.word;
  if (same_word(text, word)) return true;
  return !choice.built && text.size() > word.size() && text[word.size()] == ':' &&
         same_word(text.substr(0, word.size()), word);
}

template <class T, std::size_t N>
Result<T> choose(std::string_view text, const std::array<Choice<T>, N>& choices) {
  const auto chosen = std::find_if(choices.begin(), choices.end(),
                                   [&](const Choice<T>& choice) { return names(choice, text); });
  if (chosen != choices.end() && chosen->built) return chosen->value;
  std::vector<std::string_view> built;
  for (const auto& choice : choices)
    if (choice.built) built.push_back(choice.word);
  if (chosen != choices.end())
    return fail(Code::unsupported, "this version of Belay has no such stage yet; use {}",
                either_of(built));
  return fail(Code::invalid_argument, "must be {}", either_of(built));
}

template <auto Member, const auto& Choices>
Result<void> parse_choice(std::string_view text, Settings& settings) {
  BELAY_ASSIGN(settings.*Member, choose(text, Choices));
  return {};
}

template <const auto& Choices>
Result<void> check_choice(std::string_view text, Settings&) {
  BELAY_TRY(choose(text, Choices));
  return {};
}

template <auto Member, const auto& Choices>
std::string show_choice(const Settings& settings) {
  const auto chosen = std::find_if(Choices.begin(), Choices.end(), [&](const auto& choice) {
    return choice.built && choice.value == settings.*Member;
  });
  return std::string(chosen->word);
}

template <auto Member, std::uint64_t Low, std::uint64_t High>
Result<void> parse_number(std::string_view text, Settings& settings) {
  const auto number = parse_count(text);
  if (!number || *number < Low || *number > High)
    return fail(Code::invalid_argument, "must be a whole number from {} to {}", Low, High);
  settings.*Member = *number;
  return {};
}

template <auto Member>
Result<void> parse_time(std::string_view text, Settings& settings) {
  const auto time_ns = parse_time_ns(text);
  if (!time_ns || *time_ns == 0)
    return fail(Code::invalid_argument, "must be a time above zero, such as 30s, 5m or 24h");
  settings.*Member = *time_ns;
  return {};
}

template <auto Member>
std::string show_number(const Settings& settings) {
  return std::to_string(settings.*Member);
}

template <auto Member>
std::string show_time(const Settings& settings) {
  return format_time_ns(settings.*Member);
}

template <auto Member>
Result<void> parse_path(std::string_view text, Settings& settings) {
  // The kernel would take all but NUL, but terminals and logs that show the path would not.
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < ' ' || c == '\x7f'; };
  if (std::any_of(text.begin(), text.end(), is_control))
    return fail(Code::invalid_argument,
                "must be the path of a directory, without control characters");
  settings.*Member = std::string(text);
  return {};
}

Result<void> parse_application(std::string_view text, Settings& settings) {
  if (const auto flaw = name_flaw(text))
    return fail(Code::invalid_argument, "must be {}, but {}", kNameRule, *flaw);
  settings.application = text;
  return {};
}

Result<void> parse_block(std::string_view text, Settings& settings) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < kMinBlockBytes || *bytes > kMaxBlockBytes)
    return fail(Code::invalid_argument, "must be a size between 512 B and 4 MiB, such as 16KiB");
  if (*bytes % kMinBlockBytes != 0)
    return fail(Code::invalid_argument, "must be a multiple of 512 B, such as 16KiB");
  settings.block_bytes = static_cast<std::uint32_t>(*bytes);
  return {};
}

Result<void> parse_staging(std::string_view text, Settings& settings) {
  const auto bytes = parse_bytes(text);
  if (!bytes || *bytes < 1u << 20)
    return fail(Code::invalid_argument,
                "must be a size of at least 1 MiB, such as 256MiB (unset, it is 25% of the "
                "protected memory, 64 MiB at least)");
  settings.staging_bytes = *bytes;
  return {};
}

/// `50 calls` -> 50.
std::optional<std::uint64_t> parse_calls(std::string_view text) {
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  auto word = text.substr(digits);
  word.remove_prefix(std::min(word.find_first_not_of(' '), word.size()));
  if (!same_word(word, "calls") && !same_word(word, "call")) return {};
  return parse_count(text.substr(0, digits));
}

Result<void> parse_interval(std::string_view text, Settings& settings) {
  const auto calls = parse_calls(text).value_or(0);
  const auto time_ns = parse_time_ns(text).value_or(0);
  if (same_word(text, "auto")) {
    settings.interval = {};
  } else if (calls > 0) {
    settings.interval = {.kind = Interval::Kind::calls, .calls = calls};
  } else if (time_ns > 0) {
    settings.interval = {.kind = Interval::Kind::time, .time_ns = time_ns};
  } else {
    return fail(Code::invalid_argument,
                "must be auto, a time above zero such as 10m, or a number of calls such as "
                "\"50 calls\"");
  }
  return {};
}

std::string show_interval(const Settings& settings) {
  const Interval& interval = settings.interval;
  if (interval.kind == Interval::Kind::time) return format_time_ns(interval.time_ns);
  if (interval.kind == Interval::Kind::calls) return fmt::format("{} calls", interval.calls);
  return "auto";
}

Result<void> parse_node(std::string_view text, Settings& settings) {
  // A node's directory is called node-<node>, and that must fit into a file name as well.
  constexpr std::size_t kMaxNodeBytes = kMaxNameBytes - 5;
  if (name_flaw(text) || text.size() > kMaxNodeBytes || text.find('/') != text.npos ||
      text == "." || text == "..")
    return fail(Code::invalid_argument,
                "must be 1 to {} bytes of UTF-8 without control characters and '/', and neither "
                "\".\" nor \"..\"",
                kMaxNodeBytes);
  settings.node = text;
  return {};
}

/// Rank 0's counts, so that ranks need not agree on it.
Result<void> parse_seed(std::string_view text, Settings& settings) {
  std::uint64_t seed = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seed, 16);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(Code::invalid_argument, "must be 1 to 16 hexadecimal digits");
  settings.seed = seed;
  return {};
}

/// `auto`, or `temperature*=lorenzo-zstd,ids=raw,*=auto`. Whether there is such a codec is asked
/// where they are known.
template <auto Member>
Result<void> parse_codec_rules(std::string_view text, Settings& settings) {
  CodecRules rules{{}, (settings.*Member).otherwise};
  while (!text.empty()) {
    const auto piece = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
    const auto equals = piece.rfind('=');
    const auto codec = piece.substr(equals == piece.npos ? 0 : equals + 1);
    if (codec.empty() || equals == 0)
      return fail(Code::invalid_argument,
                  "must be auto or a codec, or several of region=codec with commas between them, "
                  "where region may have * and ?");
    if (equals == piece.npos)
      rules.otherwise = codec;
    else
      rules.rules.emplace_back(piece.substr(0, equals), codec);
  }
  settings.*Member = std::move(rules);
  return {};
}

template <auto Member>
std::string show_codec_rules(const Settings& settings) {
  std::string text;
  for (const auto& [glob, codec] : (settings.*Member).rules) text += glob + "=" + codec + ",";
  return text + (settings.*Member).otherwise;
}

Result<void> parse_match(std::string_view text, Settings& settings) {
  BELAY_ASSIGN(settings.match, NameMatch::parse(std::string(text)));
  return {};
}

std::string show_match(const Settings& settings) { return settings.match.text(); }

/// `200MB/s`, `1.5 GiB/s`, `200MB`.
Result<void> parse_bandwidth(std::string_view text, Settings& settings) {
  const auto size = text.ends_with("/s") ? text.substr(0, text.size() - 2) : text;
  const auto bytes = parse_bytes(size);
  if (!bytes || *bytes == 0)
    return fail(Code::invalid_argument, "must be bytes per second, such as 200MB/s");
  settings.bandwidth = *bytes;
  return {};
}

Result<void> parse_level(std::string_view text, Settings& settings) {
  BELAY_ASSIGN(settings.redundancy, parse_redundancy(text));
  return {};
}

std::string show_level(const Settings& settings) {
  return settings.redundancy == Level{} ? "none" : name_of(settings.redundancy);
}

Result<void> parse_level_plan(std::string_view text, Settings& settings) {
  BELAY_ASSIGN(settings.levels, parse_levels(text));
  return {};
}

std::string show_level_plan(const Settings& settings) { return to_text(settings.level_plan()); }

std::string show_dedup(const Settings& settings) {
  Settings chosen = settings;
  chosen.dedup = settings.chosen_dedup();
  return show_choice<&Settings::dedup, kDedups>(chosen);
}

constexpr std::uint64_t kMaxRanks = std::numeric_limits<Rank>::max();

/// Who says how many wants that many, wherever ranks are.
Result<void> parse_aggregate(std::string_view text, Settings& settings) {
  BELAY_TRY((parse_number<&Settings::aggregate, 1, kMaxRanks>(text, settings)));
  settings.aggregate_given = true;
  return {};
}

std::string show_aggregate(const Settings& settings) {
  return settings.aggregate_given ? std::to_string(settings.aggregate) : std::string();
}

std::string show_global(const Settings& settings) { return settings.global; }

std::string show_application(const Settings& settings) { return settings.application; }

using O = Options;
using S = Settings;

constexpr std::array kOptions = {
    Option{"store", &O::store, parse_path<&S::store>},
    Option{"application", &O::application, parse_application, show_application},
    Option{"block", &O::block, parse_block, show_number<&S::block_bytes>},
    Option{"hash", &O::hash, parse_choice<&S::hash, kHashes>, show_choice<&S::hash, kHashes>},
    Option{"keep", &O::keep, parse_number<&S::keep, 1, 1000000>, show_number<&S::keep>},
    Option{"interval", &O::interval, parse_interval, show_interval},
    Option{"mtbf", &O::mtbf, parse_time<&S::mtbf_ns>, show_time<&S::mtbf_ns>},
    Option{"background", &O::background, parse_choice<&S::background, kBackgrounds>,
           show_choice<&S::background, kBackgrounds>},
    Option{"late", &O::late, parse_choice<&S::late, kLates>, show_choice<&S::late, kLates>},
    Option{"heads_per_node", &O::heads_per_node, parse_number<&S::heads_per_node, 1, kMaxRanks>,
           show_number<&S::heads_per_node>},
    Option{"staging", &O::staging, parse_staging},
    Option{"segments", &O::segments, parse_number<&S::segments, 2, kMaxSegments>,
           show_number<&S::segments>},
    Option{"timeout", &O::timeout, parse_time<&S::timeout_ns>, show_time<&S::timeout_ns>},
    Option{"track", &O::track, check_choice<kTracks>},
    Option{"redundancy", &O::redundancy, parse_level, show_level},
    Option{"dedup", &O::dedup, parse_choice<&S::dedup, kDedups>, show_dedup},
    Option{"dedup_table", &O::dedup_table, parse_number<&S::dedup_table, 1, 1u << 30>,
           show_number<&S::dedup_table>},
    Option{"levels", &O::levels, parse_level_plan, show_level_plan},
    Option{"global", &O::global, parse_path<&S::global>, show_global},
    Option{"aggregate", &O::aggregate, parse_aggregate, show_aggregate},
    Option{"codec", &O::codec, parse_codec_rules<&S::codec>, show_codec_rules<&S::codec>, true},
    Option{"local_codec", &O::local_codec, parse_codec_rules<&S::local_codec>,
           show_codec_rules<&S::local_codec>, true},
    Option{"match", &O::match, parse_match, show_match},
    Option{"bandwidth", &O::bandwidth, parse_bandwidth},
    Option{"node", &O::node, parse_node},
    Option{"ranks_per_node", &O::ranks_per_node, parse_number<&S::ranks_per_node, 1, kMaxRanks>},
    Option{"seed", &O::seed, parse_seed},
    Option{"log", &O::log, parse_choice<&S::log, kLogLevels>},
};

}  // namespace

std::span<const Option> option_table() { return kOptions; }

}  // namespace belay
