// Notices the driver in the process and redirects its symbol table to our wrappers, so that every
// later lookup by anyone finds them: dlsym from any object, the linker, RTLD_DEEPBIND included. It
// writes data only, no code is patched. Where the table cannot be written, dlsym's answer is swapped.
//
// Threading: any thread, also inside a library's constructor with the loader's lock held. Compiled
// without sanitizers, see elf.hpp.
#pragma once

#include "shim/hook/hooks.hpp"

namespace tidepool {

// Looks for libcuda among the loaded objects and adopts the first one found. Cheap once done.
// True if the driver is known now.
bool adopt_driver();

// The driver's own entry; adopts if needed. Null: no driver, or one that lacks the entry.
void* real_entry(Hook hook);

// Is it the address of an exported entry of the driver that is not hooked?
bool driver_exports(const void* address);

// Objects named like the driver that are mapped in this namespace and are not the adopted one.
int count_unadopted_drivers();

}  // namespace tidepool
