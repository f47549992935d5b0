// Reads the rules; see rules.hpp. What cannot be understood ends the process with one line, as in
// settings.cpp: a test that ran by another rule than it asked for would prove nothing.
#include "rules.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace sim {
namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

[[noreturn]] void refuse(const char* name, const std::string& value, const std::string& allowed) {
  std::fprintf(stderr, "simulated GPU: %s=%s is not %s\n", name, value.c_str(), allowed.c_str());
  std::abort();
}

std::int64_t number(const char* name, std::int64_t otherwise) {
  const std::string text = variable(name);
  if (text.empty()) return otherwise;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (*end || value < 0 || value > 1'000'000'000'000) refuse(name, text, "a whole number, 0 or more");
  return value;
}

struct Guess {
  const char* name;
  int Rules::*value;
};

constexpr Guess guesses[] = {
#define SIM_GUESS_ROW(name, value, meaning) {#name, &Rules::name},
#include "guesses.def"
#undef SIM_GUESS_ROW
};

void take_guess(Rules& rules, const std::string& text) {
  const std::size_t equal = text.find('=');
  char* end = nullptr;
  const long value = equal == std::string::npos ? 0 : std::strtol(text.c_str() + equal + 1, &end, 10);
  if (!end || *end || end == text.c_str() + equal + 1 || value < 0 || value > 1'000'000)
    refuse("SIM_GUESS", text, "NAME=NUMBER");
  std::string names;
  for (const Guess& guess : guesses) {
    if (text.compare(0, equal, guess.name) == 0) {
      rules.*guess.value = static_cast<int>(value);
      return;
    }
    names += std::string(names.empty() ? "" : ", ") + guess.name;
  }
  refuse("SIM_GUESS", text, "a guess; there are " + names);
}

Rules read_rules() {
  Rules result;
  result.call_ns = number("SIM_CALL_NS", result.call_ns);
  result.kernel_ns = number("SIM_KERNEL_NS", result.kernel_ns);
  result.schedule = static_cast<std::uint64_t>(number("SIM_SCHED", 0));
  if (const std::string text = variable("SIM_DETECT"); !text.empty()) {
    if (text != "all" && text != "certain") refuse("SIM_DETECT", text, "all or certain");
    result.report_possible = text == "all";
  }
  std::string guesses_asked = variable("SIM_GUESS");
  for (std::size_t from = 0; from < guesses_asked.size();) {
    const std::size_t comma = std::min(guesses_asked.find(',', from), guesses_asked.size());
    take_guess(result, guesses_asked.substr(from, comma - from));
    from = comma + 1;
  }
  return result;
}

}  // namespace

const Rules& rules() {
  static const Rules* const instance = new Rules(read_rules());
  return *instance;
}

}  // namespace sim
