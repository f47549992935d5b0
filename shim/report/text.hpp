// Text in a room of fixed size, for what must be said when nothing can be allocated. What does not fit is
// cut.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "policies/units.hpp"

namespace tidepool::report {

class Text {
 public:
  std::string_view view() const { return {room_.data(), size_}; }
  std::size_t lines() const { return lines_; }
  bool empty() const { return size_ == 0; }

  Text& operator<<(std::string_view text) {
    for (char letter : text) put(letter);
    return *this;
  }
  Text& operator<<(const char* text) { return *this << std::string_view(text); }
  template <typename Number>
  requires(std::is_integral_v<Number> && !std::is_same_v<Number, char>) Text& operator<<(Number number) {
    char digits[24];
    const auto end = std::to_chars(digits, digits + sizeof digits, number).ptr;
    return *this << std::string_view(digits, static_cast<std::size_t>(end - digits));
  }
  // "60.00 GiB", "512.00 MiB", "512 bytes"
  Text& size(Bytes bytes);
  // ".55": hundredths, as frameworks' variables take them.
  Text& hundredths(unsigned value) {
    if (value >= 100) return *this << value / 100 << (value % 100 < 10 ? ".0" : ".") << value % 100;
    return *this << (value < 10 ? ".0" : ".") << value;
  }
  // Spaces up to `column` of this line, one at least.
  Text& column(std::size_t column) {
    do put(' ');
    while (column_ < column);
    return *this;
  }
  // As put in a shell: control characters of a command line must not reach a terminal.
  Text& printable(std::string_view text, std::size_t longest);

 private:
  void put(char letter) {
    if (size_ == room_.size()) return;
    room_[size_++] = letter;
    column_ = letter == '\n' ? 0 : column_ + 1;
    lines_ += letter == '\n';
  }

  std::array<char, 8192> room_;
  std::size_t size_ = 0;
  std::size_t column_ = 0;
  std::size_t lines_ = 0;
};

}  // namespace tidepool::report
