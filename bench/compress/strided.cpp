// SPDX-License-Identifier: Apache-2.0
#include "compress/sources.hpp"

#include <cmath>

namespace belay::bench {
namespace {

constexpr std::size_t kStripe = 512;  ///< elements of one row that one rank has

/// A wave that has spread to `front` over a plate at rest.
struct Plate {
  std::size_t rows, columns;
  double front;

  double pressure(std::size_t row, std::size_t column) const {
    const double y = static_cast<double>(row) / static_cast<double>(rows) - 0.4;
    const double x = static_cast<double>(column) / static_cast<double>(columns) - 0.5;
    const double distance = std::hypot(x, y);
    if (distance > front) return 1;
    return 1 + 0.3 * std::sin(20 * distance) * (front - distance) + 0.05 * std::sin(31 * x * y);
  }
};

template <class T>
Variable deal_out(const std::string& name, const std::vector<double>& field, std::size_t rank,
                  std::size_t ranks) {
  Variable variable;
  variable.name = name;
  variable.type = element_type<T>();
  Writer writer(variable.bytes);
  for (std::size_t stripe = rank; stripe < field.size() / kStripe; stripe += ranks)
    for (std::size_t i = 0; i < kStripe; ++i)
      writer.value(static_cast<T>(field[stripe * kStripe + i]));
  variable.shape = Shape(variable.bytes.size() / sizeof(T));
  return variable;
}

}  // namespace

std::vector<Moment> make_strided(int ranks, bool quick) {
  std::vector<Moment> moments;
  for (const auto& [when, front] :
       {std::pair("early", 0.15), std::pair("middle", 0.4), std::pair("late", 0.9)}) {
    const Plate plate = {quick ? 512u : 1024u, 2048, front};
    std::vector<double> pressure, material;
    for (std::size_t row = 0; row < plate.rows; ++row)
      for (std::size_t column = 0; column < plate.columns; ++column) {
        pressure.push_back(plate.pressure(row, column));
        material.push_back(std::floor(8 * std::abs(pressure.back() - 1)));
      }
    Moment& moment = moments.emplace_back(Moment{"strided", when, {}});
    const auto count = static_cast<std::size_t>(ranks);
    for (std::size_t rank = 0; rank < count; ++rank)
      moment.ranks.push_back({deal_out<double>("pressure", pressure, rank, count),
                              deal_out<float>("shown pressure", pressure, rank, count),
                              deal_out<std::int32_t>("material", material, rank, count)});
  }
  return moments;
}

}  // namespace belay::bench
