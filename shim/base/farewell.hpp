// A last task for processes that end by _exit, which runs no exit handler: workers of Python's
// multiprocessing that were forked, programs that are done with themselves.
//
// _exit may be called in a signal handler, in the middle of malloc or with any lock held, where little
// is allowed but to wake another thread. So the task has a thread of its own that sleeps until then.
#pragma once

namespace tidepool::farewell {

// Starts the thread; once per process, and only where the task is wanted. Not in a signal handler.
void prepare(void (*task)() noexcept);

// Has the task done, and waits for it for at most half a second. Does nothing in a process that prepared
// nothing, such as a child. Async-signal-safe.
void run() noexcept;

}  // namespace tidepool::farewell
