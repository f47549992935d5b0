// Threads of ours in the application's process: for the few things that must happen while it makes no call.
//
// They are to be noticed by nobody: the program's signals are for its own threads, and a program that ends by
// ending its threads ends though one of ours is left. A forked child has none of them.
#pragma once

namespace tidepool::own_threads {

// Calls `body(argument)` in a new thread; false: there is none. `name` has 15 characters at most.
bool start(const char* name, void (*body)(void*), void* argument);

// Ends the process, as the C library does with the last thread, where only ours are left. To be called
// several times a second by each of them, without a lock.
void exit_if_left_alone();

}  // namespace tidepool::own_threads
