// Every guess of driver/guesses.def, both ways: what a program sees by default, and what it sees under the
// switch. Every case runs in children that have never used the driver before.
#include <algorithm>

#include "timed.hpp"

namespace {

enum Seen { by_default = 1, otherwise = 2 };

struct Guess {
  const char* setting;
  std::function<bool()> holds;  // the default
};

bool busy(CUstream stream) { return CU(cuStreamQuery)(stream) == CUDA_ERROR_NOT_READY; }

CUstream busy_stream(unsigned flags = CU_STREAM_NON_BLOCKING) {
  const CUstream stream = new_stream(flags);
  Kernels().spin(stream);
  return stream;
}

CUdeviceptr pooled(std::size_t bytes) {
  CUdeviceptr block = 0;
  REQUIRE(CU(cuMemAllocAsync)(&block, bytes, nullptr) == CUDA_SUCCESS);
  return block;
}

bool unmaps_two_at_once() {
  const CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr base = 0;
  constexpr std::size_t page = 2 * mib;
  REQUIRE(CU(cuMemCreate)(&handle, page, &prop, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemAddressReserve)(&base, 2 * page, 0, 0, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemMap)(base, page, 0, handle, 0) == CUDA_SUCCESS);
  REQUIRE(CU(cuMemMap)(base + page, page, 0, handle, 0) == CUDA_SUCCESS);
  return CU(cuMemUnmap)(base, 2 * page) == CUDA_SUCCESS;
}

bool destroyed_context_finished() {
  const CUdeviceptr block = block_of(4 * kib);  // of the outer context
  CUcontext inner = nullptr;
  REQUIRE(CU(cuCtxCreate_v2)(&inner, 0, 0) == CUDA_SUCCESS);
  Kernels().spin(nullptr);
  REQUIRE(CU(cuMemsetD32_v2)(block, 1, 1) == CUDA_SUCCESS);
  REQUIRE(CU(cuCtxDestroy_v2)(inner) == CUDA_SUCCESS);
  return peek(block) == 1;
}

const Guess guesses[] = {
    {"free_synchronises=0",
     [] {
       const CUdeviceptr block = block_of(4 * kib);
       const CUstream stream = busy_stream();
       REQUIRE(CU(cuMemFree_v2)(block) == CUDA_SUCCESS);
       return !busy(stream);
     }},
    {"free_host_synchronises=0",
     [] {
       void* host = nullptr;
       REQUIRE(CU(cuMemAllocHost_v2)(&host, 4 * kib) == CUDA_SUCCESS);
       const CUstream stream = busy_stream();
       REQUIRE(CU(cuMemFreeHost)(host) == CUDA_SUCCESS);
       return !busy(stream);
     }},
    {"pageable_synchronises=1",
     [] {
       const CUdeviceptr block = block_of(4 * kib);
       const CUstream stream = busy_stream();
       int word = 1;
       REQUIRE(CU(cuMemcpyHtoDAsync_v2)(block, &word, 4, stream) == CUDA_SUCCESS);
       return busy(stream) && peek(block) == 0;
     }},
    {"legacy_waits_for_blocking=0",
     [] {
       const CUstream stream = busy_stream(CU_STREAM_DEFAULT);
       REQUIRE(CU(cuStreamSynchronize)(nullptr) == CUDA_SUCCESS);
       return !busy(stream);
     }},
    {"destroy_waits=0", destroyed_context_finished},
    {"small_blocks_share=0", [] { return block_of(512) + 512 == block_of(512); }},
    {"neighbours_at_once=0", unmaps_two_at_once},
    {"free_null=0", [] { return CU(cuMemFree_v2)(0) == CUDA_SUCCESS; }},
    {"free_async_any=0", [] { return CU(cuMemFreeAsync)(block_of(512), nullptr) == CUDA_SUCCESS; }},
    {"pools_give_way=0",
     [] {
       cuuint64_t keep = ~0ull;
       CUmemoryPool pool = nullptr;
       REQUIRE(CU(cuDeviceGetDefaultMemPool)(&pool, 0) == CUDA_SUCCESS);
       REQUIRE(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep) == CUDA_SUCCESS);
       const std::size_t all = free_bytes();
       REQUIRE(CU(cuMemFreeAsync)(pooled(all / 2), nullptr) == CUDA_SUCCESS);
       CUdeviceptr block = 0;
       return CU(cuMemAlloc_v2)(&block, all) == CUDA_SUCCESS;
     }},
    {"pool_step_mib=64",
     [] {
       const std::size_t before = free_bytes();
       pooled(1 * mib);
       return free_bytes() == before - 32 * mib;
     }},
};

int seen(const Guess& guess, bool switched) {
  return in_child([&] {
    if (switched) setenv("SIM_GUESS", guess.setting, 1);
    OwnContext context;
    const int result = guess.holds() ? by_default : otherwise;
    _exit(result);  // before the context ends: only the guess is looked at
    return result;
  });
}

}  // namespace

TEST_CASE("every guess holds by default, and does not under its switch") {
  for (const Guess& guess : guesses) {
    INFO(guess.setting);
    CHECK(seen(guess, false) == by_default);
    CHECK(seen(guess, true) == otherwise);
  }
}

TEST_CASE("every guess is tested") {
  std::vector<std::string> tested;
  for (const Guess& guess : guesses) {
    const std::string setting = guess.setting;
    tested.push_back(setting.substr(0, setting.find('=')));
  }
  const char* const all[] = {
#define SIM_GUESS_ROW(name, value, meaning) #name,
#include "../driver/guesses.def"
#undef SIM_GUESS_ROW
  };
  CHECK(tested.size() == std::size(all));
  for (const char* name : all) {
    INFO(name);
    CHECK(std::count(tested.begin(), tested.end(), name) == 1);
  }
}
