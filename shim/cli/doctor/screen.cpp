// The doctor's findings as a screen for people: one line each, what to do below it.
#include "shim/cli/doctor/screen.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace tidepool::cli::doctor {
namespace {

constexpr std::size_t kVerdictWidth = 9;

std::string padded(std::string text, std::size_t width) {
  text.append(text.size() < width ? width - text.size() : 1, ' ');
  return text;
}

std::string coloured(const std::string& text, Verdict verdict) {
  constexpr const char* kColours[] = {"\033[32m", "\033[33m", "\033[1;31m"};
  return kColours[static_cast<int>(verdict)] + text + "\033[0m";
}

std::string count_phrase(const Findings& findings, Verdict verdict) {
  const auto count = std::count_if(findings.begin(), findings.end(),
                                   [&](const Finding& finding) { return finding.verdict == verdict; });
  return std::to_string(count) + " " + verdict_name(verdict) + (count == 1 ? "" : "s");
}

}  // namespace

const char* verdict_name(Verdict verdict) {
  constexpr const char* kNames[] = {"ok", "warning", "problem"};
  return kNames[static_cast<int>(verdict)];
}

Verdict worst(const Findings& findings) {
  Verdict verdict = Verdict::ok;
  for (const Finding& finding : findings) verdict = std::max(verdict, finding.verdict);
  return verdict;
}

std::string to_screen(const Findings& findings, bool colour) {
  std::size_t width = 0;
  for (const Finding& finding : findings) width = std::max(width, finding.check.size() + 2);
  const std::string indent(kVerdictWidth + width, ' ');
  std::string text;
  for (const Finding& finding : findings) {
    const std::string verdict = padded(verdict_name(finding.verdict), kVerdictWidth);
    text += colour ? coloured(verdict, finding.verdict) : verdict;
    text += padded(finding.check, width) + finding.text + "\n";
    for (const std::string& line : finding.details) text += indent + "  " + line + "\n";
    if (!finding.advice.empty()) text += indent + "-> " + finding.advice + "\n";
  }
  return text + count_phrase(findings, Verdict::problem) + ", " + count_phrase(findings, Verdict::warning) +
         "\n";
}

bool colour_wanted(int descriptor) {
  const char* refusal = std::getenv("NO_COLOR");
  return ::isatty(descriptor) != 0 && (refusal == nullptr || *refusal == '\0');
}

}  // namespace tidepool::cli::doctor
