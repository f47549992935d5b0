// CUDA arrays and mipmapped arrays: they occupy device memory, and nothing reads or writes them here.
#include "array.hpp"

#include <algorithm>

#include "capture.hpp"
#include "entries.hpp"
#include "pool.hpp"
#include "state.hpp"

namespace sim {

// What one creation made: an array, or all levels of a mipmapped array.
struct Storage {
  Context* context = nullptr;
  int device = 0;
  std::uint64_t base = 0, bytes = 0;
};

struct Array {
  Storage storage;  // bytes 0: a level, whose mipmapped array owns the memory
  CUDA_ARRAY3D_DESCRIPTOR shape{};
};

struct Mipmap {
  Storage storage;
  std::vector<CUarray> levels;
};

namespace {

struct Arrays {
  Table<Array, CUarray> arrays;
  Table<Mipmap, CUmipmappedArray> mipmaps;
};

Arrays& all() {
  static Arrays* const instance = new Arrays;
  return *instance;
}

// Bytes of one channel; 0 for formats that are not simulated (planar and block-compressed ones).
std::size_t channel_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8: return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF: return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT: return 4;
    default: return 0;
  }
}

CUresult check(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  if (!channel_bytes(shape.Format)) return CUDA_ERROR_NOT_SUPPORTED;
  if (shape.NumChannels != 1 && shape.NumChannels != 2 && shape.NumChannels != 4)
    return CUDA_ERROR_INVALID_VALUE;
  if (!shape.Width || shape.Width > (1u << 17) || shape.Height > (1u << 17) || shape.Depth > (1u << 14))
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}

// A height or depth of 0 means that there is no such dimension (cuda.h, cuArray3DCreate).
std::uint64_t bytes_of(const CUDA_ARRAY3D_DESCRIPTOR& shape) {
  return static_cast<std::uint64_t>(shape.Width) * std::max<std::size_t>(shape.Height, 1) *
         std::max<std::size_t>(shape.Depth, 1) * channel_bytes(shape.Format) * shape.NumChannels;
}

CUresult take(std::uint64_t bytes, Storage* storage) {
  SIM_TRY(current_context(&storage->context));
  SIM_TRY(refuse_unsafe());
  storage->device = storage->context->device;
  storage->bytes = bytes;
  Device& device = *state().devices[static_cast<std::size_t>(storage->device)];
  storage->base = device.allocate(bytes);
  if (!storage->base && reclaim_pools(storage->device)) storage->base = device.allocate(bytes);
  return storage->base ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

void give_back(const Storage& storage) {
  if (storage.bytes)
    state().devices[static_cast<std::size_t>(storage.device)]->release(storage.base, storage.bytes);
}

void destroy(CUmipmappedArray handle) {
  const auto mipmap = all().mipmaps.remove(handle);
  for (const CUarray level : mipmap->levels) all().arrays.remove(level);
  give_back(mipmap->storage);
}

CUresult requirements(std::uint64_t bytes, CUdevice device, CUDA_ARRAY_MEMORY_REQUIREMENTS* out) {
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *out = {};
  out->size = bytes;
  out->alignment = 512;
  return CUDA_SUCCESS;
}

}  // namespace

void destroy_arrays(const Context* context) {
  std::vector<CUmipmappedArray> mipmaps;
  all().mipmaps.for_each([&](Mipmap& mipmap) {
    if (mipmap.storage.context == context) mipmaps.push_back(reinterpret_cast<CUmipmappedArray>(&mipmap));
  });
  for (const CUmipmappedArray mipmap : mipmaps) destroy(mipmap);
  all().arrays.remove_if([context](const Array& array) {
    if (array.storage.context != context) return false;
    give_back(array.storage);
    return true;
  });
}

