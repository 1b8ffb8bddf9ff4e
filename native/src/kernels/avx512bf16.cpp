#include "kernels/simd_avx512.h"

#define HELIOS_KERNELS avx512bf16
#include "kernels/body.inl"
