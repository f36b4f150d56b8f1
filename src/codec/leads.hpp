// SPDX-License-Identifier: Apache-2.0
// The residuals of an extent as their leads, which say where the highest bit of each is and what
// the next one is, compressed, and the bits below, one after the other: docs/format.md, "Leads". To
// a compressor the bits below are noise, but leads of neighbours are alike.
#pragma once

#include "codec/planes.hpp"

namespace belay::codec {

/// All whole records of `raw`. False: they do not fit. REQUIRES: the layout has strides.
bool append_leads(const Layout& layout, std::span<const std::byte> raw, Filling& filling,
                  Workspace& workspace, Compressor& compressor);
/// Nearly the bytes that append_leads() would append, without compressing: by how often each lead
/// is there.
double guess_leads(const Layout& layout, std::span<const std::byte> raw, Workspace& workspace);
/// From the front of `encoded`; false: they are damaged.
bool take_leads(const Layout& layout, std::span<const std::byte>& encoded, std::span<std::byte> raw,
                Workspace& workspace, Compressor& compressor);

}  // namespace belay::codec
