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

// The same, and keeps it loaded from then on: a program may close and load the driver again, and saved
// addresses would go stale. Only for where the loader's lock will be waited for anyway: a wrapper may be
// called by a thread that a library's constructor waits for, and that constructor holds the lock.
bool adopt_and_keep_driver();

// Keeps an adopted driver loaded; as above.
void keep_adopted_driver();

// TIDEPOOL_MODE=off: nothing is redirected.
bool is_switched_off();

// The driver's table could not be written: dlsym's answers are to be swapped.
bool answers_are_swapped();

// The driver's own entry; adopts if needed. Null: no driver, or one that lacks the entry.
void* real_entry(Hook hook);

}  // namespace tidepool
