// The table of error codes, generated from cuda.h; see errors.hpp.
#include "errors.hpp"

#include <cstring>

namespace sim {
namespace {

struct Error {
  CUresult code;
  const char* name;
  const char* text;
};

const Error errors[] = {
#define SIM_ERROR(code, name, text) {code, name, text},
#include "errors.inc"
#undef SIM_ERROR
};

const Error* find(CUresult code) {
  for (const Error& error : errors)
    if (error.code == code) return &error;
  return nullptr;
}

}  // namespace

const char* error_name(CUresult code) {
  const Error* found = find(code);
  return found ? found->name : nullptr;
}

const char* error_text(CUresult code) {
  const Error* found = find(code);
  return found ? found->text : nullptr;
}

bool error_by_name(const char* name, CUresult* code) {
  for (const Error& error : errors)
    if (!std::strcmp(error.name, name)) return *code = error.code, true;
  return false;
}

}  // namespace sim
