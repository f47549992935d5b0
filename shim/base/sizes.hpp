// Sizes as people write them: 8GiB, 512MiB, 1.5GB, 1073741824, 50%.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "policies/units.hpp"

namespace tidepool {

// KiB, MiB, GiB, TiB and K, M, G, T are powers of 1024; KB, MB, GB, TB of 1000; a bare number is bytes.
// Nothing for a negative, malformed or overflowing size.
std::optional<Bytes> parse_size(std::string_view text);

// Digits with an optional fraction at the front of `text`, which is advanced past them; or nothing.
std::optional<double> take_number(std::string_view& text);

// A number from 0 to 1, or nothing.
std::optional<double> parse_fraction(std::string_view text);

// "1.5 GiB", "512 B": three significant digits, binary units.
std::string format_size(Bytes size);

}  // namespace tidepool
