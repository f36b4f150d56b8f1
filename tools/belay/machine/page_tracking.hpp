// SPDX-License-Identifier: Apache-2.0
// Can this kernel tell which pages a program has written?
#pragma once

#include <belay/result.hpp>

namespace belay::tool {

/// Tracks two pages by userfaultfd write-protection (asynchronous) and PAGEMAP_SCAN and writes one
/// of them. The error says which step was refused.
Result<void> try_page_tracking();

}  // namespace belay::tool
