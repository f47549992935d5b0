// cuda.h with every ABI version declared under its exported name: cuMemAlloc and cuMemAlloc_v2 are two
// functions here, as they are in the driver. Include this instead of cuda.h, everywhere.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>
