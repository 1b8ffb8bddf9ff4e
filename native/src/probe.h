// Measured ceilings of the machine, for benchmarks.
#pragma once

#include "kernels.h"
#include "pool.h"

namespace helios {

// In operations or bytes per nanosecond, over all threads of a pool.
struct Ceilings {
  double integer_macs;
  double float_macs;
  double read_bytes;
};

Ceilings measure_ceilings(const Kernels& kernels, Pool& pool);

}  // namespace helios
