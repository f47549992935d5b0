// The one screen that a user reads when memory could not be had: at most 40 lines, plain text.
#pragma once

#include <string_view>

#include "shim/report/cause.hpp"
#include "shim/report/text.hpp"

namespace tidepool::report {

inline constexpr std::size_t kMostLines = 40;

// `python_stack`: as the interpreter writes it, may be empty. `report`: where more is to be read, or "".
void write_screen(const Failure& failure, Cause cause, std::string_view python_stack, std::string_view report,
                  Text& out);

// One line for the log: a refusal that the program got over.
void write_recovery(const Failure& failure, Cause cause, Bytes served, Text& out);
// The same of a program that ended well without.
void write_indifference(const Failure& failure, Cause cause, Text& out);

}  // namespace tidepool::report
