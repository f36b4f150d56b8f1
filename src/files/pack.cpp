// SPDX-License-Identifier: Apache-2.0
#include "files/pack.hpp"

#include "base/text.hpp"
#include "base/try.hpp"
#include "comm/group.hpp"
#include "files/contents.hpp"
#include "files/layout_child.hpp"
#include "files/region_bytes.hpp"
#include "files/set_base.hpp"
#include "session/seams.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace belay::files {
namespace {

constexpr std::uint64_t kKeepAll = 1'000'000;  // the most that the option takes

/// A region, and what must be known to capture it.
struct PlannedRegion {
  std::size_t file = 0;
  std::size_t region = 0;  ///< of the file
  ElementType type;
  Shape shape;
  std::string key;  ///< the same for variables that are alike
};

class Packer {
 public:
  Packer(const PackRequest& request, const PackListener& listener)
      : request_(request), listener_(listener) {}

  Result<PackReport> run(const std::string& store);

 private:
  // The plan: what is cut out of which file.
  Result<void> find_contents();
  void describe(const PackSource& source, const Layout& layout);
  void order_regions();

  // The version.
  Result<Session> open_set(const std::string& store) const;
  Result<void> adopt_last(Session& session);
  Result<void> capture(Session& session);
  Result<void> add_region(Session& session, const PlannedRegion& planned);
  Result<void> add_contents(Session& session);
  Result<void> digest_files();
  Result<void> check_unchanged();
  Result<SourceBytes> open_unchanged(std::size_t file) const;
  void passed(std::uint64_t bytes);

  const PackRequest& request_;
  const PackListener& listener_;
  PackReport report_;
  Contents contents_;
  std::vector<PlannedRegion> planned_;
  RegionNames names_;
  std::size_t ranges_left_ = kMostTableRanges;
  RegionBytes region_bytes_;
  std::vector<std::byte> older_table_;
  std::vector<std::byte> table_;
  std::uint64_t passed_bytes_ = 0;
};

void Packer::passed(std::uint64_t bytes) {
  // Every byte is read three times: named, captured, and looked at again.
  passed_bytes_ += bytes;
  if (listener_.progress) listener_.progress(passed_bytes_ / 3, report_.raw_bytes);
}

/// As its name leads to it now, unless it is not what was found at first.
Result<SourceBytes> Packer::open_unchanged(std::size_t file) const {
  const PackSource& source = request_.sources[file];
  auto opened = SourceBytes::open(source.disk);
  if (!opened && opened.error().code() == Code::not_found)
    return Unexpected(changed_meanwhile(source.disk));
  if (opened && !opened->stamp().same_content(source.stamp))
    return Unexpected(changed_meanwhile(source.disk));
  return opened;
}

void Packer::describe(const PackSource& source, const Layout& layout) {
  const FileStamp& stamp = source.stamp;
  PackedFile file{.path = source.path,
                  .bytes = stamp.bytes,
                  .mode = stamp.mode,
                  .mtime_ns = stamp.mtime_ns,
                  .atime_ns = stamp.atime_ns,
                  .format = layout.format,
                  .digest = {},
                  .regions = {}};
  const std::size_t index = contents_.files.size();
  const auto add = [&](const std::string& whole_name, Variable variable) {
    planned_.push_back({index, file.regions.size(), std::move(variable.type),
                        std::move(variable.shape), request_.match.key(variable.name)});
    ranges_left_ -= std::min(ranges_left_, variable.ranges.size());
    file.regions.push_back({names_.name(source.alias, variable.name), whole_name,
                            std::move(variable.ranges), std::move(variable.whole)});
  };
  Variable rest;
  rest.ranges = rest_of(layout, stamp.bytes);
  rest.shape = Shape(rest.bytes());
  for (Variable& part : split_large(std::move(rest))) add("", std::move(part));
  for (const Variable& variable : layout.variables) {
    for (Variable& part : split_large(variable)) add(variable.name, std::move(part));
    report_.cut_bytes += variable.bytes();
  }
  for (const SkeletonVariable& variable : layout.in_skeleton)
    file.in_skeleton.push_back(
        {names_.name(source.alias, variable.name), variable.name, variable.array, variable.bytes});
  report_.variables += layout.variables.size();
  if (!layout.remark.empty()) report_.uncut.push_back({source.path, layout.remark});
  contents_.files.push_back(std::move(file));
}

Result<void> Packer::find_contents() {
  std::vector<FileToRead> files;
  for (const PackSource& source : request_.sources) {
    files.push_back({source.disk, source.stamp.bytes});
    report_.raw_bytes += source.stamp.bytes;
  }
  report_.files = files.size();
  contents_.step = request_.step;
  std::vector<Layout> layouts = find_layouts(files);
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    std::size_t ranges = 1;
    for (const Variable& variable : layouts[i].variables) ranges += 2 * variable.ranges.size();
    if (ranges > ranges_left_)
      layouts[i] = {layouts[i].format, {}, {}, "the set has too many pieces already"};
    describe(request_.sources[i], layouts[i]);
  }
  return {};
}

