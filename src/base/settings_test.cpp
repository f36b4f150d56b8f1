// SPDX-License-Identifier: Apache-2.0
#include "base/settings.hpp"

#include "base/option_table.hpp"
#include "base/try.hpp"

#include <gtest/gtest.h>

#include <random>

namespace belay {
namespace {

using Environment = std::vector<std::pair<std::string, std::string>>;

OptionSources sources_of(Environment environment, Options code = {}) {
  return {.code = std::move(code),
          .environment = std::move(environment),
          .program = "solver",
          .read_file = [](const std::string& path) -> Result<std::string> {
            return fail(Code::not_found, "open {}: No such file or directory", path);
          }};
}

Options code_with(Setting Options::*option, Setting value) {
  Options code;
  code.*option = std::move(value);
  return code;
}

/// As if BELAY_CONFIG named a file with these contents.
OptionSources file_of(std::string contents, Environment environment = {}, Options code = {}) {
  environment.emplace_back("BELAY_CONFIG", "belay.toml");
  auto sources = sources_of(std::move(environment), std::move(code));
  sources.read_file = [contents](const std::string&) -> Result<std::string> { return contents; };
  return sources;
}

Settings settings_of(const OptionSources& sources) {
  auto resolved = resolve_options(sources);
  if (!resolved) {
    ADD_FAILURE() << resolved.error().message();
    return {};
  }
  EXPECT_TRUE(resolved->warnings.empty()) << resolved->warnings.front();
  return resolved->settings;
}

Settings with(const std::string& variable, const std::string& text) {
  return settings_of(sources_of({{variable, text}}));
}

Error error_of(const OptionSources& sources) {
  auto resolved = resolve_options(sources);
  if (!resolved) return resolved.error();
  ADD_FAILURE() << "resolved without an error";
  return {Code::io, ""};
}

std::vector<std::string> warnings_of(const OptionSources& sources) {
  auto resolved = resolve_options(sources);
  if (!resolved) ADD_FAILURE() << resolved.error().message();
  return resolved ? resolved->warnings : std::vector<std::string>{};
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(OptionTable, HasARowForEveryMemberOfOptions) {
  constexpr auto kMembers = (sizeof(Options) - sizeof(LogCallback)) / sizeof(Setting);
  EXPECT_EQ(option_table().size(), kMembers);
  for (const auto& a : option_table())
    for (const auto& b : option_table())
      if (&a != &b) {
        EXPECT_NE(a.name, b.name);
        EXPECT_NE(a.code, b.code) << a.name << " and " << b.name;
      }
}

TEST(Settings, WithNoSourceAtAllTheDefaultsHold) {
  const auto settings = settings_of(sources_of({}));
  EXPECT_EQ(settings.store, "./belay-store");
  EXPECT_EQ(settings.application, "solver");
  EXPECT_EQ(settings.block_bytes, 16384u);
  EXPECT_EQ(settings.keep, 2u);
  EXPECT_EQ(settings.interval.kind, Interval::Kind::automatic);
  EXPECT_EQ(settings.mtbf_ns, 86400000000000u);
  EXPECT_EQ(settings.timeout_ns, 300000000000u);
  EXPECT_FALSE(settings.staging_bytes);
  EXPECT_FALSE(settings.node);
}

TEST(Settings, EnvironmentBeatsFileAndCodeBeatsBoth) {
  const std::string file = "keep = 3\nsegments = 30\nblock = '1KiB'\n";
  const Environment environment = {{"BELAY_KEEP", "4"}, {"BELAY_SEGMENTS", "40"}};
  const auto settings = settings_of(file_of(file, environment, code_with(&Options::keep, 5)));
  EXPECT_EQ(settings.keep, 5u);
  EXPECT_EQ(settings.segments, 40u);
  EXPECT_EQ(settings.block_bytes, 1024u);
}

TEST(Settings, AWrongValueThatAStrongerSourceReplacesDoesNoHarm) {
  EXPECT_EQ(settings_of(file_of("keep = 'many'", {{"BELAY_KEEP", "4"}})).keep, 4u);
  EXPECT_EQ(settings_of(sources_of({{"BELAY_KEEP", "0"}}, code_with(&Options::keep, 6))).keep, 6u);
}

TEST(Settings, FileValuesMayBeStringsNumbersAndBooleans) {
  const auto settings = settings_of(
      file_of("keep = 7\ntimeout = 1.5\nblock = 32768\nlog = 'info'\napplication = true\n"
              "interval = '50 calls'\n"));
  EXPECT_EQ(settings.keep, 7u);
  EXPECT_EQ(settings.timeout_ns, 1500000000u);
  EXPECT_EQ(settings.block_bytes, 32768u);
  EXPECT_EQ(settings.log, LogLevel::info);
  EXPECT_EQ(settings.application, "true");
  EXPECT_EQ(settings.interval.calls, 50u);
}

TEST(Settings, CodeMayGiveNumbersDurationsAndPaths) {
  Options options;
  options.store = std::filesystem::path("/scratch/run");
  options.block = 4096;
  options.timeout = std::chrono::milliseconds(1500);
  const auto settings = settings_of(sources_of({}, options));
  EXPECT_EQ(settings.store, "/scratch/run");
  EXPECT_EQ(settings.block_bytes, 4096u);
  EXPECT_EQ(settings.timeout_ns, 1500000000u);
}

TEST(Settings, EveryGoodValueIsTaken) {
  EXPECT_EQ(with("BELAY_BLOCK", "512").block_bytes, 512u);
  EXPECT_EQ(with("BELAY_BLOCK", "4MiB").block_bytes, 4u << 20);
  EXPECT_EQ(with("BELAY_BLOCK", "1536").block_bytes, 1536u);
  EXPECT_EQ(with("BELAY_HASH", "xxh3").hash, HashKind::xxh3);
  EXPECT_EQ(with("BELAY_HASH", "MD5").hash, HashKind::md5);
  EXPECT_EQ(with("BELAY_HASH", "sha1").hash, HashKind::sha1);
  EXPECT_EQ(with("BELAY_HASH", "sha256").hash, HashKind::sha256);
  EXPECT_EQ(with("BELAY_KEEP", "1").keep, 1u);
  EXPECT_EQ(with("BELAY_KEEP", "1000000").keep, 1000000u);
  EXPECT_EQ(with("BELAY_SEGMENTS", "2").segments, 2u);
  EXPECT_EQ(with("BELAY_SEGMENTS", "250").segments, 250u);
  EXPECT_EQ(with("BELAY_STAGING", "1MiB").staging_bytes, 1u << 20);
  EXPECT_EQ(with("BELAY_MTBF", "7d").mtbf_ns, 7 * 86400000000000u);
  EXPECT_EQ(with("BELAY_BACKGROUND", "inline").background, Background::inline_);
  EXPECT_EQ(with("BELAY_BACKGROUND", "thread").background, Background::thread);
  EXPECT_EQ(with("BELAY_BACKGROUND", "head").background, Background::head);
  EXPECT_EQ(with("BELAY_LATE", "skip").late, Late::skip);
  EXPECT_EQ(with("BELAY_DEDUP", "none").dedup, Dedup::none);
  EXPECT_EQ(with("BELAY_REDUNDANCY", "Replicas:3").redundancy.copies, 3u);
  EXPECT_EQ(with("BELAY_REDUNDANCY", "replicas:3").chosen_dedup(), Dedup::collective);
  EXPECT_EQ(with("BELAY_REDUNDANCY", "none").chosen_dedup(), Dedup::local);
  EXPECT_EQ(with("BELAY_NODE", "node 7").node, "node 7");
  EXPECT_EQ(with("BELAY_NODE", std::string(250, 'n')).node->size(), 250u);
  EXPECT_EQ(with("BELAY_RANKS_PER_NODE", "1").ranks_per_node, 1u);
  EXPECT_EQ(with("BELAY_LOG", "debug").log, LogLevel::debug);
  EXPECT_EQ(with("BELAY_LOG", "error").log, LogLevel::error);
  for (const auto& [name, text] : Environment{{"BELAY_TRACK", "auto"},
                                              {"BELAY_TRACK", "none"},
                                              {"BELAY_REDUNDANCY", "none"},
                                              {"BELAY_LEVELS", "local:1"},
                                              {"BELAY_LOCAL_CODEC", "raw"}})
    with(name, text);
}

TEST(Settings, IntervalIsAutoATimeOrANumberOfCalls) {
  EXPECT_EQ(with("BELAY_INTERVAL", "auto").interval.kind, Interval::Kind::automatic);
  for (const auto* text : {"10m", "600", "600 s"}) {
    const auto interval = with("BELAY_INTERVAL", text).interval;
    EXPECT_EQ(interval.kind, Interval::Kind::time) << text;
    EXPECT_EQ(interval.time_ns, 600000000000u) << text;
  }
  for (const auto* text : {"50 calls", "50calls", "50 CALLS", "50 call"}) {
    const auto interval = with("BELAY_INTERVAL", text).interval;
    EXPECT_EQ(interval.kind, Interval::Kind::calls) << text;
    EXPECT_EQ(interval.calls, 50u) << text;
  }
}

TEST(Settings, EveryWrongValueIsRefusedWithWhatWouldBeRight) {
  const struct {
    std::string variable;
    std::vector<std::string> values;
    std::string right;
  } wrong[] = {
      {"BELAY_BLOCK",
       {"17", "511", "0", "4194305", "1TiB", "16Ki", "-16KiB", "big"},
       "512 B and 4 MiB, such as 16KiB"},
      {"BELAY_BLOCK", {"513", "1000", "16.1KiB"}, "multiple of 512 B"},
      {"BELAY_HASH", {"crc32", "sha", "xxh3 ", "sha256:1"}, "xxh3, md5, sha1 or sha256"},
      {"BELAY_KEEP",
       {"0", "-1", "1000001", "2.5", "two", "18446744073709551618"},
       "from 1 to 1000000"},
      {"BELAY_SEGMENTS", {"1", "251"}, "from 2 to 250"},
      {"BELAY_INTERVAL",
       {"0", "0s", "0 calls", "calls", "never", "1.5 calls", "-5s", "5 calls ",
        "18446744073709551617 calls"},
       "50 calls"},
      {"BELAY_MTBF", {"0", "-1h", "auto", "300y"}, "time above zero"},
      {"BELAY_TIMEOUT", {"0", "0.0000000001s", "999999999999h"}, "time above zero"},
      {"BELAY_STAGING", {"1048575", "25%", "0"}, "at least 1 MiB"},
      {"BELAY_BACKGROUND", {"fork", "threads"}, "thread, inline or head"},
      {"BELAY_LATE", {"drop"}, "wait or skip"},
      {"BELAY_DEDUP", {"global"}, "none, local, collective or collective-unshuffled"},
      {"BELAY_REDUNDANCY",
       {"replicas", "replicas:", "replicas:0", "replicas:256", "replicas:x", "mirror", ":2"},
       "such as replicas:2"},
      {"BELAY_DEDUP_TABLE", {"0", "-1"}, "from 1 to"},
      {"BELAY_TRACK", {"soft-dirty"}, "auto or none"},
      {"BELAY_REDUNDANCY", {"replica:2", "mirror"}, "none"},
      {"BELAY_LEVELS", {"lokal:1", "1"}, "local:1"},
      {"BELAY_LOG", {"verbose"}, "error, warn, info or debug"},
      {"BELAY_NODE", {"a/b", "/", ".", "..", "a\nb", "\xFF", std::string(251, 'n')}, "250 bytes"},
      {"BELAY_RANKS_PER_NODE", {"0", "4294967296"}, "from 1 to"},
      {"BELAY_APPLICATION", {"a\tb", "\xC0\x80", std::string(256, 'a')}, "1 to 255 bytes of UTF-8"},
      {"BELAY_STORE",
       {std::string("a\0b", 3), "a\nb", "\x1b[31m", "a\x7f"},
       "without control characters"},
  };
  for (const auto& [variable, values, right] : wrong)
    for (const auto& value : values) {
      const auto error = error_of(sources_of({{variable, value}}));
      EXPECT_EQ(error.code(), Code::invalid_argument) << variable << " " << value;
      EXPECT_TRUE(contains(error.message(), "(" + variable + "): ")) << error.message();
      EXPECT_TRUE(contains(error.message(), right)) << error.message();
    }
}

TEST(Settings, OptionsOfStagesThatAreNotThereAreUnsupported) {
  const Environment absent = {
      {"BELAY_TRACK", "uffd"},
      {"BELAY_TRACK", "mprotect"},
  };
  for (const auto& variable : absent) {
    const auto error = error_of(sources_of({variable}));
    EXPECT_EQ(error.code(), Code::unsupported) << error.message();
    EXPECT_TRUE(contains(error.message(), "(" + variable.first + "): this version of Belay has no"))
        << error.message();
  }
}

TEST(Settings, LevelsSayWhichVersionGetsWhich) {
  const auto levels_of = [](const char* text) {
    return settings_of(sources_of({{"BELAY_LEVELS", text}, {"BELAY_GLOBAL", "/lustre"}}))
        .level_plan();
  };
  const auto plan = levels_of("local:1, replicas:2:4,Erasure:4+2:16,global:32");
  EXPECT_EQ(to_text(plan), "local:1,replicas:2:4,erasure:4+2:16,global:32");
  EXPECT_EQ(plan.level_of(3), Level{});
  EXPECT_EQ(plan.level_of(12), Level::replicas(2));
  EXPECT_EQ(plan.level_of(32), Level::erasure(4, 2));
  EXPECT_TRUE(plan.is_global(64) && !plan.is_global(16));
  EXPECT_EQ(plan.nearest(Level::replicas(3)), Level::erasure(4, 2));
  EXPECT_EQ(plan.nearest(Level{}), Level{});
  EXPECT_EQ(levels_of("replicas:3:2,replicas:2:5,global").level_of(1), Level::replicas(2));
  EXPECT_TRUE(levels_of("global").rules.empty());
  EXPECT_EQ(settings_of(sources_of({{"BELAY_REDUNDANCY", "erasure:4+2"}})).level_plan().level_of(7),
            Level::erasure(4, 2));
  for (const char* wrong : {"tape:1", "local:0", "replicas:4+2:1", "replicas", "erasure:4:1",
                            "erasure:200+100:1", "global:x", "local:1,,global"})
    EXPECT_EQ(error_of(sources_of({{"BELAY_LEVELS", wrong}, {"BELAY_GLOBAL", "/x"}})).code(),
              Code::invalid_argument)
        << wrong;
  EXPECT_TRUE(contains(error_of(sources_of({{"BELAY_LEVELS", "local:1,global:8"}})).message(),
                       "set `global` to a directory"));
}

TEST(Settings, MessagesSayOptionValueSourceAndWhatIsRight) {
  EXPECT_EQ(error_of(sources_of({{"BELAY_BLOCK", "17"}})).message(),
            "block = \"17\" (BELAY_BLOCK): must be a size between 512 B and 4 MiB, such as 16KiB");
  EXPECT_EQ(error_of(sources_of({}, code_with(&Options::keep, "0"))).message(),
            "keep = \"0\" (Options::keep): must be a whole number from 1 to 1000000");
  EXPECT_EQ(error_of(file_of("\nlate = 'never'")).message(),
            "late = \"never\" (belay.toml:2:8): must be wait or skip");
  EXPECT_EQ(error_of(sources_of({}, code_with(&Options::bandwidth, "fast"))).message(),
            "bandwidth = \"fast\" (Options::bandwidth): must be bytes per second, such as 200MB/s");
}

TEST(Settings, EmptyValuesAreErrorsThatSaySo) {
  for (const auto& option : option_table()) {
    Options options;
    options.*option.code = "";
    const auto error = error_of(sources_of({}, options));
    EXPECT_EQ(error.code(), Code::invalid_argument) << option.name;
    EXPECT_TRUE(contains(error.message(), "is empty")) << error.message();
  }
  EXPECT_TRUE(
      contains(error_of(sources_of({{"BELAY_CONFIG", ""}})).message(), "BELAY_CONFIG is empty"));
  EXPECT_TRUE(contains(error_of(file_of("block = ''")).message(), "is empty"));
}

TEST(Settings, NodeAndRanksPerNodeExcludeEachOther) {
  const auto error =
      error_of(sources_of({{"BELAY_NODE", "a"}}, code_with(&Options::ranks_per_node, 2)));
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_TRUE(contains(error.message(), "node = \"a\" (BELAY_NODE)")) << error.message();
  EXPECT_TRUE(contains(error.message(), "ranks_per_node = \"2\" (Options::ranks_per_node)"));
}

TEST(Settings, AProgramNameThatIsNoNameAsksForAnApplication) {
  auto sources = sources_of({});
  sources.program = "a\x01";
  EXPECT_TRUE(
      contains(error_of(sources).message(), "application = \"a\\x01\" (the program's name)"));
  sources.code.application = "solver";
  EXPECT_EQ(settings_of(sources).application, "solver");
}

TEST(Settings, UnknownVariablesWarnWithTheNearestMatch) {
  EXPECT_EQ(warnings_of(sources_of({{"BELAY_BLOK", "1"}})),
            std::vector<std::string>{"BELAY_BLOK is not an option; did you mean BELAY_BLOCK?"});
  EXPECT_EQ(warnings_of(sources_of({{"BELAY_keep", "1"}})),
            std::vector<std::string>{"BELAY_keep is not an option; did you mean BELAY_KEEP?"});
  EXPECT_EQ(warnings_of(sources_of({{"BELAY_RANK_PER_NODE", "1"}})),
            std::vector<std::string>{
                "BELAY_RANK_PER_NODE is not an option; did you mean BELAY_RANKS_PER_NODE?"});
  EXPECT_EQ(warnings_of(sources_of({{"BELAY_", ""}, {"BELAY_A\x1B", ""}})).size(), 2u);
}

TEST(Settings, VariablesThatAreNoOptionsGiveNoWarning) {
  EXPECT_TRUE(warnings_of(file_of("", {{"BELAY_MISTAKE", "vote_early"},
                                       {"BELAY_FAULT", "write:3"},
                                       {"BELAYED", "1"},
                                       {"PATH", "/bin"}}))
                  .empty());
}

TEST(Settings, UnknownKeysWarnWithTheNearestMatchAndTheirPlace) {
  EXPECT_EQ(
      warnings_of(file_of("keep = 2\nblok = 4096\n")),
      std::vector<std::string>{"\"blok\" (belay.toml:2:1) is not an option; did you mean block?"});
  EXPECT_EQ(warnings_of(file_of("[stores]\na = 1\n[BLOCK]\n")).size(), 2u);
}

TEST(Settings, ASyntaxErrorNamesFileLineAndColumn) {
  const auto error = error_of(file_of("keep = 2\nblock = = 3\n"));
  EXPECT_EQ(error.code(), Code::invalid_argument);
  EXPECT_TRUE(contains(error.message(), "belay.toml:2:9: ")) << error.message();
  EXPECT_TRUE(contains(error.message(), "BELAY_CONFIG")) << error.message();
}

TEST(Settings, AFileThatCannotBeReadIsAnErrorThatNamesTheVariable) {
  const auto error = error_of(sources_of({{"BELAY_CONFIG", "/no/such.toml"}}));
  EXPECT_EQ(error.code(), Code::not_found);
  EXPECT_TRUE(contains(error.message(), "BELAY_CONFIG: open /no/such.toml")) << error.message();
}

TEST(Settings, CodecsAreOneForAllOrOneForEachRegion) {
  const auto rules_of = [](const OptionSources& sources) { return settings_of(sources).codec; };
  EXPECT_EQ(rules_of(sources_of({})).otherwise, "auto");
  EXPECT_TRUE(settings_of(sources_of({})).local_codec.all_raw());
  EXPECT_EQ(rules_of(sources_of({{"BELAY_CODEC", "lz4"}})).otherwise, "lz4");
  using Rules = std::vector<std::pair<std::string, std::string>>;
  const Rules both = {{"t*", "lz4"}, {"ids", "raw"}};
  const auto listed = rules_of(sources_of({{"BELAY_CODEC", "t*=lz4,ids=raw"}}));
  EXPECT_EQ(listed.rules, both);
  EXPECT_EQ(listed.otherwise, "auto");
  const auto table = rules_of(file_of("[codec]\n't*' = 'lz4'\nids = 'raw'\n"));
  EXPECT_EQ(table.rules, both) << "in the order of the file";
  for (const char* wrong : {"t*=", "=lz4", ","})
    EXPECT_EQ(error_of(sources_of({{"BELAY_CODEC", wrong}})).code(), Code::invalid_argument)
        << wrong;
}

TEST(Settings, ABandwidthIsBytesPerSecond) {
  for (const char* text : {"200MB/s", "200 MB", "200000000", "0.2GB/s"})
    EXPECT_EQ(settings_of(sources_of({{"BELAY_BANDWIDTH", text}})).bandwidth, 200000000u) << text;
  for (const char* wrong : {"0", "/s", "200MB/h", "fast"})
    EXPECT_EQ(error_of(sources_of({{"BELAY_BANDWIDTH", wrong}})).code(), Code::invalid_argument)
        << wrong;
}

TEST(Settings, AggregateIsGivenByAnySource) {
  EXPECT_FALSE(settings_of(sources_of({})).aggregate_given);
  EXPECT_TRUE(with("BELAY_AGGREGATE", "32").aggregate_given);
  EXPECT_TRUE(settings_of(file_of("aggregate = 32")).aggregate_given);
  OptionSources code = sources_of({});
  code.code.aggregate = 32;
  EXPECT_TRUE(settings_of(code).aggregate_given);
}

TEST(Settings, TablesArraysAndDatesAreNoValues) {
  for (const std::string text : {"[keep]", "keep = [2]", "keep = 2026-01-01", "application = ['a']",
                                 "[codec]\n'*' = 3", "[codec]", "[codec]\n'a,b' = 'raw'"}) {
    const auto error = error_of(file_of(text));
    EXPECT_EQ(error.code(), Code::invalid_argument);
    EXPECT_TRUE(contains(error.message(), "must be a string or a number")) << error.message();
  }
}

TEST(Settings, SeedsAreHexadecimal) {
  EXPECT_FALSE(settings_of(sources_of({})).seed);
  EXPECT_EQ(with("BELAY_SEED", "1f").seed, 0x1fu);
  EXPECT_EQ(with("BELAY_SEED", "FFFFFFFFFFFFFFFF").seed, ~std::uint64_t{0});
  for (const char* text : {"-1", "0x1", "1 ", "g", "10000000000000000"})
    EXPECT_EQ(error_of(sources_of({{"BELAY_SEED", text}})).code(), Code::invalid_argument) << text;
}

TEST(SharedSettings, ListWhatAllRanksMustHaveInCommon) {
  EXPECT_EQ(shared_settings(settings_of(sources_of({}))),
            "application=solver\nblock=16384\nhash=xxh3\nkeep=2\ninterval=auto\nmtbf=1d\n"
            "background=thread\nlate=wait\nheads_per_node=1\nsegments=64\ntimeout=5m\n"
            "redundancy=none\ndedup=local\ndedup_table=131072\nlevels=local:1\nglobal=\n"
            "aggregate=\ncodec=auto\nlocal_codec=raw\nmatch=\n");
}

TEST(SharedSettings, ChangeWithEachOfThemAndWithNothingElse) {
  const auto base = shared_settings(settings_of(sources_of({})));
  for (const auto& [name, text] : Environment{{"BELAY_APPLICATION", "x"},
                                              {"BELAY_BLOCK", "1KiB"},
                                              {"BELAY_HASH", "md5"},
                                              {"BELAY_KEEP", "3"},
                                              {"BELAY_INTERVAL", "3 calls"},
                                              {"BELAY_INTERVAL", "3s"},
                                              {"BELAY_MTBF", "1h"},
                                              {"BELAY_BACKGROUND", "inline"},
                                              {"BELAY_LATE", "skip"},
                                              {"BELAY_SEGMENTS", "65"},
                                              {"BELAY_MATCH", "_[0-9]+$="},
                                              {"BELAY_TIMEOUT", "1m"},
                                              {"BELAY_DEDUP", "none"}})
    EXPECT_NE(shared_settings(with(name, text)), base) << name;
  for (const auto& [name, text] : Environment{{"BELAY_STORE", "/x"},
                                              {"BELAY_NODE", "x"},
                                              {"BELAY_RANKS_PER_NODE", "2"},
                                              {"BELAY_STAGING", "2MiB"},
                                              {"BELAY_LOG", "debug"}})
    EXPECT_EQ(shared_settings(with(name, text)), base) << name;
}

TEST(Settings, RandomBytesInAnySourceNeverDoHarm) {
  std::mt19937 random(11);
  const std::string_view tongue =
      "0123456789.eE+-_= \n\t[]{}'\",#:\\keepblockcodecKiBmsh\xC3\x28\xFF";
  const auto any = [&](std::size_t length) {
    std::string text(random() % (length + 1), '\0');
    for (char& c : text)
      c = random() % 8 == 0 ? static_cast<char>(random()) : tongue[random() % tongue.size()];
    return text;
  };
  std::size_t refused = 0;
  for (int round = 0; round < 20000; ++round) {
    const Option& option = option_table()[random() % option_table().size()];
    Options code;
    code.*option.code = any(12);
    auto sources = sources_of({{"BELAY_" + any(8), any(8)}}, code);
    if (round % 2 == 0) sources = file_of(any(40), {}, {});
    const auto resolved = resolve_options(sources);
    if (resolved) continue;
    ++refused;
    EXPECT_TRUE(resolved.error().code() == Code::invalid_argument ||
                resolved.error().code() == Code::unsupported);
  }
  EXPECT_GT(refused, 10000u);
}

}  // namespace
}  // namespace belay
