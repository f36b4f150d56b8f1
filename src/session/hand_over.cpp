// SPDX-License-Identifier: Apache-2.0
#include "session/hand_over.hpp"

#include "base/try.hpp"
#include "format/manifest.hpp"
#include "format/wire.hpp"

#include <cstring>
#include <type_traits>

namespace belay::session {
namespace {

using Bytes = std::vector<std::byte>;

/// Both are of one build on one host, so that plain structures travel as they lie in memory.
template <class T>
requires std::is_trivially_copyable_v<T>
void put_list(format::WireWriter& writer, const std::vector<T>& list) {
  writer.field(std::uint64_t{list.size()});
  writer.bytes(std::as_bytes(std::span(list)));
}

template <class T>
requires std::is_trivially_copyable_v<T> std::vector<T> get_list(format::WireReader& reader) {
  const auto count = reader.field<std::uint64_t>();
  if (count > reader.remaining() / sizeof(T)) {
    (void)reader.bytes(reader.remaining() + 1);  // it has failed
    return {};
  }
  std::vector<T> list(count);
  const auto bytes = reader.bytes(count * sizeof(T));
  if (!bytes.empty()) std::memcpy(list.data(), bytes.data(), bytes.size());
  return list;
}

void put_text(format::WireWriter& writer, std::string_view text) {
  writer.field(std::uint64_t{text.size()});
  writer.text(text);
}

std::string get_text(format::WireReader& reader) {
  return reader.text(reader.field<std::uint64_t>());
}

template <class T>
T get_one(format::WireReader& reader) {
  const auto list = get_list<T>(reader);
  if (list.size() == 1) return list.front();
  (void)reader.bytes(reader.remaining() + 1);  // it has failed
  return {};
}

void put_error(format::WireWriter& writer, const Error& error) {
  writer.field(static_cast<std::uint32_t>(error.code()));
  put_text(writer, error.message());
}

Error get_error(format::WireReader& reader) {
  const auto code = static_cast<Code>(reader.field<std::uint32_t>());
  return {code, get_text(reader)};
}

void put_texts(format::WireWriter& writer, const std::vector<std::string>& texts) {
  writer.field(std::uint64_t{texts.size()});
  for (const std::string& text : texts) put_text(writer, text);
}

std::vector<std::string> get_texts(format::WireReader& reader) {
  std::vector<std::string> texts;
  const auto count = reader.field<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) texts.push_back(get_text(reader));
  return texts;
}

Result<void> put_manifest(format::WireWriter& writer, const Manifest& manifest) {
  BELAY_ASSIGN(const Bytes bytes, format::encode_manifest(manifest));
  writer.field(std::uint64_t{bytes.size()});
  writer.bytes(bytes);
  return {};
}

Result<Manifest> get_manifest(format::WireReader& reader) {
  return format::decode_manifest(reader.bytes(reader.field<std::uint64_t>()));
}

Unexpected unreadable(const char* what) {
  return fail(Code::corruption, "rank and head: {} cannot be read", what);
}

void put_shares(format::WireWriter& writer, const std::vector<Share>& shares) {
  writer.field(std::uint64_t{shares.size()});
  for (const Share& share : shares) {
    writer.field(share.file_bytes);
    writer.pair(share.payload_bytes, share.natural_bytes);
    put_list(writer, share.parcels);
  }
}

std::vector<Share> get_shares(format::WireReader& reader) {
  std::vector<Share> shares;
  const auto count = reader.field<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i) {
    Share& share = shares.emplace_back();
    share.file_bytes = reader.field<std::uint64_t>();
    share.payload_bytes = reader.field<std::uint64_t>();
    share.natural_bytes = reader.field<std::uint64_t>();
    share.parcels = get_list<Parcel>(reader);
  }
  return shares;
}

void put_keepers(format::WireWriter& writer, const std::vector<std::vector<Rank>>& keepers) {
  writer.field(std::uint64_t{keepers.size()});
  for (const auto& ranks : keepers) put_list(writer, ranks);
}

