#include "kernels/simd_avx512.h"

#define HELIOS_KERNELS avx512
#include "kernels/body.inl"
