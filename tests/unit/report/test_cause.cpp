// The cause of a failure from its numbers; what cannot be told from them is unknown.
#include <catch2/catch.hpp>

#include "tests/unit/report/failures.hpp"

using namespace tidepool;
using namespace tidepool::report;
using namespace tidepool::test;

TEST_CASE("more than the device has is a matter of capacity, whoever else is there") {
  Failure failure = refused("cuMemAlloc_v2", 100 * kGiB);
  answer(failure, 70 * kGiB);
  list(failure, 7, 70 * kGiB, "python serve.py");
  CHECK(find_cause(failure) == Cause::capacity);
}

TEST_CASE("other processes are the cause only if it would fit without them") {
  Failure failure = refused("cuMemAlloc_v2", 30 * kGiB);
  hold(failure, 10 * kGiB);
  answer(failure, 70 * kGiB);
  list(failure, 7, 60 * kGiB, "python serve.py");
  list(failure, 1000, 10 * kGiB, "python train.py");
  CHECK(find_cause(failure) == Cause::other_processes);
  hold(failure, 60 * kGiB);
  CHECK(find_cause(failure) == Cause::own_use);
}

TEST_CASE("memory that no listed process explains counts as held by others, from a GiB on") {
  Failure failure = refused("cuMemAlloc_v2", 79 * kGiB);
  answer(failure, 2 * kGiB);
  CHECK(find_cause(failure) == Cause::other_processes);
  CHECK(failure.unattributed() == 2 * kGiB);
  // Half a GiB may be this process's own context, in a container whose pids the library does not know.
  answer(failure, kGiB / 2);
  failure.requested = 79 * kGiB + 3 * kGiB / 4;
  CHECK(find_cause(failure) == Cause::capacity);
}

TEST_CASE("a limit of the process's own comes before what others hold") {
  Failure failure = refused("cuMemAllocAsync", 2 * kGiB);
  hold(failure, 7 * kGiB);
  failure.limit = 8 * kGiB;
  failure.refused_by = RefusedBy::limit;
  answer(failure, 80 * kGiB);
  list(failure, 7, 73 * kGiB, "python serve.py");
  CHECK(find_cause(failure) == Cause::own_limit);
  failure.refused_by = RefusedBy::framework_share;
  CHECK(find_cause(failure) == Cause::framework_share);
}

TEST_CASE("a library that finds nothing beside a pool of this process starves of that pool") {
  for (const char* entry : {"cuMemAlloc_v2", "cuModuleLoadData", "cuLaunchKernel"}) {
    Failure failure = refused(entry, 0);
    hold(failure, 76 * kGiB);
    failure.largest_block = 76 * kGiB;
    failure.library = Part::cudnn;
    failure.free = 700 * kMiB;
    INFO(entry);
    CHECK(find_cause(failure) == Cause::own_pool);
    // No pool: the program's own arrays fill the device.
    failure.largest_block = kGiB;
    CHECK(find_cause(failure) != Cause::own_pool);
  }
}

TEST_CASE("enough that is free but not in one piece is fragmentation") {
  Failure failure = refused("cuMemAlloc_v2", 8 * kGiB);
  hold(failure, 60 * kGiB, 12 * kGiB);
  failure.free = 0;
  failure.largest_hole = 4 * kGiB;
  CHECK(find_cause(failure) == Cause::fragmentation);
}

TEST_CASE("what the device reports as free is no cause") {
  Failure failure = refused("cuMemAlloc_v2", 8 * kGiB);
  failure.free = 20 * kGiB;
  CHECK(find_cause(failure) == Cause::unknown);
}

TEST_CASE("host memory, contexts and other errors are not taken for the device's memory") {
  CHECK(find_cause(refused("cuMemHostAlloc", 0)) == Cause::host_memory);
  CHECK(find_cause(refused("cuMemAllocHost_v2", 0)) == Cause::host_memory);
  CHECK(find_cause(refused("cuMemHostRegister_v2", 0)) == Cause::host_memory);
  CHECK(find_cause(refused("cuDevicePrimaryCtxRetain", 0)) == Cause::context);
  CHECK(find_cause(refused("cuCtxCreate_v4", 0)) == Cause::context);
  for (int code : {46, 101, 100, 201, 999}) {
    Failure failure = refused("cuDevicePrimaryCtxRetain", 0);
    failure.error = code;
    CHECK(find_cause(failure) == Cause::not_memory);
  }
}
