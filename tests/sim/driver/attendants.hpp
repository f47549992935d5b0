// The driver's own threads: one lets time pass while the program calls nobody, one calls the host
// functions. Both begin with the first work that needs them, and a forked child has neither.
#pragma once

namespace sim {

// Under the driver's lock.
void attend_clock();  // work was queued
void attend_calls();  // a host function's turn has come
// At the end of the process or of the library, without the lock.
void dismiss_attendants();

}  // namespace sim
