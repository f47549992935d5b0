// What the simulator's own kernels do; see kernels.hpp.
//
//   sim_fill(dst, value, count)    sim_copy(dst, src, count)    sim_add(dst, a, b, count)    sim_spin(ns)
//
// All parameters are 8 bytes, memory is in words of 4.
#include "kernels.hpp"

#include <cstring>
#include <sstream>

#include "detector.hpp"
#include "rules.hpp"

namespace sim {
namespace {

constexpr char heading[] = "//tidepool-sim";

constexpr OwnKernel own_kernels[] = {
    {"sim_fill", 3, 1, 0}, {"sim_copy", 3, 1, 1}, {"sim_add", 4, 1, 2}, {"sim_spin", 1, 0, 0}};

const OwnKernel* find_own(const std::string& name) {
  for (const OwnKernel& kernel : own_kernels)
    if (name == kernel.name) return &kernel;
  return nullptr;
}

using Words = std::uint64_t[4];

// The parameters, by pointers to them or in one buffer, as cuda.h's cuLaunchKernel describes both.
bool read_parameters(unsigned count, void** parameters, void** extra, Words& words) {
  if (parameters) {
    for (unsigned i = 0; i < count; ++i) std::memcpy(&words[i], parameters[i], 8);
    return true;
  }
  const void* buffer = nullptr;
  std::size_t size = 0;
  for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) buffer = extra[1];
    if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) size = *static_cast<std::size_t*>(extra[1]);
  }
  if (!buffer || size < count * 8) return false;
  std::memcpy(words, buffer, count * 8);
  return true;
}

void compute(const OwnKernel& kernel, const std::uint64_t* words) {
  const auto at = [](std::uint64_t address) { return reinterpret_cast<std::uint32_t*>(address); };
  const std::uint64_t count = words[kernel.words - 1];
  if (!std::strcmp(kernel.name, "sim_fill"))
    std::fill_n(at(words[0]), count, static_cast<std::uint32_t>(words[1]));
  else if (!std::strcmp(kernel.name, "sim_copy"))
    std::memmove(at(words[0]), at(words[1]), count * 4);
  else if (!std::strcmp(kernel.name, "sim_add"))
    for (std::uint64_t i = 0; i < count; ++i) at(words[0])[i] = at(words[1])[i] + at(words[2])[i];
}

}  // namespace

// Any other image is longer than this, or differs before it ends.
bool is_own_module(const void* image) {
  return !std::strncmp(static_cast<const char*>(image), heading, sizeof heading - 1);
}

bool read_own_module(const char* text, Module* module) {
  std::istringstream lines(text + sizeof heading - 1);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string verb, name, kind, word;
    if (!(words >> verb)) continue;
    if (verb != "kernel" || !(words >> name)) return false;
    kind = name;
    std::int64_t cost = rules().kernel_ns;
    while (words >> word) {
      if (word == "=") {
        if (!(words >> kind)) return false;
      } else if (word.find_first_not_of("0123456789") == std::string::npos) {
        cost = std::stoll(word);
      } else {
        return false;
      }
    }
    auto function = std::make_unique<Function>();
    function->module = module;
    function->context = module->context;
    function->name = name;
    function->kept_name = keep_name(name);
    function->own = find_own(kind);
    function->cost = cost;
    if (!function->own) return false;
    module->functions[name] = std::move(function);
  }
  module->complete = true;
  return true;
}

CUresult kernel_work(const Function& function, void** parameters, void** extra, Work* work) {
  work->name = function.kept_name;
  work->cost = function.own ? function.cost : rules().kernel_ns;
  work->kind = function.own ? Work::Kind::kernel : Work::Kind::foreign_kernel;
  if (!function.own) return CUDA_SUCCESS;
  const OwnKernel& kernel = *function.own;
  Words words{};
  if (!read_parameters(kernel.words, parameters, extra, words)) return CUDA_ERROR_INVALID_VALUE;
  if (kernel.words == 1) {
    work->cost = static_cast<std::int64_t>(words[0]);
    return CUDA_SUCCESS;
  }
  const std::uint64_t bytes = words[kernel.words - 1] * 4;
  if (bytes)
    for (unsigned i = 0; i < kernel.output + kernel.inputs; ++i)
      work->touches.push_back({words[i], bytes, i < kernel.output});
  work->effect = [kernel, words = std::vector<std::uint64_t>(words, words + 4), touches = work->touches,
                  name = std::string("kernel ") + work->name](Context& context) {
    if (check_touches(context, name.c_str(), touches, true)) compute(kernel, words.data());
  };
  return CUDA_SUCCESS;
}

}  // namespace sim
