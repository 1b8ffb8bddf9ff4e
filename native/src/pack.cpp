#include "pack.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "gguf.h"
#include "half.h"

namespace helios {
namespace {

// Whether every group of a storage can be written in a layout without changing a value.
bool holds(const LayoutSpec& to, const StoredFormat& from) {
  if (to.layout == Layout::FLAT || to.layout == from.layout) return true;
  if (from.decode == nullptr) return to.layout == Layout::F32;
  const LayoutSpec& natural = layout_spec(from.layout);
  return to.group != 0 && to.group <= natural.group && to.bits >= natural.bits &&
         (to.minimum || !natural.minimum) && (!to.half_scales || natural.half_scales) &&
         natural.bits != 4;
}

class Packer final : public Job {
 public:
  Packer(const StoredFormat& from, const LayoutSpec& to, int64_t rows, int64_t columns,
         const uint8_t* source, uint8_t* destination)
      : from_(from),
        to_(to),
        rows_(rows),
        columns_(columns),
        row_bytes_(columns / from.block * from.nbytes),
        source_(source),
        destination_(destination) {}

  uint32_t advance(int) override {
    if (started_) return 0;
    started_ = true;
    per_chunk_ = std::max<int64_t>(1, (256 << 10) / (row_bytes_ * kBlockRows));
    per_chunk_ = std::max(per_chunk_, ceil_div(blocks(), 1 << 18));
    return static_cast<uint32_t>(ceil_div(blocks(), per_chunk_));
  }

  void chunk(uint32_t index, int) override {
    const int64_t last = std::min(blocks(), (index + 1) * per_chunk_);
    for (int64_t block = index * per_chunk_; block < last; ++block) pack_block(block);
  }

  bool overflowed() const { return overflowed_.load(); }

 private:
  int64_t blocks() const { return ceil_div(rows_, kBlockRows); }

  void pack_block(int64_t block) {
    const int64_t first = block * kBlockRows;
    const int64_t here = std::min<int64_t>(kBlockRows, rows_ - first);
    const uint8_t* rows = source_ + first * row_bytes_;
    if (to_.layout == Layout::FLAT) return flatten(first, here);
    uint8_t* out = destination_ + block * block_bytes(to_, columns_);
    if (here < kBlockRows) std::memset(out, 0, static_cast<size_t>(block_bytes(to_, columns_)));
    if (to_.group == 0) return interleave(rows, here, out);
    if (from_.name == "Q4_1" || from_.name == "Q4_0") return move_nibbles(rows, here, out);
    StoredGroup group;
    for (int64_t g = 0; g < columns_ / kGroup; ++g, out += record_bytes(to_))
      for (int64_t r = 0; r < here; ++r) {
        from_.decode(rows + r * row_bytes_, g, group);
        put_scales(out, r, group);
        uint8_t* data = out + header_bytes(to_) + r * 4;
        if (to_.bits == 4)
          put_nibbles(data, group);
        else
          put_bytes(data, group);
      }
  }

  // Q4_0 and Q4_1 pair the same columns in a byte as W4G32 does: whole words move.
  void move_nibbles(const uint8_t* rows, int64_t here, uint8_t* out) {
    const bool stored_minimum = from_.name == "Q4_1";
    for (int64_t g = 0; g < columns_ / kGroup; ++g, out += record_bytes(to_))
      for (int64_t r = 0; r < here; ++r) {
        const uint8_t* b = rows + r * row_bytes_ + g * from_.nbytes;
        const uint8_t* q = b + (stored_minimum ? 4 : 2);
        uint8_t* data = out + header_bytes(to_) + r * 4;
        for (int j = 0; j < 4; ++j) std::memcpy(data + j * 64, q + j * 4, 4);
        uint16_t scale, minimum;
        std::memcpy(&scale, b, 2);
        if (stored_minimum)
          std::memcpy(&minimum, b + 2, 2);
        else
          minimum = narrow(-8.0f * f16_to_f32(scale));
        std::memcpy(out + r * 2, &scale, 2);
        std::memcpy(out + scale_bytes(to_) + r * 2, &minimum, 2);
      }
  }

  uint16_t narrow(float value) {
    const uint16_t half = f32_to_f16(value);
    if (f16_to_f32(half) != value) overflowed_.store(true, std::memory_order_relaxed);
    return half;
  }

