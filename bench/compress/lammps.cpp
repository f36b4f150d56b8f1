// SPDX-License-Identifier: Apache-2.0
// A Lennard-Jones liquid by Debian's LAMMPS. Each of its processes dumps its atoms to a file of its
// own, in the order in which it has them; the columns become variables.
#include "compress/sources.hpp"
#include "measure/must.hpp"
#include "measure/process.hpp"

#include <array>
#include <cstdint>
#include <fstream>
#include <iterator>

namespace belay::bench {
namespace fs = std::filesystem;
namespace {

constexpr const char* kProgram = "/usr/bin/lmp";
constexpr std::array<const char*, 3> kWhens = {"early", "middle", "late"};
constexpr std::array<const char*, 8> kColumns = {"id", "type", "x", "y", "z", "vx", "vy", "vz"};

void write_input(const fs::path& path, int cells, int steps) {
  std::ofstream file(path);
  file << fmt::format(
      "units lj\n"
      "atom_style atomic\n"
      "lattice fcc 0.8442\n"
      "region box block 0 {0} 0 {0} 0 {0}\n"
      "create_box 1 box\n"
      "create_atoms 1 box\n"
      "mass 1 1.0\n"
      "velocity all create 1.44 87287\n"
      "pair_style lj/cut 2.5\n"
      "pair_coeff 1 1 1.0 1.0 2.5\n"
      "fix move all nve\n"
      "run {1}\n"
      "write_dump all custom 0.%.bin id type x y z vx vy vz\n"
      "run {1}\n"
      "write_dump all custom 1.%.bin id type x y z vx vy vz\n"
      "run {2}\n"
      "write_dump all custom 2.%.bin id type x y z vx vy vz\n",
      cells, steps, 4 * steps);
  if (!file.flush()) die(fmt::format("cannot write {}", path.string()));
}

/// Leaves the reader at the numbers; says how many there are, in rows of eight.
std::size_t skip_head(Reader& reader, const fs::path& path) {
  std::array<std::byte, 10> magic;
  const auto negative_length = reader.value<std::int64_t>();
  reader.bytes(magic);
  reader.value<std::int32_t>();  // byte order
  const auto revision = reader.value<std::int32_t>();
  if (negative_length != -static_cast<std::int64_t>(magic.size()) || revision != 2)
    die(fmt::format("{} is of a LAMMPS that this benchmark does not know", path.string()));
  std::array<std::byte, 2 * 8 + 7 * 4 + 6 * 8> step_atoms_and_box;
  reader.bytes(step_atoms_and_box);
  const auto columns = reader.value<std::int32_t>();
  std::vector<std::byte> skipped(static_cast<std::size_t>(reader.value<std::int32_t>()));
  reader.bytes(skipped);  // units
  if (reader.value<char>()) reader.value<double>();
  skipped.resize(static_cast<std::size_t>(reader.value<std::int32_t>()));
  reader.bytes(skipped);  // names of columns
  reader.value<std::int32_t>();
  const auto numbers = static_cast<std::size_t>(reader.value<std::int32_t>());
  if (reader.failed() || columns != std::int32_t{kColumns.size()} ||
      reader.remaining() != numbers * sizeof(double))
    die(fmt::format("{} is not what was asked for", path.string()));
  return numbers;
}

template <class T>
Variable column_of(std::span<const double> rows, std::size_t column) {
  Variable variable;
  variable.name = kColumns[column];
  variable.type = element_type<T>();
  variable.shape = Shape(rows.size() / kColumns.size());
  Writer writer(variable.bytes);
  for (std::size_t i = column; i < rows.size(); i += kColumns.size())
    writer.value(static_cast<T>(rows[i]));
  return variable;
}

Checkpoint read_dump(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> content(std::istreambuf_iterator<char>(file), {});
  Reader reader(std::as_bytes(std::span(content)));
  std::vector<double> rows(skip_head(reader, path));
  reader.bytes(std::as_writable_bytes(std::span(rows)));
  Checkpoint checkpoint = {column_of<std::int64_t>(rows, 0), column_of<std::int32_t>(rows, 1)};
  for (std::size_t column = 2; column < kColumns.size(); ++column)
    checkpoint.push_back(column_of<double>(rows, column));
  return checkpoint;
}

}  // namespace

bool has_lammps() { return fs::exists(kProgram); }

std::optional<std::vector<Moment>> run_lammps(const SourceSettings& settings) {
  const Workplace workplace(settings.directory);
  write_input(workplace.path() / "melt", settings.quick ? 32 : 44, settings.quick ? 5 : 20);
  if (!run_program({"mpirun", "-wdir", workplace.path().string(), "-n",
                    std::to_string(settings.ranks), kProgram, "-in", "melt", "-log", "none",
                    "-screen", "none"}))
    return std::nullopt;
  std::vector<Moment> moments;
  for (std::size_t i = 0; i < kWhens.size(); ++i) {
    moments.push_back({"lammps", kWhens[i], {}});
    for (int rank = 0; rank < settings.ranks; ++rank)
      moments.back().ranks.push_back(
          read_dump(workplace.path() / fmt::format("{}.{}.bin", i, rank)));
  }
  return moments;
}

}  // namespace belay::bench
