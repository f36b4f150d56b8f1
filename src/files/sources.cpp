// SPDX-License-Identifier: Apache-2.0
#include "files/sources.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "files/contents.hpp"
#include "os/errno.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace belay::files {
namespace {

namespace fs = std::filesystem;

Error failure(const std::string& path, const std::error_code& error) {
  return os::error_of(error.value(), "read", path);
}

/// Without links that lead elsewhere, so that paths can be compared; the last part may be one.
Result<fs::path> placed(const std::string& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error).lexically_normal();
  if (error) return Unexpected(failure(path, error));
  const fs::path directory = fs::canonical(absolute.parent_path(), error);
  if (error) return Unexpected(failure(path, error));
  const fs::path name = absolute.filename();
  return name.empty() ? directory : (directory / name).lexically_normal();
}

bool is_below(const fs::path& path, const fs::path& directory) {
  const auto differ = std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return differ.first == directory.end();
}

fs::path common_of(const fs::path& a, const fs::path& b) {
  fs::path common;
  for (auto i = a.begin(), j = b.begin(); i != a.end() && j != b.end() && *i == *j; ++i, ++j)
    common /= *i;
  return common;
}

class Finder {
 public:
  explicit Finder(std::optional<fs::path> leave_out) : leave_out_(std::move(leave_out)) {}

  Result<void> add(const std::string& path);
  Result<SourceList> finish(const std::string& relative_to);

 private:
  Result<void> walk(const fs::path& directory);
  bool left_out(const fs::path& path) const { return leave_out_ && is_below(path, *leave_out_); }

  std::optional<fs::path> leave_out_;
  std::optional<fs::path> common_;
  std::vector<fs::path> found_;
  std::vector<std::string> skipped_;
};

Result<void> Finder::add(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return Unexpected(failure(path, error));
  BELAY_ASSIGN(fs::path place, placed(path));
  if (fs::is_directory(status)) {
    place = fs::canonical(place, error);
    if (error) return Unexpected(failure(path, error));
  }
  if (left_out(place))
    return fail(Code::invalid_argument,
                "{} lies in the set that it would be packed into; choose another set",
                in_quotes(path));
  if (fs::is_directory(status)) {
    common_ = common_ ? common_of(*common_, place) : place;
    return walk(place);
  }
  if (!fs::is_regular_file(status))
    return fail(Code::invalid_argument, "{} is neither a file nor a directory", in_quotes(path));
  common_ = common_ ? common_of(*common_, place.parent_path()) : place.parent_path();
  found_.push_back(place);
  return {};
}

Result<void> Finder::walk(const fs::path& directory) {
  if (left_out(directory)) return {};
  std::error_code error;
  fs::directory_iterator entries(directory, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    const fs::path& path = entries->path();
    const fs::file_status status = entries->symlink_status(error);
    if (error) break;
    if (fs::is_directory(status))
      BELAY_TRY(walk(path));
    else if (fs::is_regular_file(status))
      found_.push_back(path);
    else
      skipped_.push_back(path.string());
  }
  if (error) return Unexpected(failure(directory.string(), error));
  return {};
}

Result<SourceList> Finder::finish(const std::string& relative_to) {
  fs::path root = common_.value_or("/");
  if (!relative_to.empty()) {
    std::error_code error;
    root = fs::canonical(relative_to, error);
    if (error) return Unexpected(failure(relative_to, error));
  }
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  SourceList list{.sources = {}, .skipped = std::move(skipped_)};
  for (const fs::path& path : found_) {
    if (!is_below(path, root))
      return fail(Code::invalid_argument, "{} is not in {}; choose another --relative-to",
                  in_quotes(path.string()), in_quotes(root.string()));
    const std::string name = path.lexically_relative(root).string();
    BELAY_TRY(check_path(name));
    BELAY_ASSIGN(const FileStamp stamp, stamp_of(path.string()));
    list.sources.push_back({path.string(), name, name, stamp});
  }
  std::sort(list.sources.begin(), list.sources.end(),
            [](const PackSource& a, const PackSource& b) { return a.path < b.path; });
  return list;
}

}  // namespace

Result<SourceList> find_sources(const std::vector<std::string>& paths,
                                const std::string& relative_to, const std::string& leave_out) {
  std::error_code error;
  const fs::path out = fs::weakly_canonical(leave_out, error);
  Finder finder(leave_out.empty() || error ? std::nullopt : std::optional(out));
  for (const std::string& path : paths) BELAY_TRY(finder.add(path));
  return finder.finish(relative_to);
}

Result<FileStamp> stamp_of(const std::string& path) {
  BELAY_ASSIGN(const auto source, SourceBytes::open(path));
  return source.stamp();
}

}  // namespace belay::files
