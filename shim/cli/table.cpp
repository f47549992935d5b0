// Text in columns.
#include "shim/cli/table.hpp"

#include <algorithm>

namespace tidepool::cli {
namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !continues(byte); }));
}

}  // namespace

std::string format_table(const std::vector<std::vector<std::string>>& rows, Align others) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    if (row.size() < 2) continue;
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::size_t blanks = row.size() < 2 ? 0 : widths[i] - width_of(row[i]);
      if (i > 0) line += "  ";
      if (i > 0 && others == Align::right) line.append(blanks, ' ');
      line += row[i];
      if (i == 0 || others == Align::left) line.append(blanks, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string shorten(const std::string& text, std::size_t most) {
  if (width_of(text) <= most || most < 5) return text;
  std::size_t head = (most - 3) / 2;
  std::size_t tail = text.size() - (most - 3 - head);
  while (head > 0 && continues(text[head])) --head;
  while (tail < text.size() && continues(text[tail])) ++tail;
  return text.substr(0, head) + "..." + text.substr(tail);
}

}  // namespace tidepool::cli
