/* What a referee may ask the simulated driver, beside the driver's own interface: the place of queued
 * work. Each operation of a stream has the next number, its ticket; a stream is known by what
 * cuStreamGetId says, which is never used twice, so that answers about streams long destroyed are right.
 * Questions take no virtual time, and may come from any thread at any moment. */
#ifndef TIDEPOOL_SIM_TICKETS_H
#define TIDEPOOL_SIM_TICKETS_H

#include <cuda.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct SimTail {
  unsigned long long context; /* as cuCtxGetId says it */
  unsigned long long stream;
  unsigned long long ticket; /* of the last operation that was queued */
} SimTail;

/* Streams with work that is not done, destroyed ones included. Fills in as many as there is room for
 * and returns how many there are. */
size_t simTails(SimTail* tails, size_t room);

/* The same of one stream, whether or not its work is done; NULL and per_thread as below. 0: no such stream. */
int simTailOf(CUstream stream, int per_thread, SimTail* tail);

/* Whether the operation has ended. */
int simTicketDone(unsigned long long stream, unsigned long long ticket);

/* Whether it has ended before anything begins that is queued on this stream from now on: by the order of
 * the stream itself, events, the legacy stream's rules, context events. NULL and the special handles are
 * those of the calling thread's current context; per_thread says what NULL means. Unknown streams: 0. */
int simTicketOrdered(unsigned long long stream, unsigned long long ticket, CUstream next, int per_thread);

/* Whether the stream is part of a capture. */
int simCapturing(CUstream stream, int per_thread);

/* What cuCtxGetId says of a context, of the calling thread's current one for NULL; 0: there is none. */
unsigned long long simContextId(CUcontext context);
/* Of the device's primary context; 0: it is not active. */
unsigned long long simPrimaryContextId(int device);

/* How many operations are not done. */
size_t simPending(void);

/* The virtual clock, in ns. */
unsigned long long simClock(void);

#ifdef __cplusplus
}
#endif
#endif
