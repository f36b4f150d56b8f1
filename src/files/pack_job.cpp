// SPDX-License-Identifier: Apache-2.0
#include "files/pack_job.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "format/wire.hpp"
#include "os/clock.hpp"

#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

namespace belay::files {
namespace {

enum class Message : std::uint8_t { progress, warning, report, failure };

constexpr std::uint64_t kMostMessageBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kForever = ~std::uint64_t{0};
constexpr std::uint64_t kPauseNs = 50'000'000;  // between two reports of progress

class Sender {
 public:
  explicit Sender(int out) : out_(out) {}

  void progress(std::uint64_t done, std::uint64_t total) {
    const std::uint64_t now = os::system_clock().now_ns();
    if (done < total && now - last_ns_ < kPauseNs) return;
    last_ns_ = now;
    send(Message::progress, [&](format::WireWriter& writer) { writer.pair(done, total); });
  }
  void warning(const std::string& text) {
    send(Message::warning, [&](format::WireWriter& writer) { writer.text(text); });
  }
  void failure(const Error& error) {
    send(Message::failure, [&](format::WireWriter& writer) {
      writer.field(static_cast<std::uint8_t>(error.code()));
      writer.text(error.message());
    });
  }
  void report(const PackReport& report) {
    send(Message::report, [&](format::WireWriter& writer) {
      writer.field(report.version);
      writer.pair(report.files, report.variables);
      writer.pair(report.raw_bytes, report.cut_bytes);
      writer.bytes(std::as_bytes(std::span(&report.ledger, 1)));
      for (const UncutFile& file : report.uncut)
        for (const std::string& text : {file.path, file.reason}) {
          writer.field(static_cast<std::uint32_t>(text.size()));
          writer.text(text);
        }
    });
  }

 private:
  template <class Put>
  void send(Message kind, const Put& put) {
    std::vector<std::byte> bytes;
    format::WireWriter writer(bytes);
    writer.field(static_cast<std::uint8_t>(kind));
    put(writer);
    // If nobody listens, there is nobody to tell, and the version is none the worse for it.
    (void)send_message(out_, bytes);
  }

  int out_;
  std::uint64_t last_ns_ = 0;
};

PackReport get_report(format::WireReader& reader) {
  PackReport report;
  report.version = reader.field<std::uint64_t>();
  report.files = reader.field<std::uint64_t>();
  report.variables = reader.field<std::uint64_t>();
  report.raw_bytes = reader.field<std::uint64_t>();
  report.cut_bytes = reader.field<std::uint64_t>();
  const auto ledger = reader.bytes(sizeof(Ledger));
  if (!ledger.empty()) std::memcpy(&report.ledger, ledger.data(), sizeof(Ledger));
  while (reader.remaining() > 0) {
    UncutFile file;
    file.path = reader.text(reader.field<std::uint32_t>());
    file.reason = reader.text(reader.field<std::uint32_t>());
    report.uncut.push_back(std::move(file));
  }
  return report;
}

void pack_and_tell(const PackRequest& request, int out) {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);  // memory of a SIGBUS is of no use to anybody
  ::signal(SIGXFSZ, SIG_IGN);             // a limit on file sizes is an error like a full disk
  Sender sender(out);
  const PackListener listener{
      .progress = [&](std::uint64_t done, std::uint64_t total) { sender.progress(done, total); },
      .warning = [&](const std::string& text) { sender.warning(text); }};
  const auto packed = within_memory([&] { return pack(request, listener); });
  if (packed)
    sender.report(*packed);
  else
    sender.failure(packed.error());
}

}  // namespace

Result<PackJob> PackJob::start(PackRequest request) {
  BELAY_ASSIGN(auto child, Child::start([&](int out) { pack_and_tell(request, out); }));
  return PackJob(std::move(request), std::move(child));
}

Error PackJob::death() {
  const int status = child_.wait();
  for (const PackSource& source : request_.sources) {
    const auto now = stamp_of(source.disk);
    if (!now || !now->same_content(source.stamp)) return changed_meanwhile(source.disk);
  }
  if (WIFSIGNALED(status))
    return {Code::io, fmt::format("the process that packs was ended by signal {} ({}); nothing of "
                                  "this version is visible",
                                  WTERMSIG(status), ::strsignal(WTERMSIG(status)))};
  return {Code::io, "the process that packs has ended early; nothing of this version is visible"};
}

Result<std::optional<PackReport>> PackJob::step(const PackListener& listener) {
  const auto message = child_.receive(kForever, kMostMessageBytes);
  if (!message) return Unexpected(death());
  format::WireReader reader(*message);
  switch (static_cast<Message>(reader.field<std::uint8_t>())) {
    case Message::progress: {
      const auto done = reader.field<std::uint64_t>();
      if (listener.progress) listener.progress(done, reader.field<std::uint64_t>());
      return std::optional<PackReport>();
    }
    case Message::warning:
      if (listener.warning) listener.warning(reader.text(reader.remaining()));
      return std::optional<PackReport>();
    case Message::report:
      return std::optional(get_report(reader));
    case Message::failure:
      break;
  }
  const auto code = static_cast<Code>(reader.field<std::uint8_t>());
  return Unexpected(Error(code, reader.text(reader.remaining())));
}

Result<PackReport> pack_in_child(const PackRequest& request, const PackListener& listener) {
  BELAY_ASSIGN(auto job, PackJob::start(request));
  for (;;) {
    BELAY_ASSIGN(auto report, job.step(listener));
    if (report) return *std::move(report);
  }
}

}  // namespace belay::files
