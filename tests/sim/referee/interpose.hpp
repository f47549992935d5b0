// How the referee gets between a program and whatever follows it: another preload or the driver.
#pragma once
#include <cuda.h>

namespace referee {

enum class Entry {
#define REFEREE_ENTRY(name) name,
#include "entries.def"
  count_
};

// The function behind the referee: tidepool's wrapper where it is loaded, else the driver's entry.
void* next(Entry entry);

// The referee's own function for one that cuGetProcAddress answered, or the answer itself.
void* ours_for(void* answer);

// Ends the process as whatever follows does: tidepool writes its report.
[[noreturn]] void end_process(int status);

// Of the simulated driver, by a way that is not logged. Null: not the simulated driver.
void* of_simulator(const char* name);

#define NEXT(name) reinterpret_cast<decltype(&::name)>(referee::next(referee::Entry::name))

}  // namespace referee
