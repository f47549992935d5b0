// The referee's questions (driver/tickets.h): what is pending, done, and ordered before what comes next.
#include "timed.hpp"

#include "../driver/tickets.h"

namespace {

unsigned long long id_of(CUstream stream) {
  unsigned long long id = 0;
  REQUIRE(CU(cuStreamGetId)(stream, &id) == CUDA_SUCCESS);
  return id;
}

SimTail tail_of(unsigned long long stream) {
  SimTail tails[32];
  const std::size_t count = CU(simTails)(tails, 32);
  for (std::size_t i = 0; i < count; ++i)
    if (tails[i].stream == stream) return tails[i];
  return {};
}

bool ordered(const SimTail& tail, CUstream next, bool per_thread = false) {
  return CU(simTicketOrdered)(tail.stream, tail.ticket, next, per_thread);
}

}  // namespace

TEST_CASE("a stream with work pending has a tail, which is done when the work is") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  const auto id = id_of(stream);
  CHECK(CU(simPending)() == 0);
  CHECK(CU(simTails)(nullptr, 0) == 0);
  kernels.spin(stream);
  const SimTail first = tail_of(id);
  kernels.spin(stream);
  const SimTail second = tail_of(id);
  unsigned long long context_id = 0;
  REQUIRE(CU(cuCtxGetId)(context.handle, &context_id) == CUDA_SUCCESS);
  CHECK(first.context == context_id);
  CHECK(second.ticket == first.ticket + 1);
  CHECK(CU(simPending)() == 2);
  CHECK(CU(simTails)(nullptr, 0) == 1);
  CHECK_FALSE(CU(simTicketDone)(id, first.ticket));
  REQUIRE(CU(cuStreamDestroy_v2)(stream) == CUDA_SUCCESS);
  CHECK(tail_of(id).ticket == second.ticket);
  CHECK_FALSE(CU(simTicketDone)(id, second.ticket));
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(CU(simTicketDone)(id, second.ticket));
  CHECK(CU(simTails)(nullptr, 0) == 0);
}

TEST_CASE("work is ordered before what comes next on its own stream, and on others as they wait") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream(), other = new_stream(), third = new_stream();
  kernels.spin(stream);
  const SimTail tail = tail_of(id_of(stream));
  CHECK(ordered(tail, stream));
  CHECK_FALSE(ordered(tail, other));
  const CUevent event = recorded(stream);
  CHECK_FALSE(ordered(tail, other));
  kernels.spin(stream);
  const SimTail later = tail_of(id_of(stream));
  REQUIRE(CU(cuStreamWaitEvent)(other, event, 0) == CUDA_SUCCESS);
  CHECK(ordered(tail, other));
  CHECK_FALSE(ordered(later, other));
  REQUIRE(CU(cuStreamWaitEvent)(third, recorded(other), 0) == CUDA_SUCCESS);
  CHECK(ordered(tail, third));
  CHECK_FALSE(ordered(later, third));
  REQUIRE(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
  CHECK(ordered(later, third));
}

TEST_CASE("a stream that has another's handle value is not that stream") {
  OwnContext context;
  const Kernels kernels;
  const CUstream stream = new_stream();
  kernels.spin(stream);
  const SimTail tail = tail_of(id_of(stream));
  REQUIRE(CU(cuStreamDestroy_v2)(stream) == CUDA_SUCCESS);
  const CUstream successor = new_stream();
  CHECK(successor == stream);  // the allocator gives the same address back: what recycled handles are about
  CHECK_FALSE(ordered(tail, successor));
  REQUIRE(CU(cuCtxSynchronize)() == CUDA_SUCCESS);
  CHECK(ordered(tail, successor));
}

TEST_CASE("the legacy stream's rules order work before anything is queued by them") {
  OwnContext context;
  const Kernels kernels;
  const CUstream blocking = new_stream(CU_STREAM_DEFAULT), free = new_stream();
  kernels.spin(blocking);
  const SimTail tail = tail_of(id_of(blocking));
  CHECK(ordered(tail, nullptr));
  CHECK_FALSE(ordered(tail, free));
  CHECK_FALSE(ordered(tail, nullptr, true));
  kernels.spin(nullptr);
  CHECK(ordered(tail, nullptr, true));
  kernels.spin(free);
  CHECK_FALSE(ordered(tail_of(id_of(free)), nullptr));
}

TEST_CASE("context events order all streams of the context") {
  OwnContext context;
  const Kernels kernels;
  const CUstream one = new_stream(), two = new_stream(), next = new_stream();
  kernels.spin(one);
  kernels.spin(two);
  const SimTail first = tail_of(id_of(one)), second = tail_of(id_of(two));
  const CUevent event = new_event();
  REQUIRE(CU(cuCtxRecordEvent)(context.handle, event) == CUDA_SUCCESS);
  kernels.spin(two);
  const SimTail later = tail_of(id_of(two));
  REQUIRE(CU(cuStreamWaitEvent)(next, event, 0) == CUDA_SUCCESS);
  CHECK(ordered(first, next));
  CHECK(ordered(second, next));
  CHECK_FALSE(ordered(later, next));
  OwnContext waiting;
  REQUIRE(CU(cuCtxWaitEvent)(waiting.handle, event) == CUDA_SUCCESS);
  CHECK(ordered(first, new_stream()));
}

TEST_CASE("questions take no time") {
  OwnContext context;
  const Kernels kernels;
  kernels.spin(nullptr);
  const auto before = CU(simClock)();
  for (int i = 0; i < 100; ++i) CU(simPending)();
  const auto after = CU(simClock)();
  CHECK(after - before < long_time / 1000);  // but what passes of itself
}