std::vector<std::vector<Rank>> get_keepers(format::WireReader& reader) {
  std::vector<std::vector<Rank>> keepers;
  const auto count = reader.field<std::uint64_t>();
  for (std::uint64_t i = 0; i < count && !reader.failed(); ++i)
    keepers.push_back(get_list<Rank>(reader));
  return keepers;
}

}  // namespace

Bytes encode_notice(Notice notice) { return {static_cast<std::byte>(notice)}; }

Notice notice_of(std::span<const std::byte> message) {
  return message.empty() ? Notice::alive : static_cast<Notice>(message.front());
}

Bytes encode_join(const Join& join) {
  Bytes bytes = encode_notice(Notice::join);
  format::WireWriter writer(bytes);
  writer.field(join.rank);
  writer.field(static_cast<std::uint8_t>(join.purpose));
  return bytes;
}

Result<Join> decode_join(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  Join join;
  join.rank = reader.field<Rank>();
  join.purpose = static_cast<Purpose>(reader.field<std::uint8_t>());
  if (reader.failed()) return unreadable("who joins");
  return join;
}

Result<Bytes> encode_order(const Order& order) {
  Bytes bytes = encode_notice(Notice::order);
  format::WireWriter writer(bytes);
  BELAY_TRY(put_manifest(writer, order.manifest));
  put_text(writer, order.directory);
  put_list(writer, order.nodes);
  writer.field(order.copies);
  writer.field(order.start_ns);
  writer.field(order.own_segment);
  put_list(writer, order.counted_on);
  put_list(writer, order.pieces);
  return bytes;
}

Result<Order> decode_order(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  Order order;
  BELAY_ASSIGN(order.manifest, get_manifest(reader));
  order.directory = get_text(reader);
  order.nodes = get_list<dedup::Node>(reader);
  order.copies = reader.field<std::uint32_t>();
  order.start_ns = reader.field<std::uint64_t>();
  order.own_segment = reader.field<std::uint16_t>();
  order.counted_on = get_list<SegmentRef>(reader);
  order.pieces = get_list<Order::Piece>(reader);
  if (reader.failed()) return unreadable("an order");
  for (const Order::Piece& piece : order.pieces)
    if (piece.block >= order.manifest.fingerprints.size() ||
        piece.region >= order.manifest.regions.size())
      return unreadable("the blocks of an order");
  return order;
}

Result<Bytes> encode_report(const Outcome& outcome) {
  Bytes bytes = encode_notice(Notice::report);
  format::WireWriter writer(bytes);
  writer.field(static_cast<std::uint8_t>(outcome.voted));
  if (outcome.error) put_error(writer, *outcome.error);
  if (!outcome.voted) return bytes;
  BELAY_TRY(put_manifest(writer, outcome.manifest));
  put_shares(writer, outcome.shares);
  put_keepers(writer, outcome.keepers);
  put_list(writer, outcome.kept.copies);
  put_list(writer, outcome.kept.manifests);
  put_list(writer, outcome.kept.shards);
  writer.pair(outcome.sent_bytes, outcome.kept_bytes);
  return bytes;
}

Result<Outcome> decode_report(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  Outcome outcome;
  outcome.voted = reader.field<std::uint8_t>() != 0;
  if (!outcome.voted) {
    outcome.error = get_error(reader);
    if (reader.failed()) return unreadable("a report of a failure");
    return outcome;
  }
  BELAY_ASSIGN(outcome.manifest, get_manifest(reader));
  outcome.shares = get_shares(reader);
  outcome.keepers = get_keepers(reader);
  outcome.kept.copies = get_list<SegmentId>(reader);
  outcome.kept.manifests = get_list<SegmentId>(reader);
  outcome.kept.shards = get_list<SegmentId>(reader);
  outcome.sent_bytes = reader.field<std::uint64_t>();
  outcome.kept_bytes = reader.field<std::uint64_t>();
  if (reader.failed()) return unreadable("a report");
  return outcome;
}

