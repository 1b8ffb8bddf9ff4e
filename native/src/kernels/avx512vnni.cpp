#include "kernels/simd_avx512.h"

#define HELIOS_KERNELS avx512vnni
#include "kernels/body.inl"
