#include "layout.h"

#include <cstring>
#include <string>

#include "half.h"

namespace helios {
namespace {

constexpr LayoutSpec kLayouts[] = {
    {"W4G32", Layout::W4G32, 4, 32, true, true},
    {"W4G32F", Layout::W4G32F, 4, 32, true, false},
    {"W8G32", Layout::W8G32, 8, 32, false, true},
    {"W8G32M", Layout::W8G32M, 8, 32, true, false},
    {"W8G16", Layout::W8G16, 8, 16, false, false},
    {"W8G16M", Layout::W8G16M, 8, 16, true, false},
    {"F16", Layout::F16, 16, 0, false, false},
    {"BF16", Layout::BF16, 16, 0, false, false},
    {"F32", Layout::F32, 32, 0, false, false},
    {"FLAT", Layout::FLAT, 32, 0, false, false},
};

float scale_at(const LayoutSpec& spec, const uint8_t* table, int64_t index) {
  if (spec.half_scales) {
    uint16_t half;
    std::memcpy(&half, table + index * 2, 2);
    return f16_to_f32(half);
  }
  float value;
  std::memcpy(&value, table + index * 4, 4);
  return value;
}

void unpack_integer_row(const LayoutSpec& spec, const uint8_t* block, int lane, int64_t columns,
                        float* out) {
  for (int64_t k = 0; k < columns; ++k) {
    const uint8_t* record = block + k / kGroup * record_bytes(spec);
    const uint8_t* data = record + header_bytes(spec);
    const int64_t in_group = k % kGroup;
    const int64_t index = in_group / spec.group * kBlockRows + lane;
    int q;
    if (spec.bits == 4) {
      const uint8_t byte = data[in_group % 16 / 4 * 64 + lane * 4 + in_group % 4];
      q = in_group < 16 ? byte & 15 : byte >> 4;
    } else {
      q = data[in_group / 4 * 64 + lane * 4 + in_group % 4] - 128;
    }
    const float product = scale_at(spec, record, index) * static_cast<float>(q);
    out[k] = spec.minimum ? product + scale_at(spec, record + scale_bytes(spec), index) : product;
  }
}

}  // namespace

const LayoutSpec& layout_spec(Layout layout) { return kLayouts[static_cast<int>(layout)]; }

const LayoutSpec& layout_named(std::string_view name) {
  for (const LayoutSpec& spec : kLayouts)
    if (spec.name == name) return spec;
  throw Error("layout: unknown layout '" + std::string(name) + "'");
}

int64_t block_bytes(const LayoutSpec& spec, int64_t columns) {
  if (spec.group != 0) return columns / kGroup * record_bytes(spec);
  return columns * kBlockRows * spec.bits / 8;
}

int64_t packed_bytes(const LayoutSpec& spec, int64_t rows, int64_t columns) {
  if (rows < 0 || columns < 1 || columns > kMost || rows > kMost / columns)
    throw Error("rows: there is no matrix of " + std::to_string(rows) + " rows and " +
                std::to_string(columns) + " columns");
  if (spec.group != 0 && columns % kGroup != 0)
    throw Error("columns: " + std::string(spec.name) + " needs a multiple of 32 columns, got " +
                std::to_string(columns));
  if (spec.layout == Layout::FLAT) return rows * columns * 4;
  return ceil_div(rows, kBlockRows) * block_bytes(spec, columns);
}

void unpack_row(const Matrix& matrix, int64_t row, float* out) {
  const LayoutSpec& spec = layout_spec(matrix.layout);
  const int64_t columns = matrix.columns;
  if (matrix.layout == Layout::FLAT) {
    std::memcpy(out, matrix.base + row * columns * 4, static_cast<size_t>(columns) * 4);
    return;
  }
  const uint8_t* block = matrix.base + row / kBlockRows * block_bytes(spec, columns);
  const int lane = static_cast<int>(row % kBlockRows);
  if (spec.group != 0) return unpack_integer_row(spec, block, lane, columns, out);
  for (int64_t k = 0; k < columns; ++k) {
    const uint8_t* element = block + (k * kBlockRows + lane) * spec.bits / 8;
    uint16_t half;
    if (spec.bits == 32) {
      std::memcpy(out + k, element, 4);
    } else {
      std::memcpy(&half, element, 2);
      out[k] = matrix.layout == Layout::F16 ? f16_to_f32(half) : bf16_to_f32(half);
    }
  }
}

}  // namespace helios
