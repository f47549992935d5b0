// The audit companion, for LD_AUDIT: tells the shim of every libcuda at the moment when it is mapped, before
// anything is bound to it. The shim alone sees neither namespaces of dlmopen nor, without loading the driver
// early, what is bound within one dlopen.
//
// The loader puts it into a namespace of its own, where it has no libc (check: it links with none). It does
// not look into calls: an auditor with la_symbind or la_pltenter makes every call through a PLT slower
// (measured: 0.5 to 133 ns), one without costs nothing once an object is loaded.
#include <link.h>

#include "shim/hook/elf.hpp"

using namespace tidepool;

namespace {

constexpr const char* kOpened = "tidepool_object_opened";

// Changed under the loader's lock only.
const link_map* shim = nullptr;
bool started = false;

template <typename Function>
Function* find_in_shim(const char* name) {
  elf::Library library;
  if (shim == nullptr || !elf::read_library(*shim, library)) return nullptr;
  return reinterpret_cast<Function*>(elf::address_of(library, name));
}

bool is_shim(const elf::Library& library) { return elf::find_symbol(library, kOpened) != nullptr; }

bool may_be_driver(const elf::Library& library) {
  return elf::starts_with(elf::name_of(library), "libcuda.so");
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

unsigned la_version(unsigned offered) { return offered < LAV_CURRENT ? offered : LAV_CURRENT; }

unsigned la_objopen(link_map* map, Lmid_t space, std::uintptr_t* cookie) {
  *cookie = reinterpret_cast<std::uintptr_t>(map);
  elf::Library library;
  if (!elf::read_library(*map, library)) return 0;
  if (shim == nullptr && space == LM_ID_BASE && is_shim(library)) shim = map;
  // Before the program starts the shim is not relocated yet, and not needed: whoever is bound at the start
  // is bound to its exports.
  if (!started || !may_be_driver(library)) return 0;
  if (auto* opened = find_in_shim<void(const link_map*, long)>(kOpened); opened != nullptr)
    opened(map, space);
  return 0;
}

// The program's own objects are all there and relocated; none of their constructors has run yet.
void la_activity(std::uintptr_t*, unsigned activity) {
  if (activity == LA_ACT_CONSISTENT && shim != nullptr) started = true;
}

unsigned la_objclose(std::uintptr_t* cookie) {
  const auto* map = reinterpret_cast<const link_map*>(*cookie);
  if (map == shim) shim = nullptr;
  if (auto* closed = find_in_shim<void(const link_map*)>("tidepool_object_closed");
      started && closed != nullptr)
    closed(map);
  return 0;
}

}  // extern "C"
#pragma GCC visibility pop
