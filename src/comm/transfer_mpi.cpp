// SPDX-License-Identifier: Apache-2.0
#include "base/try.hpp"
#include "comm/exchange_check.hpp"
#include "comm/mpi_transfer.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <utility>

namespace belay::ranks {
namespace {

// From 256 KiB to 4 MiB all sizes are about as fast; with kSends it bounds the memory that is
// needed.
constexpr std::size_t kPartBytes = 1u << 20;
constexpr std::size_t kSends = 16;
// Receives posted for each source. There is always one while bytes are to come from it: so every
// send finds its receive, in whichever order ranks serve each other.
constexpr std::size_t kReceivesEach = 4;

/// What goes to one rank, cut into messages that do not cross from one put to the next.
class Outgoing {
 public:
  explicit Outgoing(Rank peer) : peer_(peer) {}

  Rank peer() const { return peer_; }
  void add(const Put& put) { puts_.push_back({&put, bytes_of(put)}); }
  void sort() {
    std::sort(puts_.begin(), puts_.end(),
              [](const auto& a, const auto& b) { return a.first->offset < b.first->offset; });
  }
  bool done() const { return puts_.size() == put_; }

  /// Copies the next message to `buffer`, which has room for kPartBytes, and returns its length.
  std::size_t pack(std::byte* buffer) {
    auto& [put, left] = puts_[put_];
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(left, kPartBytes));
    for (std::size_t packed = 0; packed < length;) {
      const auto rest = put->pieces[piece_].subspan(at_);
      const std::size_t taken = std::min(rest.size(), length - packed);
      if (taken > 0) std::memcpy(buffer + packed, rest.data(), taken);
      packed += taken;
      at_ += taken;
      if (taken == rest.size()) {
        ++piece_;
        at_ = 0;
      }
    }
    left -= length;
    if (left == 0) {
      ++put_;
      piece_ = 0;
      at_ = 0;
    }
    return length;
  }

 private:
  Rank peer_;
  std::vector<std::pair<const Put*, std::uint64_t>> puts_;  ///< and what is left of it
  std::size_t put_ = 0;
  std::size_t piece_ = 0;
  std::size_t at_ = 0;
};

/// What comes from one rank, cut in the same way.
class Incoming {
 public:
  explicit Incoming(Rank peer) : peer_(peer) {}

  Rank peer() const { return peer_; }
  void add(std::span<std::byte> place) { places_.push_back(place); }
  void sort() {
    std::sort(places_.begin(), places_.end(),
              [](const auto& a, const auto& b) { return std::less<>()(a.data(), b.data()); });
  }
  bool done() const { return places_.size() == next_; }

  std::span<std::byte> next() {
    auto& place = places_[next_];
    const auto part = place.first(std::min(place.size(), kPartBytes));
    place = place.subspan(part.size());
    if (place.empty()) ++next_;
    return part;
  }

 private:
  Rank peer_;
  std::vector<std::span<std::byte>> places_;
  std::size_t next_ = 0;
};

template <class Stream>
Stream& stream_of(std::vector<Stream>& streams, Rank peer) {
  const auto found = std::find_if(streams.begin(), streams.end(),
                                  [&](const Stream& stream) { return stream.peer() == peer; });
  return found != streams.end() ? *found : streams.emplace_back(peer);
}

}  // namespace

/// All that MPI reads and writes on its own, but for the places of arrivals.
class Traffic {
 public:
  int start(const Shipment& shipment, MPI_Comm communicator) {
    communicator_ = communicator;
    tag_ = shipment.tag;
    outgoing_.clear();
    incoming_.clear();
    std::uint64_t largest = 0;
    for (const Put* put : shipment.sends) {
      const std::uint64_t bytes = bytes_of(*put);
      largest = std::max(largest, bytes);
      if (bytes > 0) stream_of(outgoing_, put->target).add(*put);
    }
    for (const Arrival& arrival : shipment.arrivals)
      if (!arrival.place.empty()) stream_of(incoming_, arrival.source).add(arrival.place);
    for (auto& stream : outgoing_) stream.sort();
    for (auto& stream : incoming_) stream.sort();
    make_room(static_cast<std::size_t>(std::min<std::uint64_t>(largest, kPartBytes)));
    requests_.assign(kSends + incoming_.size() * kReceivesEach, MPI_REQUEST_NULL);
    finished_.resize(requests_.size());
    next_stream_ = 0;
    for (std::size_t slot = kSends; slot < requests_.size(); ++slot)
      if (const int error = receive(slot); error != MPI_SUCCESS) return error;
    return send_all();
  }

