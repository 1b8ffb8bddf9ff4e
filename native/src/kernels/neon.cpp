#include "kernels/simd_neon.h"

#define HELIOS_KERNELS neon
#include "kernels/body.inl"
