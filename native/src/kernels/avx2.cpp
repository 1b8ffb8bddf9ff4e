#include "kernels/simd_avx2.h"

#define HELIOS_KERNELS avx2
#include "kernels/body.inl"
