// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/kernels.hpp"

namespace belay::codec {

/// nullptr: the processor, or what this was built for, has no AVX2.
const Kernels* avx2_kernels();

}  // namespace belay::codec
