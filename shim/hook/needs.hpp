// Will an object bring the driver along when it is loaded? Read from its file, before the loader does.
#pragma once

namespace tidepool {

// `name` as given to dlopen. False only for an object that certainly does not: its file could be read, and
// all that it needs is loaded already. True for any other, so a false alarm loads the driver early in a
// process that may not use it (measured: see adopt_what_comes_with), and nothing is missed.
//
// Compiled without sanitizers, see elf.hpp: raw system calls only.
bool may_need_driver(const char* name);

}  // namespace tidepool
