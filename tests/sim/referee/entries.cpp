// The referee's entries: what they give out and take back is checked in the books (burials.hpp); the
// work is done by whatever follows.
//
// An allocation is judged after it returned: the shim may wait for the device inside. A free is buried
// before it is passed on, since another thread may be given the memory at once.
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

#include "device.hpp"
#include "interpose.hpp"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace referee {
namespace {

struct Book {
  const pid_t owner = getpid();
  std::mutex mutex;
  Burials burials;
  std::uint64_t handed_out = 0, synchronous_bytes = 0, freed = 0, broken = 0;
};

// Never destroyed: programs call the driver from their exit handlers. Not from malloc: ThreadSanitizer, which
// does not look into this library, would see its lock taken by threads that never saw it allocated.
Book& book() {
  alignas(Book) static std::byte room[sizeof(Book)];
  static Book* const instance = new (room) Book;
  return *instance;
}

std::FILE* verdicts() {
  static std::FILE* const file = [] {
    const char* path = std::getenv("REFEREE_LOG");
    std::string name = path ? path : "";
    if (const auto at = name.find("%p"); at != std::string::npos)
      name.replace(at, 2, std::to_string(getpid()));
    if (name.empty()) return static_cast<std::FILE*>(nullptr);
    std::FILE* opened = std::fopen(name.c_str(), "a");
    if (!opened)
      std::fprintf(stderr, "referee: cannot write REFEREE_LOG %s: %s\n", name.c_str(), std::strerror(errno));
    return opened;
  }();
  return file;
}

void announce(const std::string& sentence) {
  std::fprintf(stderr, "referee: %s\n", sentence.c_str());
  if (std::FILE* file = verdicts()) {
    std::fprintf(file, "broken: %s\n", sentence.c_str());
    std::fflush(file);
  }
}

// So that a test can tell silence from absence.
[[gnu::destructor]] void sum_up() {
  // A child by fork or vfork has nothing to say of its parent's book, whose lock may be held for ever.
  if (!simulated() || book().owner != getpid()) return;
  const std::unique_lock hold(book().mutex, std::try_to_lock);
  std::FILE* file = hold ? verdicts() : nullptr;
  if (!file) return;
  std::fprintf(file, "handed out %lu, bytes by cuMemAlloc %lu, freed %lu, reuses checked %lu, broken %lu\n",
               book().handed_out, book().synchronous_bytes, book().freed, book().burials.checked(),
               book().broken);
  std::fflush(file);
}

void judge(CUdeviceptr base, const Handed& block, const IsOver& is_over) {
  const std::lock_guard hold(book().mutex);
  ++book().handed_out;
  if (block.by == "cuMemAlloc_v2") book().synchronous_bytes += block.size;
  for (const std::string& sentence : book().burials.hand_out(base, block, is_over)) {
    ++book().broken;
    announce(sentence);
  }
}

// Memory of the cuMemAlloc family may be used by any stream at once.
CUresult handed(CUresult result, const CUdeviceptr* pointer, std::uint64_t size, const char* by) {
  if (result == CUDA_SUCCESS && simulated()) judge(*pointer, {size, current_context(), by, false}, over);
  return result;
}

// Stream-ordered memory only by what comes behind on its stream. In a capture the address is the
// graph's, and its order too.
CUresult handed(CUresult result, const CUdeviceptr* pointer, std::uint64_t size, const char* by,
                CUstream stream, bool per_thread) {
  if (result != CUDA_SUCCESS || !simulated() || capturing(stream, per_thread)) return result;
  judge(*pointer, {size, 0, by, true},
        [&](const Ticket& ticket) { return over(ticket) || ordered_before(ticket, stream, per_thread); });
  return result;
}

template <typename Free>
CUresult freed(CUdeviceptr pointer, const char* by, Tickets until, bool on_a_stream, const Free& free) {
  std::optional<Handed> block;
  if (simulated()) {
    const std::lock_guard hold(book().mutex);
    block = book().burials.bury(pointer, by, std::move(until), on_a_stream);
    if (block) ++book().freed;
  }
  const CUresult result = free();
  if (result != CUDA_SUCCESS && block) {
    const std::lock_guard hold(book().mutex);
    book().burials.undo_burial(pointer, *block);
    --book().freed;
  }
  return result;
}

// A free on a stream says that all uses are ordered before it there.
template <typename Free>
CUresult freed_on(CUdeviceptr pointer, CUstream stream, bool per_thread, const char* by, const Free& free) {
  if (simulated() && capturing(stream, per_thread)) return free();
  return freed(pointer, by, tail_of(stream, per_thread), true, free);
}

template <typename End>
CUresult ended(std::uint64_t context, const char* by, const End& end) {
  const Tickets until = tails();
  const CUresult result = end();
  if (result == CUDA_SUCCESS) {
    const std::lock_guard hold(book().mutex);
    book().burials.end_context(context, by, until);
  }
  return result;
}

}  // namespace
}  // namespace referee

