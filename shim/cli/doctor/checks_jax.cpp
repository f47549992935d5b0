// JAX's memory variables: values that mean something else than they say, and variables that others beat.
//
// JAX reads them in jaxlib/xla_client.py (generate_pjrt_gpu_plugin_options); an exception there is logged
// and swallowed by jax/_src/xla_bridge.py, and the program goes on without CUDA.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "shim/cli/doctor/run_checks.hpp"
#include "shim/cli/reports.hpp"

namespace tidepool::cli::doctor {
namespace {

constexpr const char* kAllocator = "XLA_PYTHON_CLIENT_ALLOCATOR";
constexpr const char* kPreallocate = "XLA_PYTHON_CLIENT_PREALLOCATE";
constexpr const char* kFraction = "XLA_PYTHON_CLIENT_MEM_FRACTION";
constexpr const char* kNewFraction = "XLA_CLIENT_MEM_FRACTION";
constexpr const char* kOptions = "JAX_PJRT_CLIENT_CREATE_OPTIONS";
constexpr const char* kNoCuda = ": JAX logs a ValueError and goes on without CUDA, on the CPU";

std::string pair(const char* name, const std::string& value) {
  return std::string(name) + "=" + printable(value);
}

std::string lower(std::string text) {
  for (char& letter : text)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return text;
}

template <std::size_t count>
bool any_of(const std::array<const char*, count>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// What Python's float() makes of it.
std::optional<double> as_number(const std::string& text) {
  const auto start = text.find_first_not_of(" \t");
  if (start == std::string::npos) return std::nullopt;
  char* end = nullptr;
  const double number = std::strtod(text.c_str() + start, &end);
  while (*end == ' ' || *end == '\t') ++end;
  if (*end != '\0') return std::nullopt;
  return number;
}

// Only false, False and 0 are off; everything else is on.
void check_preallocate(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::jax)) return;
  constexpr std::array kUnderstood{"false", "False", "0", "true", "True", "TRUE", "1", "yes", "on"};
  const std::string* value = run.given(kPreallocate);
  if (value == nullptr || any_of(kUnderstood, *value)) return;
  findings.push_back({Verdict::problem, "jax-preallocate",
                      pair(kPreallocate, *value) + " means on: off is only false, False or 0",
                      "XLA_PYTHON_CLIENT_PREALLOCATE=false"});
}

void check_two_fractions(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::jax)) return;
  const std::string* old_name = run.given(kFraction);
  const std::string* new_name = run.given(kNewFraction);
  if (old_name == nullptr || new_name == nullptr) return;
  findings.push_back({Verdict::problem, "jax-two-fractions",
                      pair(kFraction, *old_name) + " and " + pair(kNewFraction, *new_name) + kNoCuda,
                      "unset XLA_PYTHON_CLIENT_MEM_FRACTION, the older name"});
}

void check_allocator(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::jax)) return;
  // "address" is of JAX after 0.10.2.
  constexpr std::array kAllocators{"default", "platform", "bfc", "cuda_async", "vmm", "address"};
  const std::string* value = run.given(kAllocator);
  if (value == nullptr || any_of(kAllocators, lower(*value))) return;
  findings.push_back({Verdict::problem, "jax-allocator",
                      pair(kAllocator, *value) + " names no allocator" + kNoCuda,
                      "one of default, platform, bfc, cuda_async, vmm"});
}

// Percent, most likely.
std::string share_meant(double number) {
  if (number < 2 || number >= 100) return ".75";
  return std::to_string(number / 100).substr(1, 3);
}

void check_fraction(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::jax)) return;
  for (const char* name : {kFraction, kNewFraction}) {
    const std::string* value = run.given(name);
    if (value == nullptr) continue;
    const std::optional<double> number = as_number(*value);
    if (!number) {
      findings.push_back({Verdict::problem, "jax-fraction", pair(name, *value) + " is no number" + kNoCuda,
                          std::string(name) + "=.75, a part of the device"});
    } else if (*number > 1) {
      std::ostringstream times;
      times << *number;
      findings.push_back({Verdict::problem, "jax-fraction",
                          pair(name, *value) + " means " + times.str() +
                              " times the device's memory, not percent: the pool asks for more than there is "
                              "and nothing bounds it",
                          std::string(name) + "=" + share_meant(*number)});
    }
  }
}

