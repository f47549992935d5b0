// Text in columns.
#pragma once

#include <string>
#include <vector>

namespace tidepool::cli {

enum class Align { left, right };

// Rows of cells; the first column is always flush left, the others as asked. A row of one cell is a
// heading and widens no column. Widths count characters of UTF-8. Each line ends with a newline and
// without blanks.
std::string format_table(const std::vector<std::vector<std::string>>& rows, Align others);

// At most `most` characters, the middle left out.
std::string shorten(const std::string& text, std::size_t most);

}  // namespace tidepool::cli
