// Sizes as people write them: parsing and printing.
#include "shim/base/sizes.hpp"

#include <array>
#include <cctype>
#include <charconv>
#include <cstdio>

namespace tidepool {
namespace {

std::optional<double> unit_factor(std::string_view unit) {
  if (unit.empty() || unit == "B" || unit == "b") return 1;
  constexpr std::string_view kPrefixes = "KMGT";
  const auto power = kPrefixes.find(static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0]))));
  if (power == std::string_view::npos) return std::nullopt;
  const std::string_view suffix = unit.substr(1);
  const double base = suffix.empty() || suffix == "iB" || suffix == "ib" ? 1024
                      : suffix == "B" || suffix == "b"                   ? 1000
                                                                         : 0;
  if (base == 0) return std::nullopt;
  double factor = base;
  for (std::size_t i = 0; i < power; ++i) factor *= base;
  return factor;
}

}  // namespace

// By hand: std::from_chars for floating point needs libm, a second library to load in every process of a
// command, and strtod's point depends on the locale.
std::optional<double> take_number(std::string_view& text) {
  double number = 0;
  double scale = 1;  // divided by once, so that 0.75 is exactly 0.75
  bool after_point = false;
  std::size_t digits = 0;
  std::size_t length = 0;
  for (; length < text.size(); ++length) {
    const char next = text[length];
    if (next == '.' && !after_point) {
      after_point = true;
    } else if (next >= '0' && next <= '9') {
      ++digits;
      number = number * 10 + (next - '0');
      if (after_point) scale *= 10;
    } else {
      break;
    }
  }
  if (digits == 0) return std::nullopt;
  text.remove_prefix(length);
  return number / scale;
}

std::optional<Bytes> parse_size(std::string_view text) {
  Bytes whole = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  if (error == std::errc{} && rest == text.data() + text.size()) return whole;
  const auto number = take_number(text);
  if (!number) return std::nullopt;
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto factor = unit_factor(text);
  if (!factor || *number * *factor >= 0x1p63) return std::nullopt;
  return static_cast<Bytes>(*number * *factor);
}

std::optional<double> parse_fraction(std::string_view text) {
  const auto number = take_number(text);
  if (!number || !text.empty() || *number > 1) return std::nullopt;
  return number;
}

std::string format_size(Bytes size) {
  constexpr std::array<const char*, 5> kUnits{"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(size);
  std::size_t unit = 0;
  while (number >= 1023.95 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", number, kUnits[unit]);
  return text.data();
}

}  // namespace tidepool
