// SPDX-License-Identifier: Apache-2.0
#include "os/memory_disk.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

namespace belay::os::memory {
namespace {

bool coin(Random& random) { return (random.next() >> 40 & 1) != 0; }

}  // namespace

/// The first `bytes` bytes of a write, or a truncation.
void Content::apply(const Change& change, std::size_t bytes, std::vector<std::byte>& content) {
  if (change.truncation) {
    content.resize(change.offset);
    return;
  }
  if (bytes == 0) return;
  if (content.size() < change.offset + bytes) content.resize(change.offset + bytes);
  std::copy_n(change.bytes.begin(), bytes,
              content.begin() + static_cast<std::ptrdiff_t>(change.offset));
}

void Content::write(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  pending_.push_back({.offset = offset, .bytes = {bytes.begin(), bytes.end()}});
  apply(pending_.back(), bytes.size(), now_);
}

void Content::truncate(std::uint64_t bytes) {
  pending_.push_back({.truncation = true, .offset = bytes, .bytes = {}});
  apply(pending_.back(), 0, now_);
}

void Content::sync() {
  for (const Change& change : pending_) apply(change, change.bytes.size(), durable_);
  pending_.clear();
}

void Content::power_cut(Random& random) {
  enum class Fate { kept, lost, size_only };
  std::vector<Fate> fates;
  std::optional<std::size_t> last_write;
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    fates.push_back(coin(random) ? Fate::kept : coin(random) ? Fate::lost : Fate::size_only);
    if (fates[i] == Fate::kept && !pending_[i].truncation) last_write = i;
  }
  const bool tears = last_write && coin(random);
  for (std::size_t i = 0; i < pending_.size(); ++i) {
    const Change& change = pending_[i];
    const bool torn = tears && i == *last_write;
    const std::size_t length = change.bytes.size();
    if (fates[i] == Fate::kept) apply(change, torn ? random.next() % length : length, durable_);
    if (fates[i] == Fate::size_only && durable_.size() < change.end())
      durable_.resize(change.end());
  }
  now_ = durable_;
  pending_.clear();
}

void Content::flip(std::uint64_t bit) {
  const std::uint64_t place = bit / 8;
  const std::byte mask = std::byte{1} << static_cast<int>(bit % 8);
  now_[place] ^= mask;
  if (place < durable_.size()) durable_[place] ^= mask;
  for (Change& change : pending_)
    if (place >= change.offset && place < change.end()) change.bytes[place - change.offset] ^= mask;
}

void Content::cut(std::uint64_t bytes) {
  now_.resize(bytes);
  durable_ = now_;
  pending_.clear();
}

void NameJournal::created(const Place& place, InodePtr inode) {
  pending_.push_back({.from = {}, .to = place, .inode = std::move(inode)});
}

void NameJournal::renamed(const Place& from, const Place& to, InodePtr inode, bool replace) {
  pending_.push_back({.from = from, .to = to, .inode = std::move(inode), .replace = replace});
}

void NameJournal::removed(const Place& place, InodePtr inode) {
  pending_.push_back({.from = place, .to = {}, .inode = std::move(inode)});
}

/// Does nothing where the change makes no sense because one before it was lost.
void NameJournal::apply(const Change& change) {
  if (change.from.directory) {
    const auto& files = change.from.directory->durable_files;
    const auto source = files.find(change.from.name);
    if (source == files.end() || source->second != change.inode) return;
  }
  if (change.to.directory) {
    auto& files = change.to.directory->durable_files;
    if (!change.replace && files.count(change.to.name) != 0) return;
    files[change.to.name] = change.inode;
  }
  if (change.from.directory) change.from.directory->durable_files.erase(change.from.name);
}

void NameJournal::sync(const Directory* directory) {
  // A rename between two directories is one change, and what it builds on may be pending in either:
  // so directories joined by one become durable together.
  std::set<const Directory*> joined{directory};
  for (std::size_t before = 0; before != joined.size();) {
    before = joined.size();
    for (const Change& change : pending_) {
      const Directory* from = change.from.directory.get();
      const Directory* to = change.to.directory.get();
      if (from != nullptr && to != nullptr && (joined.count(from) != 0 || joined.count(to) != 0))
        joined.insert({from, to});
    }
  }
  const auto first =
      std::stable_partition(pending_.begin(), pending_.end(), [&](const Change& change) {
        return std::none_of(joined.begin(), joined.end(),
                            [&](const Directory* one) { return change.touches(one); });
      });
  std::for_each(first, pending_.end(), apply);
  pending_.erase(first, pending_.end());
}

void NameJournal::power_cut(Random& random) {
  for (const Change& change : pending_)
    if (coin(random)) apply(change);
  pending_.clear();
}

void NameJournal::forget(Directory& root, const InodePtr& inode) {
  std::erase_if(pending_, [&](const Change& change) { return change.inode == inode; });
  std::erase_if(root.durable_files, [&](const auto& entry) { return entry.second == inode; });
  for (auto& [name, directory] : root.directories) forget(*directory, inode);
}

}  // namespace belay::os::memory
