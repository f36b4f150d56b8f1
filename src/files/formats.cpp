// SPDX-License-Identifier: Apache-2.0
#include "files/formats.hpp"

#include <array>
#include <string_view>

namespace belay::files {
namespace {

constexpr std::string_view kHdf5Signature("\x89HDF\r\n\x1a\n", 8);
constexpr std::uint64_t kFirstUserBlock = 512;

std::string text_at(const SourceBytes& file, std::uint64_t offset, std::size_t bytes) {
  std::string text(bytes, '\0');
  if (offset > file.stamp().bytes || bytes > file.stamp().bytes - offset) return {};
  const auto to = std::as_writable_bytes(std::span<char>(text.data(), text.size()));
  return file.read(offset, to) ? text : std::string();
}

/// The signature comes first, or after a user block of 512 bytes, 1024, 2048 ...
bool is_hdf5(const SourceBytes& file) {
  const auto is_at = [&](std::uint64_t offset) {
    return text_at(file, offset, kHdf5Signature.size()) == kHdf5Signature;
  };
  if (is_at(0)) return true;
  for (std::uint64_t at = kFirstUserBlock; at < file.stamp().bytes; at *= 2)
    if (is_at(at)) return true;
  return false;
}

bool is_netcdf(const SourceBytes& file) { return text_at(file, 0, 3) == "CDF"; }

struct Format {
  FileFormat format;
  bool (*recognises)(const SourceBytes&);
  Result<Layout> (*find)(const SourceBytes&);
};

constexpr std::array kFormats = {
    Format{FileFormat::netcdf, is_netcdf, find_netcdf_layout},
    Format{FileFormat::hdf5, is_hdf5, find_hdf5_layout},
};

}  // namespace

Layout find_layout(const SourceBytes& file) {
  for (const Format& format : kFormats) {
    if (!format.recognises(file)) continue;
    auto layout = format.find(file);
    if (layout) keep_listable(*layout, file.stamp().bytes);
    auto good = layout ? check_layout(*layout, file.stamp().bytes)
                       : Result<void>(Unexpected(layout.error()));
    if (good) return *std::move(layout);
    return {.format = format.format, .variables = {}, .remark = good.error().message()};
  }
  return {};
}

}  // namespace belay::files
