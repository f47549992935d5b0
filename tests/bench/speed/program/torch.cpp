// PyTorch's own allocator, by the C interface of libtorch_cuda that its compiled models call. Those add a
// branch and a jump to CUDACachingAllocator::raw_alloc and raw_delete, which are inline there.
#include "mix.hpp"
#include "scenes.hpp"

namespace speed {
namespace {

// aoti_torch_empty_strided: dimensions, sizes, strides, type, kind of device, ordinal, the tensor.
using NewTensor = int(std::int64_t, const std::int64_t*, const std::int64_t*, std::int32_t, std::int32_t,
                      std::int32_t, void**);

struct Torch {
  int (*allocate)(std::uint64_t, void**) = nullptr;
  int (*free)(void*) = nullptr;

  // The library's folder is on LD_LIBRARY_PATH, or it cannot be opened.
  Torch() {
    void* library = dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::_Exit(2);
    }
    allocate =
        reinterpret_cast<decltype(allocate)>(dlsym(library, "aoti_torch_cuda_caching_allocator_raw_alloc"));
    free = reinterpret_cast<decltype(free)>(dlsym(library, "aoti_torch_cuda_caching_allocator_raw_delete"));
    const auto empty = reinterpret_cast<NewTensor*>(dlsym(RTLD_DEFAULT, "aoti_torch_empty_strided"));
    if (allocate == nullptr || free == nullptr || empty == nullptr)
      give_up("libtorch_cuda has no raw_alloc", 0);
    // Its first tensor starts PyTorch's CUDA, and stays, as a program's weights do.
    constexpr int kFloat = 6;
    constexpr int kCuda = 1;
    const std::int64_t size = 8 * kMiB;
    const std::int64_t stride = 1;
    void* weights = nullptr;
    if (empty(1, &size, &stride, kFloat, kCuda, 0, &weights) != 0) give_up("the first tensor", 1);
  }

  void* get(std::size_t bytes) const {
    void* block = nullptr;
    if (allocate(bytes, &block) != 0) give_up("raw_alloc", 1);
    return block;
  }
  void give(void* block) const {
    if (free(block) != 0) give_up("raw_delete", 1);
  }
};

}  // namespace

void torch_pair() {
  const Torch torch;
  std::printf("{\"ns\": %.2f}\n", best_ns(1000, [&] { torch.give(torch.get(64 * kKiB)); }));
}

void torch_mix() {
  const Torch torch;
  Mix mix = usual_mix();
  const double ns =
      mix.operation_ns([&](std::size_t bytes) { return reinterpret_cast<CUdeviceptr>(torch.get(bytes)); },
                       [&](CUdeviceptr block) { torch.give(reinterpret_cast<void*>(block)); });
  std::printf("{\"ns\": %.2f}\n", ns);
}

}  // namespace speed
