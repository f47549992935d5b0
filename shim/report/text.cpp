// Sizes and foreign text.
#include "shim/report/text.hpp"

#include <algorithm>

namespace tidepool::report {

Text& Text::size(Bytes bytes) {
  constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return *this << bytes << (bytes == 1 ? " byte" : " bytes");
  std::size_t unit = 0;
  while (unit < 3 && bytes >> (10 * (unit + 2)) != 0) ++unit;
  const Bytes whole = bytes >> (10 * (unit + 1));
  const Bytes rest = (bytes >> (10 * unit)) & 1023;
  const Bytes part = rest * 100 / 1024;
  return *this << whole << (part < 10 ? ".0" : ".") << part << " " << kUnits[unit];
}

Text& Text::printable(std::string_view text, std::size_t longest) {
  for (char letter : text.substr(0, std::min(longest, text.size())))
    put(static_cast<unsigned char>(letter) < 32 || letter == 127 ? '?' : letter);
  return text.size() > longest ? *this << "..." : *this;
}

}  // namespace tidepool::report
