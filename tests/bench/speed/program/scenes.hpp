// What can be measured. Each scene prints one JSON object of its figures, times in nanoseconds.
#pragma once

namespace speed {

// pairs.cpp: an allocation and its free, again and again
void stream_pair();        // on a stream of the program's
void null_stream_pair();   // on the legacy stream
void per_thread_pair();    // on CU_STREAM_PER_THREAD
void synchronous_pair();   // cuMemAlloc and cuMemFree, nothing in flight
void busy_pair();          // the same beside a kernel in flight
void launch();             // a kernel that ends at once
void pointer_questions();  // cuPointerGetAttribute(s) of host pointers

// mixes.cpp: many blocks of many sizes alive
void random_mix();
void growth();  // from 1,000 to 1,000,000 live blocks

// threads.cpp: two threads on two cores
void threads_apart();     // a stream each
void threads_together();  // one stream
void handover();          // one allocates, the other frees
void handover_long();     // four times as much of it

// torch.cpp: PyTorch's own allocator
void torch_pair();
void torch_mix();

// counted.cpp: for an instruction counter, which takes the difference of the two
void few_pairs();
void many_pairs();
void few_questions();
void many_questions();

}  // namespace speed
