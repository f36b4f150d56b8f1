// SPDX-License-Identifier: Apache-2.0
#include "aggregate/contents.hpp"

#include "measure/must.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numbers>
#include <random>
#include <string_view>

namespace belay::bench {
namespace {

constexpr std::size_t kWaves = 48;
constexpr double kLongest = 2, kShortest = 96;     ///< in wave numbers of the box
constexpr double kNoise = 1e-9;                    ///< of the field itself
constexpr std::size_t kCellBytes = 8 + 8 + 4 + 4;  ///< of all regions

/// A wave along each axis: their product is one of the box.
struct Wave {
  double height = 0;
  std::array<double, 3> number{}, phase{};
};

/// The same on all ranks, which have parts of one field.
std::vector<Wave> make_waves(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> part(0, 1);
  std::vector<Wave> waves(kWaves);
  for (Wave& wave : waves) {
    const double number = kLongest * std::pow(kShortest / kLongest, part(random));
    wave.height = std::pow(number, -11.0 / 6);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      wave.number[axis] = std::round(number * part(random));
      wave.phase[axis] = 2 * std::numbers::pi * part(random);
    }
  }
  return waves;
}

struct Slab {
  std::size_t edge = 0;   ///< cells along the box
  std::size_t first = 0;  ///< plane
  std::size_t planes = 0;

  std::size_t cells() const { return planes * edge * edge; }
};

std::vector<double> along(const Wave& wave, std::size_t axis, std::size_t edge) {
  std::vector<double> values(edge);
  for (std::size_t i = 0; i < edge; ++i)
    values[i] = std::sin(2 * std::numbers::pi * wave.number[axis] * static_cast<double>(i) /
                             static_cast<double>(edge) +
                         wave.phase[axis]);
  return values;
}

std::vector<double> stir(const Slab& slab, std::uint64_t seed, double mean) {
  std::vector<double> field(slab.cells(), mean);
  for (const Wave& wave : make_waves(seed)) {
    const auto z = along(wave, 0, slab.edge), y = along(wave, 1, slab.edge),
               x = along(wave, 2, slab.edge);
    double* cell = field.data();
    for (std::size_t k = slab.first; k < slab.first + slab.planes; ++k)
      for (std::size_t j = 0; j < slab.edge; ++j) {
        const double height = wave.height * z[k] * y[j];
        for (std::size_t i = 0; i < slab.edge; ++i) *cell++ += height * x[i];
      }
  }
  std::mt19937_64 random(seed + slab.first);
  std::uniform_real_distribution<double> noise(1 - kNoise, 1 + kNoise);
  for (double& value : field) value *= noise(random);
  return field;
}

template <class T>
void add(Contents& contents, const char* name, const ElementType& type, const Slab& slab,
         const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  contents.regions.push_back({name, type, Shape(slab.planes, slab.edge, slab.edge), bytes.size()});
  contents.arrays[name] = std::move(bytes);
}

/// A region with the shape that its application gave it.
class ShapedRegion final : public RegionAccess {
 public:
  ShapedRegion(const RegionInfo& region, Bytes& bytes)
      : region_(region.type, bytes), shape_(region.shape) {}
  ElementType type() const override { return region_.type(); }
  Shape shape() const override { return shape_; }
  Result<std::span<const std::byte>> view() override { return region_.view(); }
  Result<std::span<std::byte>> room(std::uint64_t bytes) override { return region_.room(bytes); }

 private:
  SavedRegion region_;
  Shape shape_;
};

}  // namespace

void Contents::protect_in(Session& session) {
  for (const RegionInfo& region : regions)
    must("protect",
         session.protect(region.name, std::make_unique<ShapedRegion>(region, arrays[region.name])));
}

void Contents::wipe() {
  for (auto& [name, bytes] : arrays) std::fill(bytes.begin(), bytes.end(), std::byte{});
}

std::uint64_t Contents::checksum() const {
  std::uint64_t sum = 0;
  for (const auto& [name, bytes] : arrays)
    sum = sum * 31 + std::hash<std::string_view>()(
                         {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  return sum;
}

Contents make_fields(const Team& team, std::uint64_t bytes) {
  const auto ranks = static_cast<std::size_t>(team.size());
  const double cells = static_cast<double>(bytes / kCellBytes * ranks);
  Slab slab;
  slab.planes = std::max<std::size_t>(static_cast<std::size_t>(std::cbrt(cells)) / ranks, 1);
  slab.edge = slab.planes * ranks;
  slab.first = slab.planes * static_cast<std::size_t>(team.rank());
  Contents contents;
  const auto density = stir(slab, 1, 3);
  const auto velocity = stir(slab, 2, 0);
  std::vector<std::int32_t> material;
  for (const double value : density) material.push_back(value < 2.9 ? 1 : value < 3.1 ? 2 : 3);
  add(contents, "density", element_type<double>(), slab, density);
  add(contents, "energy", element_type<double>(), slab, stir(slab, 3, 10));
  add(contents, "velocity", element_type<float>(), slab,
      std::vector<float>(velocity.begin(), velocity.end()));
  add(contents, "material", element_type<std::int32_t>(), slab, material);
  return contents;
}

}  // namespace belay::bench
