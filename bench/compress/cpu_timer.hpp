// SPDX-License-Identifier: Apache-2.0
// Processor time of the calling thread: compressors do nothing but compute, and others who want the
// processor meanwhile are not to be measured.
#pragma once

#include <time.h>

namespace belay::bench {

class CpuTimer {
 public:
  double seconds() const { return now() - start_; }

 private:
  static double now() {
    timespec time = {};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }

  double start_ = now();
};

}  // namespace belay::bench
