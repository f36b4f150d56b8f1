// SPDX-License-Identifier: Apache-2.0
#include "aggregate/conveyor.hpp"

#include "base/try.hpp"

#include <algorithm>
#include <exception>

namespace belay::aggregate {

Conveyor::Conveyor(unsigned encoders, std::size_t most, Encode encode, Write write)
    : most_(std::max<std::size_t>(most, 2)), encode_(std::move(encode)), write_(std::move(write)) {
  spares_.reserve(2 * most_);
  if (encoders == 0) return;
  try {
    for (unsigned i = 0; i < encoders; ++i) threads_.emplace_back([this] { run_encoder(); });
    threads_.emplace_back([this] { run_writer(); });
  } catch (const std::exception&) {  // no thread, or no memory for one
    stop();                          // without threads it takes longer
    ended_ = false;
  }
}

Conveyor::~Conveyor() {
  fail_with(Error(Code::invalid_argument, "given up"));
  stop();
}

void Conveyor::fail_with(const Error& error) {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = error;
  changed_.notify_all();
}

void Conveyor::stop() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Bytes Conveyor::spare() {
  const std::lock_guard lock(mutex_);
  if (spares_.empty()) return {};
  Bytes bytes = std::move(spares_.back());
  spares_.pop_back();
  return bytes;
}

void Conveyor::keep_spare(Bytes bytes) {
  if (bytes.capacity() == 0 || spares_.size() == spares_.capacity()) return;
  bytes.clear();
  spares_.push_back(std::move(bytes));
}

Result<void> Conveyor::put(Parcel parcel) {
  if (threads_.empty()) {
    auto encoded = encode_(parcel.extent(), workspace_, spare());
    const auto written = write_(parcel.extent(), encoded);
    keep_spare(std::move(encoded.bytes));
    keep_spare(std::move(parcel.raw));
    return written;
  }
  std::unique_lock lock(mutex_);
  items_.emplace(next_put_++, Item{std::move(parcel), {}, false});
  changed_.notify_all();
  // One place must be free for what is fetched next.
  changed_.wait(lock, [&] { return error_ || items_.size() < most_; });
  if (error_) return Unexpected(*error_);
  return {};
}

Result<void> Conveyor::finish() {
  stop();
  if (error_) return Unexpected(*error_);
  return {};
}

void Conveyor::run_encoder() {
  codec::Workspace workspace;
  std::unique_lock lock(mutex_);
  while (true) {
    Item* free = nullptr;
    changed_.wait(lock, [&] {
      for (auto& [number, item] : items_)
        if (!item.taken) {
          free = &item;
          break;
        }
      return free != nullptr || ended_ || error_;
    });
    if (free == nullptr || error_) return;
    free->taken = true;
    lock.unlock();
    store::EncodedExtent encoded;
    const auto done = within_memory([&]() -> Result<void> {
      encoded = encode_(free->parcel.extent(), workspace, spare());
      return {};
    });
    lock.lock();
    if (!done && !error_) error_ = done.error();
    free->encoded = std::move(encoded);
    changed_.notify_all();
  }
}

void Conveyor::run_writer() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] {
      const auto next = items_.find(next_written_);
      return error_ || (next != items_.end() && next->second.encoded) ||
             (ended_ && next_written_ == next_put_);
    });
    if (error_ || next_written_ == next_put_) return;
    Item& item = items_.at(next_written_);
    lock.unlock();
    auto written = within_memory([&] { return write_(item.parcel.extent(), *item.encoded); });
    lock.lock();
    if (!written && !error_) error_ = written.error();
    keep_spare(std::move(item.encoded->bytes));
    keep_spare(std::move(item.parcel.raw));
    items_.erase(next_written_++);
    changed_.notify_all();
  }
}

}  // namespace belay::aggregate
