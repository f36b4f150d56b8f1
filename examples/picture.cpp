// SPDX-License-Identifier: Apache-2.0
#include "picture.hpp"

#include "job.hpp"

#include <png.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace picture {
namespace {

using Colour = std::array<std::uint8_t, 3>;

/// From black over violet and orange to pale yellow, evenly brighter, so that it also reads in
/// grey.
Colour colour_of(double share) {
  static constexpr std::array<std::array<double, 3>, 9> kStops = {{{0, 0, 4},
                                                                   {27, 12, 65},
                                                                   {74, 12, 107},
                                                                   {120, 28, 109},
                                                                   {165, 44, 96},
                                                                   {207, 68, 70},
                                                                   {237, 105, 37},
                                                                   {251, 164, 10},
                                                                   {252, 245, 150}}};
  const double place = std::clamp(share, 0.0, 1.0) * (kStops.size() - 1);
  const auto stop = std::min(static_cast<std::size_t>(place), kStops.size() - 2);
  const double rest = place - static_cast<double>(stop);
  Colour colour = {};
  for (std::size_t i = 0; i < 3; ++i)
    colour[i] = static_cast<std::uint8_t>(
        std::lround(kStops[stop][i] + rest * (kStops[stop + 1][i] - kStops[stop][i])));
  return colour;
}

void put_tile(const Tile& tile, const double* values, long cols, std::vector<double>& field) {
  for (long row = 0; row < tile.rows; ++row)
    std::copy_n(values + row * tile.cols, tile.cols,
                field.begin() + (tile.first_row + row) * cols + tile.first_col);
}

/// The whole field, on rank 0.
std::vector<double> gather(long rows, long cols, const Tile& mine) {
  const std::array<long, 4> place = {mine.first_row, mine.rows, mine.first_col, mine.cols};
  if (job::rank() != 0) {
    MPI_Send(place.data(), 4, MPI_LONG, 0, 0, MPI_COMM_WORLD);
    MPI_Send(mine.values.data(), static_cast<int>(mine.values.size()), MPI_DOUBLE, 0, 1,
             MPI_COMM_WORLD);
    return {};
  }
  std::vector<double> field(static_cast<std::size_t>(rows * cols));
  put_tile(mine, mine.values.data(), cols, field);
  for (int rank = 1; rank < job::ranks(); ++rank) {
    std::array<long, 4> other = {};
    MPI_Recv(other.data(), 4, MPI_LONG, rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    std::vector<double> values(static_cast<std::size_t>(other[1] * other[3]));
    MPI_Recv(values.data(), static_cast<int>(values.size()), MPI_DOUBLE, rank, 1, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    put_tile({other[0], other[1], other[2], other[3], {}}, values.data(), cols, field);
  }
  return field;
}

void write_png(const std::string& path, long rows, long cols, const std::vector<double>& field) {
  const long scale = std::max(1L, 512 / std::max(rows, cols));
  const auto [least, most] = std::minmax_element(field.begin(), field.end());
  const double range = *most > *least ? *most - *least : 1.0;
  std::vector<std::uint8_t> pixels;
  pixels.reserve(static_cast<std::size_t>(3 * rows * cols * scale * scale));
  for (long y = 0; y < rows * scale; ++y)
    for (long x = 0; x < cols * scale; ++x) {
      const double value = field[static_cast<std::size_t>(y / scale * cols + x / scale)];
      const Colour colour = colour_of((value - *least) / range);
      pixels.insert(pixels.end(), colour.begin(), colour.end());
    }
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(cols * scale);
  image.height = static_cast<png_uint_32>(rows * scale);
  image.format = PNG_FORMAT_RGB;
  if (!png_image_write_to_file(&image, path.c_str(), 0, pixels.data(), 0, nullptr))
    job::stop("write " + path + ": " + image.message);
}

/// docs: numpy.lib.format, version 1.0
void write_npy(const std::string& path, long rows, long cols, const std::vector<double>& field) {
  static_assert(std::endian::native == std::endian::little);
  std::string header = "{'descr': '<f8', 'fortran_order': False, 'shape': (" +
                       std::to_string(rows) + ", " + std::to_string(cols) + "), }";
  header.append(63 - (10 + header.size()) % 64, ' ');
  header += '\n';
  const auto length = static_cast<std::uint16_t>(header.size());
  std::string start("\x93NUMPY\x01\x00", 8);
  start += {static_cast<char>(length & 0xff), static_cast<char>(length >> 8)};
  start += header;
  std::FILE* file = std::fopen(path.c_str(), "wb");
  bool whole = file && std::fwrite(start.data(), 1, start.size(), file) == start.size();
  whole = whole && std::fwrite(field.data(), sizeof(double), field.size(), file) == field.size();
  if (file && std::fclose(file) != 0) whole = false;
  if (!whole) job::stop("write " + path + ": " + std::strerror(errno));
}

}  // namespace

void write(const std::string& path, long rows, long cols, const Tile& mine) {
  const std::vector<double> field = gather(rows, cols, mine);
  if (job::rank() != 0) return;
  if (path.ends_with(".npy"))
    write_npy(path, rows, cols, field);
  else
    write_png(path, rows, cols, field);
  job::say("wrote %s", path.c_str());
}

}  // namespace picture
