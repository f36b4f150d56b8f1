// SPDX-License-Identifier: Apache-2.0
#include "tools/belay/printable.hpp"

namespace belay::tool {

std::string printable(std::string line) {
  unsigned char before = 0;
  for (char& c : line) {
    const auto byte = static_cast<unsigned char>(c);
    // U+0080 to U+009F are 0xC2 and a byte from 0x80 to 0x9F; terminals may obey them too.
    const bool eight_bits = before == 0xC2 && byte >= 0x80 && byte <= 0x9F;
    if (byte < ' ' || byte == 0x7F || eight_bits) c = ' ';
    before = byte;
  }
  return line;
}

}  // namespace belay::tool
