// SPDX-License-Identifier: Apache-2.0
#include "format/manifest.hpp"

#include "base/settings.hpp"
#include "format/checksum.hpp"
#include "format/wire.hpp"

namespace belay::format {
namespace {

constexpr std::string_view kMagic = "BELAYRUN";
constexpr std::size_t kFixedBytes = 72;
constexpr std::size_t kChecksumBytes = 8;

Result<void> check_record(const RunRecord& record) {
  if (record.ranks == 0) return fail(Code::corruption, "a run of 0 ranks does not exist");
  if (auto valid = check_name("application", record.application); !valid)
    return fail(Code::corruption, "{}", valid.error().message());
  if (record.host.empty()) return {};
  if (auto valid = check_name("host", record.host); !valid)
    return fail(Code::corruption, "{}", valid.error().message());
  return {};
}

}  // namespace

std::vector<std::byte> encode_run_record(const RunRecord& record) {
  const std::size_t size =
      kFixedBytes + record.application.size() + record.host.size() + kChecksumBytes;
  std::vector<std::byte> file;
  file.reserve(size);
  WireWriter writer(file);
  writer.start(kMagic, kFirstFormat);
  writer.field(static_cast<std::uint32_t>(size));
  writer.pair(record.store.low, record.store.high);
  writer.field(record.seed);
  writer.field(record.run);
  writer.field(record.ranks);
  writer.length(record.application);
  writer.length(record.host);
  writer.field(std::uint16_t{0});
  writer.field(record.pid);
  writer.field(record.time_ns);
  writer.text(record.application);
  writer.text(record.host);
  writer.field(checksum64(file));
  return file;
}

Result<void> check_run_record_front(std::span<const std::byte>, std::uint64_t file_bytes) {
  constexpr std::uint64_t kMostBytes = kFixedBytes + 2 * kMaxNameBytes + kChecksumBytes;
  if (file_bytes > kMostBytes)
    return fail(Code::corruption, "{} bytes are too many for a run record", file_bytes);
  return {};
}

Result<RunRecord> decode_run_record(std::span<const std::byte> file) {
  WireReader reader(file);
  BELAY_ASSIGN(const auto format, get_start(reader, kMagic));
  if (format != kFirstFormat)
    return fail(Code::corruption, "run record: format {} has none of its own", format);
  if (reader.field<std::uint32_t>() != file.size() || file.size() < kFixedBytes + kChecksumBytes)
    return fail(Code::corruption, "run record of {} bytes: it was cut or extended", file.size());
  WireReader end(file.last(kChecksumBytes));
  if (end.field<std::uint64_t>() != checksum64(file.first(file.size() - kChecksumBytes)))
    return damaged("run record");

  RunRecord record;
  record.store.low = reader.field<std::uint64_t>();
  record.store.high = reader.field<std::uint64_t>();
  record.seed = reader.field<std::uint64_t>();
  record.run = reader.field<Run>();
  record.ranks = reader.field<Rank>();
  const auto application_bytes = reader.field<std::uint8_t>();
  const auto host_bytes = reader.field<std::uint8_t>();
  const bool reserved_is_zero = reader.zeros(2);
  record.pid = reader.field<std::uint64_t>();
  record.time_ns = reader.field<std::int64_t>();
  record.application = reader.text(application_bytes);
  record.host = reader.text(host_bytes);
  if (!reserved_is_zero || reader.failed() || reader.remaining() != kChecksumBytes)
    return fail(Code::corruption, "run record: its fields do not add up");
  BELAY_TRY(check_record(record));
  return record;
}

}  // namespace belay::format
