// Names of environment variables that decide about GPU memory, and those that look as if they were meant.
#pragma once

#include <string>
#include <string_view>

namespace tidepool::cli::doctor {

// The known name that was probably meant; empty: it is known itself, or like none.
std::string probably_meant(std::string_view name);

// Edits of one letter (change, leave out, add, swap neighbours) between two words.
int edit_distance(std::string_view one, std::string_view other);

}  // namespace tidepool::cli::doctor
