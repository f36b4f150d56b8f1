// SPDX-License-Identifier: Apache-2.0
#include "files/layout_child.hpp"

#include "base/try.hpp"
#include "files/child.hpp"
#include "files/formats.hpp"

#include <optional>

namespace belay::files {
namespace {

Layout layout_of(const FileToRead& file) {
  const auto source = SourceBytes::open(file.path);
  if (!source) return {.format = {}, .variables = {}, .remark = source.error().message()};
  return find_layout(*source);
}

/// Answers for file after file, until somebody ends it.
void answer(const std::vector<FileToRead>& files, std::size_t first, const ChildLimits& limits,
            int out) {
  confine(limits.memory_bytes);
  for (std::size_t i = first; i < files.size(); ++i) {
    std::vector<std::byte> bytes;
    put_layout(bytes, layout_of(files[i]));
    if (!send_message(out, bytes)) return;
  }
}

Layout accepted(const Result<std::vector<std::byte>>& answer, const FileToRead& file) {
  const auto refused = [](const Error& error) {
    return Layout{.format = {}, .variables = {}, .remark = error.message()};
  };
  if (!answer) return refused(answer.error());
  auto layout = get_layout(*answer);
  if (!layout) return refused(layout.error());
  if (auto checked = check_layout(*layout, file.bytes); !checked) return refused(checked.error());
  return *std::move(layout);
}

}  // namespace

std::vector<Layout> find_layouts(const std::vector<FileToRead>& files, const ChildLimits& limits) {
  std::vector<Layout> layouts;
  std::optional<Child> child;
  while (layouts.size() < files.size()) {
    if (!child) {
      auto started = Child::start([&](int out) { answer(files, layouts.size(), limits, out); });
      if (!started) {
        layouts.push_back({.format = {}, .variables = {}, .remark = started.error().message()});
        continue;
      }
      child.emplace(*std::move(started));
    }
    auto said = child->receive(limits.file_ns, limits.answer_bytes);
    // Whatever went wrong went wrong with this file: the next ones get a new child.
    if (!said) child.reset();
    layouts.push_back(accepted(said, files[layouts.size()]));
  }
  return layouts;
}

}  // namespace belay::files