/// Variables that are alike lie side by side, so that they can be encoded together.
void Packer::order_regions() {
  const auto order = [&](const PlannedRegion& planned) {
    return std::tie(planned.key, planned.type.kind, planned.type.bytes, planned.type.name,
                    planned.file, planned.region);
  };
  std::sort(planned_.begin(), planned_.end(),
            [&](const PlannedRegion& a, const PlannedRegion& b) { return order(a) < order(b); });
}

/// The version before becomes the one that this builds on. Only its table is read.
Result<void> Packer::adopt_last(Session& session) {
  if (!session.latest()) return {};
  BELAY_TRY(session.protect(kContentsRegion, older_table_));
  auto restored = session.restore({.regions = {kContentsRegion}});
  if (restored) return {};
  if (restored.error().code() != Code::corruption) return Unexpected(restored.error());
  listener_.warning("everything is stored anew: " + restored.error().message());
  return {};
}

Result<void> Packer::digest_files() {
  for (std::size_t i = 0; i < contents_.files.size(); ++i) {
    BELAY_ASSIGN(const auto file, open_unchanged(i));
    BELAY_ASSIGN(contents_.files[i].digest, file.digest());
    passed(file.stamp().bytes);
  }
  return {};
}

/// Times of files are coarse, and writes to mapped memory change them late: only the content tells
/// for sure.
Result<void> Packer::check_unchanged() {
  for (std::size_t i = 0; i < contents_.files.size(); ++i) {
    BELAY_ASSIGN(const auto file, open_unchanged(i));
    BELAY_ASSIGN(const Digest digest, file.digest());
    BELAY_ASSIGN(const FileStamp now, file.stamp_now());
    if (digest != contents_.files[i].digest || !now.same_content(file.stamp()))
      return Unexpected(changed_meanwhile(file.path()));
    passed(file.stamp().bytes);
  }
  return {};
}

Result<void> Packer::add_region(Session& session, const PlannedRegion& planned) {
  const PackedRegion& region = contents_.files[planned.file].regions[planned.region];
  BELAY_ASSIGN(const auto file, open_unchanged(planned.file));
  BELAY_ASSIGN(const auto bytes, region_bytes_.get(file, region.ranges));
  BELAY_TRY(session.protect(region.region,
                            std::make_unique<BytesAccess>(bytes, planned.type, planned.shape)));
  BELAY_TRY(session.add(region.region));  // afterwards nobody looks at these bytes again
  region_bytes_.release();
  passed(bytes.size());
  return {};
}

Result<void> Packer::add_contents(Session& session) {
  table_ = encode_contents(contents_);
  BELAY_TRY(session.protect(
      kContentsRegion, std::make_unique<BytesAccess>(table_, ElementType{}, Shape(table_.size()))));
  return session.add(kContentsRegion);
}

Result<void> Packer::capture(Session& session) {
  BELAY_TRY(session.begin());
  for (const PlannedRegion& planned : planned_) BELAY_TRY(add_region(session, planned));
  BELAY_TRY(add_contents(session));
  BELAY_TRY(check_unchanged());
  BELAY_ASSIGN(report_.version, session.commit());
  BELAY_TRY(session.wait());
  for (const VersionInfo& info : session.versions())
    if (info.version == report_.version) report_.ledger = info.ledger;
  return {};
}

Result<Session> Packer::open_set(const std::string& store) const {
  PackRequest here = request_;
  here.set = store;
  Options options = pack_options(here);
  options.on_log = [this](LogLevel level, std::string_view text) {
    // Errors come back by themselves.
    if (level != LogLevel::error) listener_.warning(std::string(text));
  };
  session::Seams seams = session::system_seams();
  seams.files = request_.files;
  auto opened = session::open_session(
      seams,
      [](std::uint64_t, os::Clock&) -> Result<std::unique_ptr<ranks::Group>> {
        return ranks::make_solo_group();
      },
      std::move(options));
  if (!opened) return Unexpected(explain_failure(*request_.files, store, opened.error()));
  return opened;
}

Result<PackReport> Packer::run(const std::string& store) {
  BELAY_TRY(find_contents());
  order_regions();
  BELAY_TRY(digest_files());
  BELAY_ASSIGN(Session session, open_set(store));
  BELAY_TRY(adopt_last(session));
  BELAY_TRY(capture(session));
  BELAY_TRY(session.close());
  return std::move(report_);
}

}  // namespace

Options pack_options(const PackRequest& request) {
  Options options;
  options.store = request.set;
  options.application = kApplication;
  options.node = "files";  // whatever host packs: the set may be moved
  options.keep = request.keep.value_or(kKeepAll);
  options.background = "thread";
  options.late = "wait";
  options.track = "none";
  options.redundancy = "none";
  options.levels = "local:1";
  options.dedup = "local";
  options.local_codec = "auto";
  options.bandwidth = request.bandwidth.value_or("200MB/s");
  return options;
}

Result<PackReport> pack(const PackRequest& request, const PackListener& listener) {
  if (request.sources.empty()) return fail(Code::invalid_argument, "there are no files to pack");
  BELAY_ASSIGN(auto place, SetPlace::prepare(*request.files, request.set, request.base));
  BELAY_ASSIGN(auto report, Packer(request, listener).run(place.store()));
  BELAY_TRY(place.finish());
  return report;
}

}  // namespace belay::files