  /// Says how many messages have come to an end since the last call; MPI_UNDEFINED: all have.
  int advance(int& ended) {
    if (const int error = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &ended,
                                       finished_.data(), MPI_STATUSES_IGNORE);
        error != MPI_SUCCESS)
      return error;
    if (ended == MPI_UNDEFINED) return MPI_SUCCESS;
    for (int i = 0; i < ended; ++i)
      if (const auto slot = static_cast<std::size_t>(finished_[static_cast<std::size_t>(i)]);
          slot >= kSends)
        if (const int error = receive(slot); error != MPI_SUCCESS) return error;
    return send_all();
  }

 private:
  void make_room(std::size_t bytes) {
    if (bytes <= room_) return;
    for (auto& buffer : buffers_) buffer.reset();
    room_ = bytes;
  }

  int receive(std::size_t slot) {
    Incoming& stream = incoming_[(slot - kSends) / kReceivesEach];
    if (stream.done()) return MPI_SUCCESS;
    const auto part = stream.next();
    return MPI_Irecv(part.data(), static_cast<int>(part.size()), MPI_BYTE,
                     static_cast<int>(stream.peer()), tag_, communicator_, &requests_[slot]);
  }

  /// Sends as much as there are free buffers, in turns to all.
  int send_all() {
    for (std::size_t slot = 0; slot < kSends; ++slot) {
      if (requests_[slot] != MPI_REQUEST_NULL) continue;
      Outgoing* stream = next_to_send();
      if (stream == nullptr) return MPI_SUCCESS;
      auto& buffer = buffers_[slot];
      if (!buffer) buffer = std::make_unique_for_overwrite<std::byte[]>(room_);
      const std::size_t length = stream->pack(buffer.get());
      if (const int error =
              MPI_Isend(buffer.get(), static_cast<int>(length), MPI_BYTE,
                        static_cast<int>(stream->peer()), tag_, communicator_, &requests_[slot]);
          error != MPI_SUCCESS)
        return error;
    }
    return MPI_SUCCESS;
  }

  Outgoing* next_to_send() {
    for (std::size_t tried = 0; tried < outgoing_.size(); ++tried) {
      Outgoing& stream = outgoing_[next_stream_++ % outgoing_.size()];
      if (!stream.done()) return &stream;
    }
    return nullptr;
  }

  MPI_Comm communicator_ = MPI_COMM_NULL;
  int tag_ = 0;
  std::vector<Outgoing> outgoing_;
  std::vector<Incoming> incoming_;
  std::size_t next_stream_ = 0;
  std::array<std::unique_ptr<std::byte[]>, kSends> buffers_;
  std::size_t room_ = 0;               ///< bytes of each buffer
  std::vector<MPI_Request> requests_;  ///< of the buffers, then kReceivesEach for each source
  std::vector<int> finished_;
};

Transfer::Transfer(Link& link) : link_(link), traffic_(std::make_unique<Traffic>()) {}
Transfer::~Transfer() = default;

Result<void> Transfer::start(const Shipment& shipment, const std::string& call) {
  call_ = call;
  const int started = traffic_->start(shipment, link_.communicator());
  return check(started == MPI_SUCCESS ? Result<void>()
                                      : Result<void>(Unexpected(mpi_error(call, started))));
}

Result<void> Transfer::finish() {
  Deadline deadline = link_.deadline();
  Pauses pauses(deadline);
  for (;;) {
    int ended = 0;
    if (const int error = traffic_->advance(ended); error != MPI_SUCCESS)
      return check(Unexpected(mpi_error(call_, error)));
    if (ended == MPI_UNDEFINED) return {};
    if (ended > 0) {
      // A peer that is slow, but not silent, is not lost.
      pauses.restart();
      deadline.renew();
    } else if (auto patient = pauses.pause(call_); !patient) {
      return check(std::move(patient));
    }
  }
}

Result<void> Transfer::check(Result<void> done) {
  if (done) return done;
  link_.break_off(done.error());
  // As in complete(): MPI may still read and write there.
  static_cast<void>(traffic_.release());
  return done;
}

}  // namespace belay::ranks
