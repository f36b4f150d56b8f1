// SPDX-License-Identifier: Apache-2.0
// How a session is set up. Every option has a default; with none at all Belay works.
#pragma once

#include <charconv>
#include <chrono>
#include <concepts>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace belay {

enum class LogLevel { error, warn, info, debug };
using LogCallback = std::function<void(LogLevel, std::string_view)>;

/// The value of one option: the text that the environment would hold, or a number or duration
/// that becomes such text. Unset means: take it from the environment, the file, or the default.
class Setting {
 public:
  Setting() = default;
  Setting(const char* text) : text_(text), set_(true) {}
  Setting(std::string_view text) : text_(text), set_(true) {}
  Setting(std::string text) : text_(std::move(text)), set_(true) {}
  Setting(const std::filesystem::path& path) : text_(path.string()), set_(true) {}
  template <std::integral N>
  Setting(N number) : text_(std::to_string(number)), set_(true) {}
  template <class Rep, class Period>
  Setting(std::chrono::duration<Rep, Period> time)
      : text_(std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count()) +
              "ns"),
        set_(true) {}

  bool is_set() const { return set_; }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
  bool set_ = false;
};

/// What code sets here wins over BELAY_* environment variables, which win over the TOML file named
/// by BELAY_CONFIG, which wins over the defaults. Sizes take units (16KiB, 64MiB), times too
/// (500ms, 30s, 10m, 24h).
struct Options {
  Setting store = {};           ///< local tier: a directory on node-local storage (./belay-store)
  Setting application = {};     ///< whose checkpoints these are (the program's name)
  Setting block = {};           ///< block size, 512 B to 4 MiB (16KiB)
  Setting hash = {};            ///< xxh3, md5, sha1, sha256 (xxh3)
  Setting keep = {};            ///< versions retained (2)
  Setting interval = {};        ///< `auto`, a time, or `N calls` (auto)
  Setting mtbf = {};            ///< mean time between failures of the whole job, for `auto` (24h)
  Setting background = {};      ///< thread, inline or head (thread)
  Setting late = {};            ///< the former version is still in flight: wait or skip (wait)
  Setting heads_per_node = {};  ///< with background = head
  Setting staging = {};         ///< memory for capture (25% of protected memory, 64MiB at least)
  Setting segments = {};        ///< segments per rank that a version may refer to (64)
  Setting timeout = {};         ///< after this a silent peer is lost (5m)
  Setting track = {};           ///< auto or none (auto)
  Setting redundancy = {};      ///< none
  Setting dedup = {};           ///< none or local (local)
  Setting dedup_table = {};     ///< with dedup = collective
  Setting levels = {};          ///< which version is how safe
  Setting global = {};          ///< global tier: a directory on the parallel file system
  Setting aggregate = {};       ///< ranks that share a file of the global tier (32)
  Setting codec = {};           ///< of the global tier: auto, a codec, or region=codec,... (auto)
  Setting local_codec = {};     ///< the same of the local tier (raw)
  Setting match = {};           ///< REGEX=REPLACEMENT: variables that this makes equal are merged
  Setting bandwidth = {};       ///< of the global tier for one writer, such as 200MB/s (measured)
  Setting node = {};            ///< failure domain (host name)
  Setting ranks_per_node = {};  ///< ranks that share a node, where one machine plays many
  Setting seed = {};            ///< of a new store's fingerprints, hexadecimal: for belay rehearse
  Setting log = {};             ///< error, warn, info, debug (warn)
  LogCallback on_log = {};      ///< receives messages up to `log`; the library itself never prints
};

}  // namespace belay
