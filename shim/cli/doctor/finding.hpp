// One line of the doctor's screen: what was looked at, what was found, and what to do about it.
#pragma once

#include <string>
#include <vector>

namespace tidepool::cli::doctor {

enum class Verdict { ok, warning, problem };

struct Finding {
  Verdict verdict = Verdict::ok;
  std::string check;  // a stable name for programs, such as "visible-devices"
  std::string text;
  std::string advice;                     // empty where nothing is to be done
  std::vector<std::string> details = {};  // lines below it, such as a table
};
using Findings = std::vector<Finding>;

const char* verdict_name(Verdict verdict);
Verdict worst(const Findings& findings);

}  // namespace tidepool::cli::doctor
