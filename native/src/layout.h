// How matrices lie in memory for the kernels.
//
// Every layout interleaves sixteen output rows into a block, so that one vector lane belongs to one
// output row and no kernel ever sums across lanes. A block is one stream, read from end to end:
//   integer layouts  a record per group of 32 columns: scales [32/G][16], minimums [32/G][16] if
//                    any, then data
//   W4 data          [4][16][4] bytes; the low nibble of byte (j, r, i) is column 4j + i of the
//                    group, the high nibble column 16 + 4j + i
//   W8 data          [8][16][4] bytes, column 4j + i, stored as value + 128
//   float layouts    [K][16] elements
// A weight is scale * q + minimum (W4, q in 0..15) or scale * q + minimum (W8, q in -128..127).
#pragma once

#include <string_view>

#include "common.h"

namespace helios {

inline constexpr int kBlockRows = 16;
inline constexpr int kGroup = 32;

enum class Layout : int { W4G32, W4G32F, W8G32, W8G32M, W8G16, W8G16M, F16, BF16, F32, FLAT };

struct LayoutSpec {
  std::string_view name;
  Layout layout;
  int bits;            // 4, 8, 16 or 32
  int group;           // columns that share a scale; 0 for float layouts
  bool minimum;        // whether groups have a minimum
  bool half_scales;    // scales and minimums are 16-bit floats, else 32-bit
};

const LayoutSpec& layout_spec(Layout layout);
const LayoutSpec& layout_named(std::string_view name);

// A matrix [rows, columns] in one of the layouts. FLAT means plain float32 in row order.
struct Matrix {
  const uint8_t* base = nullptr;
  Layout layout = Layout::FLAT;
  int64_t rows = 0;
  int64_t columns = 0;

  int64_t blocks() const { return ceil_div(rows, kBlockRows); }
};

// Bytes of a record's scales, of its scales and minimums, and of the record.
constexpr int64_t scale_bytes(const LayoutSpec& spec) {
  return spec.group == 0 ? 0 : kGroup / spec.group * kBlockRows * (spec.half_scales ? 2 : 4);
}
constexpr int64_t header_bytes(const LayoutSpec& spec) {
  return scale_bytes(spec) * (spec.minimum ? 2 : 1);
}
constexpr int64_t record_bytes(const LayoutSpec& spec) {
  return header_bytes(spec) + kGroup * kBlockRows * spec.bits / 8;
}
int64_t block_bytes(const LayoutSpec& spec, int64_t columns);
int64_t packed_bytes(const LayoutSpec& spec, int64_t rows, int64_t columns);

// Writes row `row` of the matrix as float32 into out[columns].
void unpack_row(const Matrix& matrix, int64_t row, float* out);

}  // namespace helios