  void put_scales(uint8_t* record, int64_t r, const StoredGroup& group) {
    for (int64_t h = 0; h < kGroup / to_.group; ++h) {
      put(record, h * kBlockRows + r, group.scale[h]);
      if (to_.minimum) put(record + scale_bytes(to_), h * kBlockRows + r, group.minimum[h]);
    }
  }

  void put(uint8_t* table, int64_t index, float value) {
    if (to_.half_scales) {
      const uint16_t half = narrow(value);
      std::memcpy(table + index * 2, &half, 2);
    } else {
      std::memcpy(table + index * 4, &value, 4);
    }
  }

  static void put_nibbles(uint8_t* data, const StoredGroup& group) {
    for (int j = 0; j < 4; ++j)
      for (int i = 0; i < 4; ++i)
        data[j * 64 + i] =
            static_cast<uint8_t>(group.q[4 * j + i] | group.q[16 + 4 * j + i] << 4);
  }

  static void put_bytes(uint8_t* data, const StoredGroup& group) {
    for (int j = 0; j < 8; ++j)
      for (int i = 0; i < 4; ++i)
        data[j * 64 + i] = static_cast<uint8_t>(group.q[4 * j + i] + 128);
  }

  void interleave(const uint8_t* rows, int64_t here, uint8_t* out) const {
    const int64_t to = to_.bits / 8;
    for (int64_t k = 0; k < columns_; ++k)
      for (int64_t r = 0; r < here; ++r) {
        const uint8_t* element = rows + r * row_bytes_ + k * from_.nbytes;
        uint8_t* place = out + (k * kBlockRows + r) * to;
        if (to == from_.nbytes) {
          std::memcpy(place, element, static_cast<size_t>(to));
        } else {
          const float value = float_at(element);
          std::memcpy(place, &value, 4);
        }
      }
  }

  float float_at(const uint8_t* element) const {
    if (from_.nbytes == 4) {
      float value;
      std::memcpy(&value, element, 4);
      return value;
    }
    uint16_t half;
    std::memcpy(&half, element, 2);
    return from_.layout == Layout::F16 ? f16_to_f32(half) : bf16_to_f32(half);
  }

  void flatten(int64_t first, int64_t here) const {
    float* out = reinterpret_cast<float*>(destination_) + first * columns_;
    for (int64_t r = 0; r < here; ++r, out += columns_) {
      const uint8_t* row = source_ + (first + r) * row_bytes_;
      if (from_.decode == nullptr) {
        for (int64_t k = 0; k < columns_; ++k) out[k] = float_at(row + k * from_.nbytes);
        continue;
      }
      StoredGroup group;
      for (int64_t k = 0; k < columns_; ++k) {
        if (k % kGroup == 0) from_.decode(row, k / kGroup, group);
        const int64_t half = k % kGroup / 16;
        out[k] = group.scale[half] * static_cast<float>(group.q[k % kGroup]) + group.minimum[half];
      }
    }
  }

  const StoredFormat& from_;
  const LayoutSpec& to_;
  int64_t rows_, columns_, row_bytes_;
  const uint8_t* source_;
  uint8_t* destination_;
  int64_t per_chunk_ = 1;
  bool started_ = false;
  std::atomic<bool> overflowed_{false};
};

}  // namespace

int64_t stored_row_bytes(std::string_view storage, int64_t columns) {
  const StoredFormat& format = stored_format(storage);
  if (columns < 1 || columns > kMost || columns % format.block != 0)
    throw Error("columns: " + std::string(storage) + " needs a multiple of " +
                std::to_string(format.block) + " columns, got " + std::to_string(columns));
  return columns / format.block * format.nbytes;
}

Layout natural_layout(std::string_view storage) { return stored_format(storage).layout; }

void pack(std::string_view storage, Layout layout, int64_t rows, int64_t columns,
          const uint8_t* source, uint8_t* destination, Pool& pool) {
  const StoredFormat& from = stored_format(storage);
  const LayoutSpec& to = layout_spec(layout);
  stored_row_bytes(storage, columns);
  if (!holds(to, from))
    throw Error("layout: " + std::string(to.name) + " does not hold " + std::string(from.name) +
                " exactly");
  Packer packer(from, to, rows, columns, source, destination);
  pool.run(packer);
  if (packer.overflowed())
    throw Error("layout: a scale of this tensor does not fit 16 bits; store it as F32");
}

}  // namespace helios
