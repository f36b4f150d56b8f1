// SPDX-License-Identifier: Apache-2.0
// Counts its starts.
#include <belay/belay.hpp>

#include <cstdio>
#include <vector>

int main() {
  int starts = 0;
  std::vector<double> field;
  auto session = belay::open();
  if (!session) return std::fprintf(stderr, "%s\n", session.error().message().c_str()), 1;
  session->protect("starts", starts);
  session->protect("field", field);
  session->protect(
      "serialized", [](belay::Writer& writer) { writer.text("text"); },
      [](belay::Reader& reader) { reader.text(); });
  if (session->latest())
    if (auto restored = session->restore(); !restored) return 1;
  if (field.size() != static_cast<std::size_t>(starts)) return 1;
  ++starts;
  field.resize(static_cast<std::size_t>(starts), 0.5);
  if (session->due()) session->checkpoint();
  if (auto closed = session->close(); !closed) return 1;
  std::printf("%d\n", starts);
}