// Workers of multiprocessing end by it, and no destructor runs.
EXPORT void _exit(int status) {
  referee::sum_up();
  referee::end_process(status);
}
EXPORT void _Exit(int status) noexcept { _exit(status); }

EXPORT CUresult cuGetProcAddress(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags) {
  const CUresult result = NEXT(cuGetProcAddress)(symbol, pfn, cudaVersion, flags);
  if (result == CUDA_SUCCESS && pfn) *pfn = referee::ours_for(*pfn);
  return result;
}
EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int cudaVersion, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult* symbolStatus) {
  const CUresult result = NEXT(cuGetProcAddress_v2)(symbol, pfn, cudaVersion, flags, symbolStatus);
  if (result == CUDA_SUCCESS && pfn) *pfn = referee::ours_for(*pfn);
  return result;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr* dptr, size_t bytesize) {
  return referee::handed(NEXT(cuMemAlloc_v2)(dptr, bytesize), dptr, bytesize, __func__);
}
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                                   unsigned int ElementSizeBytes) {
  const CUresult result = NEXT(cuMemAllocPitch_v2)(dptr, pPitch, WidthInBytes, Height, ElementSizeBytes);
  return referee::handed(result, dptr, result == CUDA_SUCCESS ? *pPitch * Height : 0, __func__);
}
EXPORT CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytesize, unsigned int flags) {
  return referee::handed(NEXT(cuMemAllocManaged)(dptr, bytesize, flags), dptr, bytesize, __func__);
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr dptr) {
  return referee::freed(dptr, __func__, referee::tails(), false, [&] { return NEXT(cuMemFree_v2)(dptr); });
}

#define ON_A_STREAM(suffix, per_thread)                                                                      \
  EXPORT CUresult cuMemAllocAsync##suffix(CUdeviceptr* dptr, size_t bytesize, CUstream hStream) {            \
    return referee::handed(NEXT(cuMemAllocAsync##suffix)(dptr, bytesize, hStream), dptr, bytesize, __func__, \
                           hStream, per_thread);                                                             \
  }                                                                                                          \
  EXPORT CUresult cuMemAllocFromPoolAsync##suffix(CUdeviceptr* dptr, size_t bytesize, CUmemoryPool pool,     \
                                                  CUstream hStream) {                                        \
    return referee::handed(NEXT(cuMemAllocFromPoolAsync##suffix)(dptr, bytesize, pool, hStream), dptr,       \
                           bytesize, __func__, hStream, per_thread);                                         \
  }                                                                                                          \
  EXPORT CUresult cuMemFreeAsync##suffix(CUdeviceptr dptr, CUstream hStream) {                               \
    return referee::freed_on(dptr, hStream, per_thread, __func__,                                            \
                             [&] { return NEXT(cuMemFreeAsync##suffix)(dptr, hStream); });                   \
  }
ON_A_STREAM(, false)
ON_A_STREAM(_ptsz, true)

EXPORT CUresult cuCtxDestroy_v2(CUcontext ctx) {
  return referee::ended(referee::id_of(ctx), __func__, [&] { return NEXT(cuCtxDestroy_v2)(ctx); });
}
EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice dev) {
  return referee::ended(referee::primary_context(dev), __func__,
                        [&] { return NEXT(cuDevicePrimaryCtxReset_v2)(dev); });
}
// Only the last release ends the context; the others must not look as if they had.
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice dev) {
  const std::uint64_t context = referee::primary_context(dev);
  CUresult result = CUDA_SUCCESS;
  referee::ended(context, __func__, [&] {
    result = NEXT(cuDevicePrimaryCtxRelease_v2)(dev);
    return result == CUDA_SUCCESS && referee::primary_context(dev) == context ? CUDA_ERROR_NOT_READY : result;
  });
  return result;
}