Bytes encode_drain_order(const DrainOrder& order) {
  Bytes bytes = encode_notice(Notice::drain);
  format::WireWriter writer(bytes);
  put_texts(writer, order.nodes);
  put_texts(writer, order.global);
  put_texts(writer, order.sight);
  put_list(writer, std::vector{order.version.origin});
  writer.field(static_cast<std::uint32_t>(order.version.hash));
  writer.field(order.version.block_bytes);
  put_list(writer, order.version.segments);
  writer.field(order.work.set.number);
  put_list(writer, order.work.set.members);
  writer.field(std::uint64_t{order.work.tasks.size()});
  for (const DrainTask& task : order.work.tasks) {
    put_list(writer, std::vector{task.id});
    writer.field(task.keeper);
    writer.field(static_cast<std::uint8_t>(task.whole));
    writer.field(task.place);
    put_text(writer, task.directory);
    put_texts(writer, task.copied);
  }
  return bytes;
}

Result<DrainOrder> decode_drain_order(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  DrainOrder order;
  order.nodes = get_texts(reader);
  order.global = get_texts(reader);
  order.sight = get_texts(reader);
  order.version.origin = get_one<Origin>(reader);
  order.version.hash = static_cast<HashKind>(reader.field<std::uint32_t>());
  order.version.block_bytes = reader.field<std::uint32_t>();
  order.version.segments = get_list<SegmentId>(reader);
  order.work.set.number = reader.field<std::uint32_t>();
  order.work.set.members = get_list<Rank>(reader);
  const auto tasks = reader.field<std::uint64_t>();
  for (std::uint64_t i = 0; i < tasks && !reader.failed(); ++i) {
    DrainTask& task = order.work.tasks.emplace_back();
    task.id = get_one<SegmentId>(reader);
    task.keeper = reader.field<Rank>();
    task.whole = reader.field<std::uint8_t>() != 0;
    task.place = reader.field<catalog::Whereabouts::Place>();
    task.directory = get_text(reader);
    task.copied = get_texts(reader);
  }
  if (reader.failed()) return unreadable("an order for the global tier");
  return order;
}

Bytes encode_drain_report(const DrainReport& report) {
  Bytes bytes = encode_notice(Notice::drained);
  format::WireWriter writer(bytes);
  writer.field(static_cast<std::uint8_t>(report.result.has_value()));
  if (!report.result) put_error(writer, report.result.error());
  writer.field(std::uint64_t{report.bundles.size()});
  for (const vote::KeptBundle& bundle : report.bundles) {
    put_list(writer, std::vector{bundle.id});
    put_list(writer, bundle.segments);
  }
  put_list(writer, report.damaged);
  put_list(writer, std::vector{report.written});
  writer.field(std::uint64_t{report.codecs.size()});
  for (const CodecUse& use : report.codecs) {
    put_text(writer, use.variable);
    put_text(writer, use.codec);
    writer.pair(use.raw_bytes, use.encoded_bytes);
    writer.field(use.encode_ns);
  }
  return bytes;
}

Result<DrainReport> decode_drain_report(std::span<const std::byte> bytes) {
  format::WireReader reader(bytes);
  DrainReport report;
  if (reader.field<std::uint8_t>() == 0) report.result = Unexpected(get_error(reader));
  const auto bundles = reader.field<std::uint64_t>();
  for (std::uint64_t i = 0; i < bundles && !reader.failed(); ++i) {
    vote::KeptBundle& bundle = report.bundles.emplace_back();
    bundle.id = get_one<SegmentId>(reader);
    bundle.segments = get_list<SegmentId>(reader);
  }
  report.damaged = get_list<LostFile>(reader);
  report.written = get_one<aggregate::WrittenBundle>(reader);
  const auto codecs = reader.field<std::uint64_t>();
  for (std::uint64_t i = 0; i < codecs && !reader.failed(); ++i) {
    CodecUse& use = report.codecs.emplace_back();
    use.tier = "global";
    use.variable = get_text(reader);
    use.codec = get_text(reader);
    use.raw_bytes = reader.field<std::uint64_t>();
    use.encoded_bytes = reader.field<std::uint64_t>();
    use.encode_ns = reader.field<std::uint64_t>();
  }
  if (reader.failed()) return unreadable("a report about the global tier");
  return report;
}

}  // namespace belay::session
