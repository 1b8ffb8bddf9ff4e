#include "kernels/simd_avx2.h"

#define HELIOS_KERNELS avxvnni
#include "kernels/body.inl"