CUresult SIM_ENTRY(cuArray3DCreate_v2)(CUarray* pHandle, const CUDA_ARRAY3D_DESCRIPTOR* pAllocateArray) {
  if (!pHandle || !pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  SIM_TRY(check(*pAllocateArray));
  auto array = std::make_unique<Array>();
  array->shape = *pAllocateArray;
  SIM_TRY(take(bytes_of(array->shape), &array->storage));
  *pHandle = all().arrays.add(std::move(array));
  return CUDA_SUCCESS;
}
CUresult SIM_ENTRY(cuArrayCreate_v2)(CUarray* pHandle, const CUDA_ARRAY_DESCRIPTOR* pAllocateArray) {
  if (!pAllocateArray) return CUDA_ERROR_INVALID_VALUE;
  const CUDA_ARRAY3D_DESCRIPTOR shape{pAllocateArray->Width,  pAllocateArray->Height,      0,
                                      pAllocateArray->Format, pAllocateArray->NumChannels, 0};
  return entry::cuArray3DCreate_v2(pHandle, &shape);
}

CUresult SIM_ENTRY(cuArray3DGetDescriptor_v2)(CUDA_ARRAY3D_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  if (!pArrayDescriptor) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Array* array = all().arrays.find(hArray);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  *pArrayDescriptor = array->shape;
  return CUDA_SUCCESS;
}
CUresult SIM_ENTRY(cuArrayGetDescriptor_v2)(CUDA_ARRAY_DESCRIPTOR* pArrayDescriptor, CUarray hArray) {
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  if (!pArrayDescriptor) return CUDA_ERROR_INVALID_VALUE;
  SIM_TRY(entry::cuArray3DGetDescriptor_v2(&shape, hArray));
  *pArrayDescriptor = {shape.Width, shape.Height, shape.Format, shape.NumChannels};
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuArrayGetMemoryRequirements)(CUDA_ARRAY_MEMORY_REQUIREMENTS* memoryRequirements,
                                                 CUarray array, CUdevice device) {
  if (!memoryRequirements) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Array* found = all().arrays.find(array);
  return found ? requirements(bytes_of(found->shape), device, memoryRequirements) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult SIM_ENTRY(cuArrayDestroy)(CUarray hArray) {
  const Lock lock;
  const Array* array = all().arrays.find(hArray);
  if (!array) return CUDA_ERROR_INVALID_HANDLE;
  if (!array->storage.bytes) return CUDA_ERROR_INVALID_HANDLE;  // a level ends with its mipmapped array
  give_back(all().arrays.remove(hArray)->storage);
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMipmappedArrayCreate)(CUmipmappedArray* pHandle,
                                           const CUDA_ARRAY3D_DESCRIPTOR* pMipmappedArrayDesc,
                                           unsigned int numMipmapLevels) {
  if (!pHandle || !pMipmappedArrayDesc) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  SIM_TRY(check(*pMipmappedArrayDesc));
  // cuda.h: at least one level, at most 1 + floor(log2(the largest extent)), by clamping.
  std::vector<std::unique_ptr<Array>> levels;
  std::uint64_t bytes = 0;
  CUDA_ARRAY3D_DESCRIPTOR shape = *pMipmappedArrayDesc;
  for (unsigned i = 0; i < std::max(numMipmapLevels, 1u); ++i) {
    levels.push_back(std::make_unique<Array>());
    levels.back()->shape = shape;
    bytes += bytes_of(shape);
    if (shape.Width <= 1 && shape.Height <= 1 && shape.Depth <= 1) break;
    for (std::size_t* extent : {&shape.Width, &shape.Height, &shape.Depth})
      *extent = *extent > 1 ? *extent / 2 : *extent;
  }
  auto mipmap = std::make_unique<Mipmap>();
  SIM_TRY(take(bytes, &mipmap->storage));
  for (auto& level : levels) mipmap->levels.push_back(all().arrays.add(std::move(level)));
  *pHandle = all().mipmaps.add(std::move(mipmap));
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMipmappedArrayGetLevel)(CUarray* pLevelArray, CUmipmappedArray hMipmappedArray,
                                             unsigned int level) {
  if (!pLevelArray) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock;
  const Mipmap* mipmap = all().mipmaps.find(hMipmappedArray);
  if (!mipmap) return CUDA_ERROR_INVALID_HANDLE;
  if (level >= mipmap->levels.size()) return CUDA_ERROR_INVALID_VALUE;
  *pLevelArray = mipmap->levels[level];
  return CUDA_SUCCESS;
}

CUresult SIM_ENTRY(cuMipmappedArrayDestroy)(CUmipmappedArray hMipmappedArray) {
  const Lock lock;
  if (!all().mipmaps.find(hMipmappedArray)) return CUDA_ERROR_INVALID_HANDLE;
  destroy(hMipmappedArray);
  return CUDA_SUCCESS;
}

}  // namespace sim
