// SPDX-License-Identifier: Apache-2.0
#include "differential/findings.hpp"

#include <fmt/format.h>

namespace belay::bench {
namespace {

double number(const Json& row, const char* key) { return row.at(key).get<double>(); }
double mib(const Json& row, const char* key) { return number(row, key) / (1 << 20); }

void print_rows(const Json& rows) {
  fmt::print("\n{:10} {:>5} {:10} {:>9} {:>8} {:>9} {:>8} {:>8} | {:>7} {:>7} {:>7} {:>7}\n",
             "case", "dirty", "pattern", "blocking", "durable", "written", "cpu", "restore",
             "plain w", "scan", "scancpu", "directr");
  for (const Json& row : rows)
    fmt::print(
        "{:10} {:4}% {:10} {:6.1f} ms {:5.1f} ms {:5.0f} MiB {:5.1f} ms {:5.0f} ms | {:7.0f} "
        "{:7.1f} {:7.1f} {:7.0f}\n",
        row.at("case").get<std::string>(), number(row, "dirty"),
        row.at("pattern").get<std::string>(), number(row, "blocking_ms"), number(row, "durable_ms"),
        mib(row, "written_bytes"), number(row, "cpu_ms"), number(row, "restore_ms"),
        number(row, "plain_write_ms"), number(row, "scan_ms"), number(row, "scan_cpu_ms"),
        number(row, "direct_read_ms"));
}

void print_series(const Json& rows) {
  fmt::print("\nversions in a row, scattered blocks of 16 KiB\n");
  fmt::print("{:>8} {:>6} {:>8} {:>13} {:>13} {:>10} {:>10} {:>11}\n", "image", "dirty", "versions",
             "written/dirty", "carried/dirty", "durable", "worst", "plain write");
  for (const Json& row : rows)
    fmt::print("{:4.0f} MiB {:5}% {:8} {:13.2f} {:13.2f} {:7.1f} ms {:7.1f} ms {:8.0f} ms\n",
               mib(row, "bytes"), number(row, "dirty"), row.at("versions").get<int>(),
               number(row, "written_per_dirty"), number(row, "carried_per_dirty"),
               number(row, "durable_ms"), number(row, "worst_durable_ms"),
               number(row, "plain_write_ms"));
}

void print_memory(const Json& row) {
  fmt::print("\nmemory of a session over {:.0f} MiB, three versions at 100 %\n", mib(row, "bytes"));
  fmt::print(
      "staging {:.1f} MiB, tables {:.2f} MiB ({:.1f} B a block), peak beyond protected "
      "memory {:.1f} MiB: {:.1f} B a block beyond staging; once per process {:.1f} MiB (code)\n",
      mib(row, "staging_bytes"), mib(row, "table_bytes"), number(row, "table_per_block"),
      mib(row, "growth_bytes"), number(row, "growth_per_block"), mib(row, "first_session_bytes"));
}

void print_costs(const Json& rows, const char* title, const char* key) {
  fmt::print("\n{} (3 % dirty)\n{:>9} {:>8} {:>12} {:>12} {:>14} {:>14}\n", title, "image",
             "regions", "blocking", "durable", "blocking/GiB", "durable/GiB");
  for (const Json& row : rows)
    fmt::print("{:5.0f} MiB {:8} {:9.2f} ms {:9.2f} ms {:11.1f} ms {:11.1f} ms\n",
               mib(row, "bytes"), row.value(key, 1), number(row, "blocking_ms"),
               number(row, "durable_ms"), number(row, "blocking_ms_per_gib"),
               number(row, "durable_ms_per_gib"));
}

void print_small(const Json& row) {
  fmt::print("\n{} regions of {} B: blocking {:.2f} ms, durable {:.2f} ms, written {:.2f} MiB\n",
             row.at("regions").get<int>(), row.at("bytes").get<int>(), number(row, "blocking_ms"),
             number(row, "durable_ms"), mib(row, "written_bytes"));
}

void print_sweep(const Json& rows) {
  fmt::print("\nblock sizes, 62 % dirty; overhead is against a plain write of everything\n");
  fmt::print("{:8} {:>7} {:>14} {:>11} {:>11} {:>11} {:>9} {:>10}\n", "pattern", "block", "written",
             "blocking", "durable", "plain write", "overhead", "tables");
  for (const Json& row : rows)
    fmt::print(
        "{:8} {:5} B {:6.0f} MiB {:2.0f}% {:8.1f} ms {:8.1f} ms {:8.0f} ms {:+8.0f}% {:6.2f} "
        "MiB\n",
        row.at("pattern").get<std::string>(), row.at("block").get<int>(), mib(row, "written_bytes"),
        number(row, "written_share"), number(row, "blocking_ms"), number(row, "durable_ms"),
        number(row, "plain_write_ms"), number(row, "overhead"), mib(row, "table_bytes"));
}

}  // namespace

void print_tables(const Json& findings) {
  if (findings.contains("rows")) print_rows(findings.at("rows"));
  if (findings.contains("series")) print_series(findings.at("series"));
  if (findings.contains("memory")) print_memory(findings.at("memory"));
  if (findings.contains("sizes")) print_costs(findings.at("sizes"), "cost by size", "regions");
  if (findings.contains("regions"))
    print_costs(findings.at("regions"), "cost by number of regions", "regions");
  if (findings.contains("small")) print_small(findings.at("small"));
  if (findings.contains("sweep")) print_sweep(findings.at("sweep"));
  fmt::print("\n");
}

}  // namespace belay::bench
