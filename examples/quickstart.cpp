// SPDX-License-Identifier: Apache-2.0
// Heat creeps along a rod. Kill this program and start it again: it goes on where it was.
// Try it with BELAY_INTERVAL=100ms; by itself Belay would hardly checkpoint so short a run.
#include <belay/belay.hpp>

#include <array>
#include <cstdio>

struct Rod {
  int step = 0;
  std::array<double, 10000> heat = {100.0};  // hot at the left end, cold everywhere else
};

void advance(Rod& rod) {
  const Rod old = rod;
  for (std::size_t i = 1; i + 1 < rod.heat.size(); ++i)
    rod.heat[i] = old.heat[i] + 0.25 * (old.heat[i - 1] - 2 * old.heat[i] + old.heat[i + 1]);
  ++rod.step;
}

int fail(const belay::Error& error) {
  std::fprintf(stderr, "quickstart: %s\n", error.message().c_str());
  return 1;
}

int main() {
  Rod rod;
  auto session = belay::open();  // belay
  if (!session) return fail(session.error());
  session->protect("rod", rod);  // belay
  if (session->latest())         // belay
    if (auto restored = session->restore(); !restored) return fail(restored.error());
  std::printf("starting at step %d\n", rod.step);
  while (rod.step < 100000) {
    advance(rod);
    if (session->due()) session->checkpoint();  // belay
  }
  if (auto closed = session->close(); !closed) return fail(closed.error());  // belay
  std::printf("after %d steps: %.9f at cell 100\n", rod.step, rod.heat[100]);
}