// key:value;key:value, the form that JAX splits itself.
std::map<std::string, std::string> options_of(const std::string& text, bool& well_formed) {
  std::map<std::string, std::string> options;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ';');) {
    const auto colon = part.find(':');
    if (colon == std::string::npos || part.find(':', colon + 1) != std::string::npos)
      well_formed = false;
    else
      options[part.substr(0, colon)] = part.substr(colon + 1);
  }
  return options;
}

// xla_bridge updates the variables' options by these, so these win.
void check_create_options(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::jax)) return;
  const std::string* value = run.given(kOptions);
  if (value == nullptr) return;
  bool well_formed = true;
  const auto options = options_of(*value, well_formed);
  if (!well_formed)
    findings.push_back(
        {Verdict::problem, "jax-create-options",
         pair(kOptions, *value) + " is not understood: JAX raises RuntimeError when it makes its client",
         "JAX_PJRT_CLIENT_CREATE_OPTIONS=key:value;key:value"});
  constexpr std::array<std::pair<const char*, const char*>, 4> kBeaten{{{"allocator", kAllocator},
                                                                        {"preallocate", kPreallocate},
                                                                        {"memory_fraction", kFraction},
                                                                        {"memory_fraction", kNewFraction}}};
  for (const auto& [key, variable] : kBeaten) {
    const std::string* beaten = run.given(variable);
    if (beaten == nullptr || !options.contains(key)) continue;
    findings.push_back({Verdict::warning, "jax-create-options",
                        pair(variable, *beaten) + " has no effect: JAX_PJRT_CLIENT_CREATE_OPTIONS says " +
                            key + ":" + printable(options.at(key)) + ", which wins",
                        std::string("unset one of the two")});
  }
}

// The platform allocator has no pool: there is nothing to preallocate and no share to keep to.
void check_inert_with_platform(const Observation& run, Findings& findings) {
  if (!run.may_have(Framework::jax)) return;
  const std::string* allocator = run.given(kAllocator);
  if (allocator == nullptr || lower(*allocator) != "platform") return;
  for (const char* name : {kFraction, kNewFraction, kPreallocate})
    if (const std::string* value = run.given(name))
      findings.push_back(
          {Verdict::warning, "jax-inert",
           pair(name, *value) + " has no effect with " + pair(kAllocator, *allocator) + ", which has no pool",
           std::string("unset ") + name + "; a limit for any allocator: --limit"});
}

// JAX that is told anything of its memory is left alone, see frameworks.hpp.
void check_own_pool(const Observation& run, Findings& findings) {
  if (!run.settings.serves() || !run.has(Framework::jax_cuda) ||
      run.settings.frameworks != FrameworkChoice::automatic)
    return;
  for (const char* name : {kFraction, kNewFraction, kPreallocate}) {
    const std::string* value = run.given(name);
    if (value == nullptr || run.given(kAllocator) != nullptr) continue;
    findings.push_back({Verdict::warning, "jax-own-pool",
                        pair(name, *value) + " wins over TIDEPOOL_MODE=" + mode_name(run.settings.mode) +
                            ": JAX keeps a pool of its own, which tidepool only counts and limits",
                        std::string("unset ") + name + " to have JAX's memory from the arena"});
    return;
  }
}

// It is JAX's documentation and its own message that recommend it.
void check_tensorflow_allocator(const Observation& run, Findings& findings) {
  const std::string* value = run.given("TF_GPU_ALLOCATOR");
  if (value == nullptr || !run.has(Framework::jax) || run.has(Framework::tensorflow)) return;
  findings.push_back({Verdict::warning, "jax-tf-allocator",
                      pair("TF_GPU_ALLOCATOR", *value) +
                          " has no effect: JAX does not read it, and TensorFlow is not loaded",
                      "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async is JAX's name for it"});
}

constexpr std::array<RunCheck, 8> kChecks{
    check_preallocate,    check_two_fractions,       check_allocator, check_fraction,
    check_create_options, check_inert_with_platform, check_own_pool,  check_tensorflow_allocator};

}  // namespace

std::span<const RunCheck> jax_checks() { return kChecks; }

}  // namespace tidepool::cli::doctor
