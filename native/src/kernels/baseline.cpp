#include "kernels/simd_baseline.h"

#define HELIOS_KERNELS baseline
#include "kernels/body.inl"
