// Entries of the driver that a program brings itself: TensorFlow's library defines cuInit and the rest as
// stubs which open libcuda at their first call. A preload's exports come before those stubs, so the program's
// calls reach our wrappers before any driver is loaded; the stub then has to do what it is there for.
#pragma once

#include "shim/hook/hooks.hpp"

namespace tidepool {

// The first definition of the entry in a loaded object other than ours; null without one. Only for when
// there is no driver yet: it walks all objects. Threading: as adopt_driver.
void* stand_in(Hook hook);

}  // namespace tidepool
