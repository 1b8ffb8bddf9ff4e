// Activations quantised for the integer layouts.
//
// Tokens lie in tiles of sixteen; a tile holds one record per group of 32 columns:
//   float  scale[16]        value = scale * q
//   float  sums[3][16]      scale * sum of q over the first 16, the last 16 and all 32 columns
//   int32  offset[P][3][16] -128 * sum of the plane's bytes over the same columns
//   int8   q[P][16][32]     planes: one for 8 bits, two for 16 (q = 255 * q[0] + q[1])
// Every byte lies in -127..127, in both planes; 255 is odd, so that both halves are symmetric.
// Kernels that multiply words (HELIOS_WORDS) keep int16 q[16][32] in the place of two planes, and
// the sums of q in the first offsets.
#pragma once

#include "common.h"

namespace helios {

inline constexpr int kQuantTile = 16;

struct Quant {
  uint8_t* base = nullptr;
  int64_t groups = 0;
  int planes = 1;

  static constexpr int64_t record_bytes(int planes) { return kQuantTile * (16 + 44 * planes); }
  static int64_t bytes(int64_t tokens, int64_t columns, int planes) {
    return capped_product(ceil_div(tokens, kQuantTile) * record_bytes(planes), columns / 32);
  }
  int64_t record() const { return record_bytes(planes); }
  uint8_t* at(int64_t token, int64_t group) const {
    return base + (token / kQuantTile * groups + group) * record();
  }
};

// Where things lie in a record, in bytes.
inline constexpr int64_t kScaleAt = 0;
inline constexpr int64_t kSumsAt = 64;
inline constexpr int64_t kOffsetAt = 256;
constexpr int64_t bytes_at(int planes) { return kOffsetAt + 192 * planes; }

}  // namespace helios
