// Writes Python's pickle, protocol 2, of plain data: no class, no reference, so that any reader takes it,
// PyTorch's viewer in the browser too, which knows few operations.
//
// dict: begin_dict(), then keys and values in turns, end_dict(). list: begin_list(), values, end_list().
#pragma once

#include <cstdint>
#include <ostream>
#include <string_view>

namespace tidepool::cli {

class Pickle {
 public:
  explicit Pickle(std::ostream& out) : out_(out) { out_ << "\x80\x02"; }
  void finish() { out_ << '.'; }

  Pickle& text(std::string_view value) {
    out_ << 'X';
    bytes(value.size(), 4);
    out_ << value;
    return *this;
  }
  Pickle& number(std::uint64_t value) {
    if (value < std::uint64_t{1} << 31) {
      out_ << 'J';
      bytes(value, 4);
    } else {
      out_ << "\x8a\x09";  // LONG1 of nine bytes: the last keeps it positive
      bytes(value, 8);
      out_ << '\0';
    }
    return *this;
  }
  Pickle& boolean(bool value) { return out_ << (value ? '\x88' : '\x89'), *this; }
  Pickle& pair(std::uint64_t first, std::uint64_t second) {
    number(first).number(second);
    return out_ << '\x86', *this;
  }
  Pickle& begin_dict() { return out_ << "}(", *this; }
  Pickle& end_dict() { return out_ << 'u', *this; }
  Pickle& begin_list() { return out_ << "](", *this; }
  Pickle& end_list() { return out_ << 'e', *this; }
  Pickle& no_list() { return out_ << ']', *this; }

  // Entries of a dict.
  Pickle& entry(std::string_view key, std::string_view value) { return text(key).text(value); }
  Pickle& entry(std::string_view key, std::uint64_t value) { return text(key).number(value); }

 private:
  void bytes(std::uint64_t value, int count) {
    for (int i = 0; i < count; ++i) out_ << static_cast<char>(value >> 8 * i & 0xff);
  }

  std::ostream& out_;
};

}  // namespace tidepool::cli
