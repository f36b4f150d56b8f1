// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/rehearse/scratch_directory.hpp"

#include "base/try.hpp"
#include "os/errno.hpp"

#include <stdlib.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

namespace belay::tool {

namespace fs = std::filesystem;

Result<std::unique_ptr<ScratchDirectory>> ScratchDirectory::make(const std::string& parent,
                                                                 const std::string& prefix) {
  std::error_code failed;
  const fs::path where = fs::canonical(parent, failed);
  if (failed)
    return Unexpected(os::error_of(failed.value(), "make a scratch directory in", parent));
  std::string path = (where / (prefix + "XXXXXX")).string();
  if (::mkdtemp(path.data()) == nullptr)
    return Unexpected(os::error_of(errno, "make a scratch directory in", where.string()));
  return std::make_unique<ScratchDirectory>(std::move(path));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code failed;
  if (!keep_) fs::remove_all(path_, failed);
  if (failed)
    std::fprintf(stderr, "belay: remove %s: %s; remove it by hand\n", path_.c_str(),
                 failed.message().c_str());
}

}  // namespace belay::tool
