// Reads SIM_FAULTS and applies it; see faults.hpp.
#include "faults.hpp"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "call.hpp"
#include "errors.hpp"

namespace sim {
namespace {

struct Fault {
  enum class Kind { fail, pause, kill } kind = Kind::fail;
  int entry = 0;
  std::uint64_t first = 1, last = UINT64_MAX;
  CUresult code = CUDA_SUCCESS;
  long milliseconds = 0;
};

struct Faults {
  std::vector<Fault> of_calls;
  std::set<std::string> hidden;
  int version = CUDA_VERSION;
};

[[noreturn]] void refuse(const std::string& item, const char* wrong) {
  std::fprintf(
      stderr,
      "simulated GPU: SIM_FAULTS: '%s': %s; allowed are ENTRY@N=CODE, ENTRY@N+=CODE, ENTRY@*=CODE with "
      "CODE an error's number or name, pause:MILLISECONDS or kill, hide:ENTRY and version:NUMBER\n",
      item.c_str(), wrong);
  std::abort();
}

bool number(const std::string& text, std::uint64_t* value) {
  if (text.empty() || text.find_first_not_of("0123456789") != std::string::npos || text.size() > 18)
    return false;
  *value = std::strtoull(text.c_str(), nullptr, 10);
  return true;
}

int entry_of(const std::string& item, const std::string& name) {
  for (int i = 0; i < static_cast<int>(Name::count_); ++i)
    if (name == name_of(static_cast<Name>(i))) return i;
  refuse(item, "no exported entry has this name");
}

void read_calls(const std::string& item, std::string which, Fault* fault) {
  if (which == "*") return;
  if (!which.empty() && which.back() == '+')
    which.pop_back();
  else
    fault->last = 0;
  if (!number(which, &fault->first) || !fault->first) refuse(item, "which call is not a number from 1");
  if (!fault->last) fault->last = fault->first;
}

void read_effect(const std::string& item, const std::string& effect, Fault* fault) {
  std::uint64_t value = 0;
  if (effect == "kill") {
    fault->kind = Fault::Kind::kill;
  } else if (effect.rfind("pause:", 0) == 0) {
    fault->kind = Fault::Kind::pause;
    if (!number(effect.substr(6), &value)) refuse(item, "the pause is not a number of milliseconds");
    fault->milliseconds = static_cast<long>(value);
  } else if (number(effect, &value)) {
    fault->code = static_cast<CUresult>(value);
    if (!value || !error_name(fault->code)) refuse(item, "no error has this number");
  } else if (!error_by_name(effect.c_str(), &fault->code) || fault->code == CUDA_SUCCESS) {
    refuse(item, "no error has this name");
  }
}

void read_item(const std::string& item, Faults* faults) {
  std::uint64_t value = 0;
  if (item.rfind("hide:", 0) == 0) {
    faults->hidden.insert(name_of(static_cast<Name>(entry_of(item, item.substr(5)))));
  } else if (item.rfind("version:", 0) == 0) {
    if (!number(item.substr(8), &value) || value < 1000 || value > CUDA_VERSION)
      refuse(item, "not a version from 1000 to that of the headers");
    faults->version = static_cast<int>(value);
  } else {
    const auto at = item.find('@'), equals = item.find('=', at == std::string::npos ? 0 : at);
    if (at == std::string::npos || equals == std::string::npos) refuse(item, "not understood");
    Fault fault;
    fault.entry = entry_of(item, item.substr(0, at));
    read_calls(item, item.substr(at + 1, equals - at - 1), &fault);
    read_effect(item, item.substr(equals + 1), &fault);
    faults->of_calls.push_back(fault);
  }
}

const Faults& faults() {
  static const Faults* const instance = [] {
    auto* read = new Faults;
    const char* text = std::getenv("SIM_FAULTS");
    std::istringstream items(text ? text : "");
    for (std::string item; std::getline(items, item, ',');)
      if (!item.empty()) read_item(item, read);
    return read;
  }();
  return *instance;
}

}  // namespace

bool faults_asked() { return !faults().of_calls.empty(); }
bool hides_asked() { return !faults().hidden.empty() || faults().version < CUDA_VERSION; }

CUresult fault_of(int entry, std::uint64_t call) {
  for (const Fault& fault : faults().of_calls) {
    if (fault.entry != entry || call < fault.first || call > fault.last) continue;
    switch (fault.kind) {
      case Fault::Kind::fail: return fault.code;
      case Fault::Kind::kill: ::kill(getpid(), SIGKILL); break;
      case Fault::Kind::pause: {
        const timespec duration{fault.milliseconds / 1000, fault.milliseconds % 1000 * 1'000'000};
        ::nanosleep(&duration, nullptr);
      }
    }
  }
  return CUDA_SUCCESS;
}

bool hidden(const char* symbol, int since) {
  return since > faults().version || faults().hidden.count(symbol) > 0;
}

int driver_version() { return faults().version; }

}  // namespace sim
