#include "gguf.h"

#include <bit>
#include <cstring>
#include <string>

#include "half.h"

namespace helios {
namespace {

float half_at(const uint8_t* p) {
  uint16_t bits;
  std::memcpy(&bits, p, 2);
  return f16_to_f32(bits);
}

void scales(StoredGroup& out, float scale, float minimum) {
  out.scale[0] = out.scale[1] = scale;
  out.minimum[0] = out.minimum[1] = minimum;
}

// Nibbles of a 32-value block: value i in the low half of byte i, value 16 + i in the high half.
void nibbles(const uint8_t* p, StoredGroup& out) {
  for (int i = 0; i < 16; ++i) {
    out.q[i] = static_cast<int8_t>(p[i] & 15);
    out.q[16 + i] = static_cast<int8_t>(p[i] >> 4);
  }
}

void fifth_bits(const uint8_t* p, StoredGroup& out) {
  uint32_t high;
  std::memcpy(&high, p, 4);
  for (int i = 0; i < 32; ++i) out.q[i] = static_cast<int8_t>(out.q[i] | (high >> i & 1u) << 4);
}

void q4_0(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group * 18;
  nibbles(b + 2, out);
  scales(out, half_at(b), -8.0f * half_at(b));
}

void q4_1(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group * 20;
  nibbles(b + 4, out);
  scales(out, half_at(b), half_at(b + 2));
}

void q5_0(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group * 22;
  nibbles(b + 6, out);
  fifth_bits(b + 2, out);
  for (int8_t& q : out.q) q = static_cast<int8_t>(q - 16);
  scales(out, half_at(b), 0.0f);
}

void q5_1(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group * 24;
  nibbles(b + 8, out);
  fifth_bits(b + 4, out);
  scales(out, half_at(b), half_at(b + 2));
}

void q8_0(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group * 34;
  std::memcpy(out.q, b + 2, 32);
  scales(out, half_at(b), 0.0f);
}

void iq4_nl(const uint8_t* row, int64_t group, StoredGroup& out) {
  static constexpr int8_t kLevels[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                         1,    13,   25,  38,  53,  69,  89,  113};
  const uint8_t* b = row + group * 18;
  nibbles(b + 2, out);
  for (int8_t& q : out.q) q = kLevels[q];
  scales(out, half_at(b), 0.0f);
}

void mxfp4(const uint8_t* row, int64_t group, StoredGroup& out) {
  // E2M1 values doubled, so that all are integers.
  static constexpr int8_t kLevels[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const uint8_t* b = row + group * 17;
  nibbles(b + 1, out);
  for (int8_t& q : out.q) q = kLevels[q];
  // 2^(e - 128); the two smallest exponents are subnormal.
  const uint32_t bits = b[0] < 2 ? 0x00200000u << b[0] : static_cast<uint32_t>(b[0] - 1) << 23;
  scales(out, std::bit_cast<float>(bits), 0.0f);
}

// Six-bit scale and minimum of group j of a super-block of eight.
void six_bits(const uint8_t* p, int64_t j, int* scale, int* minimum) {
  if (j < 4) {
    *scale = p[j] & 63;
    *minimum = p[j + 4] & 63;
  } else {
    *scale = (p[j + 4] & 15) | (p[j - 4] >> 6) << 4;
    *minimum = (p[j + 4] >> 4) | (p[j] >> 6) << 4;
  }
}

void k_scales(const uint8_t* b, int64_t j, StoredGroup& out) {
  int scale, minimum;
  six_bits(b + 4, j, &scale, &minimum);
  scales(out, half_at(b) * static_cast<float>(scale), -(half_at(b + 2) * static_cast<float>(minimum)));
}

void q4_k(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group / 8 * 144;
  const int64_t j = group % 8;
  const uint8_t* q = b + 16 + j / 2 * 32;
  for (int i = 0; i < 32; ++i) out.q[i] = static_cast<int8_t>(j % 2 == 0 ? q[i] & 15 : q[i] >> 4);
  k_scales(b, j, out);
}

void q5_k(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group / 8 * 176;
  const int64_t j = group % 8;
  const uint8_t* high = b + 16;
  const uint8_t* q = b + 48 + j / 2 * 32;
  for (int i = 0; i < 32; ++i)
    out.q[i] = static_cast<int8_t>((j % 2 == 0 ? q[i] & 15 : q[i] >> 4) | (high[i] >> j & 1) << 4);
  k_scales(b, j, out);
}

void q6_k(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group / 8 * 210;
  const int64_t half = group % 8 / 4, j = group % 4;
  const uint8_t* low = b + half * 64 + (j % 2) * 32;
  const uint8_t* high = b + 128 + half * 32;
  const int8_t* scale = reinterpret_cast<const int8_t*>(b + 192) + half * 8 + j * 2;
  const float d = half_at(b + 208);
  for (int i = 0; i < 32; ++i) {
    const int nibble = j < 2 ? low[i] & 15 : low[i] >> 4;
    out.q[i] = static_cast<int8_t>((nibble | (high[i] >> (2 * j) & 3) << 4) - 32);
  }
  for (int h = 0; h < 2; ++h) {
    out.scale[h] = d * static_cast<float>(scale[h]);
    out.minimum[h] = 0.0f;
  }
}

void q2_k(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group / 8 * 84;
  const int64_t half = group % 8 / 4, j = group % 4;
  const uint8_t* q = b + 16 + half * 32;
  for (int i = 0; i < 32; ++i) out.q[i] = static_cast<int8_t>(q[i] >> (2 * j) & 3);
  for (int h = 0; h < 2; ++h) {
    const uint8_t scale = b[half * 8 + j * 2 + h];
    out.scale[h] = half_at(b + 80) * static_cast<float>(scale & 15);
    out.minimum[h] = -(half_at(b + 82) * static_cast<float>(scale >> 4));
  }
}

void q3_k(const uint8_t* row, int64_t group, StoredGroup& out) {
  const uint8_t* b = row + group / 8 * 110;
  const int64_t half = group % 8 / 4, j = group % 4;
  const uint8_t* q = b + 32 + half * 32;
  const uint8_t* packed = b + 96;
  for (int i = 0; i < 32; ++i) {
    const int high = b[i] >> (half * 4 + j) & 1;
    out.q[i] = static_cast<int8_t>((q[i] >> (2 * j) & 3) - (high ? 0 : 4));
  }
  for (int h = 0; h < 2; ++h) {
    // Four low bits in the first eight bytes, two high bits in the last four.
    const int64_t s = half * 8 + j * 2 + h;
    const int low = s < 8 ? packed[s] & 15 : packed[s - 8] >> 4;
    const int high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
    out.scale[h] = half_at(b + 108) * static_cast<float>((low | high << 4) - 32);
    out.minimum[h] = 0.0f;
  }
}

constexpr StoredFormat kFormats[] = {
    {"F32", 1, 4, Layout::F32, nullptr},
    {"F16", 1, 2, Layout::F16, nullptr},
    {"BF16", 1, 2, Layout::BF16, nullptr},
    {"Q4_0", 32, 18, Layout::W4G32, q4_0},
    {"Q4_1", 32, 20, Layout::W4G32, q4_1},
    {"Q5_0", 32, 22, Layout::W8G32, q5_0},
    {"Q5_1", 32, 24, Layout::W8G32M, q5_1},
    {"Q8_0", 32, 34, Layout::W8G32, q8_0},
    {"Q2_K", 256, 84, Layout::W8G16M, q2_k},
    {"Q3_K", 256, 110, Layout::W8G16, q3_k},
    {"Q4_K", 256, 144, Layout::W4G32F, q4_k},
    {"Q5_K", 256, 176, Layout::W8G32M, q5_k},
    {"Q6_K", 256, 210, Layout::W8G16, q6_k},
    {"IQ4_NL", 32, 18, Layout::W8G32, iq4_nl},
    {"MXFP4", 32, 17, Layout::W8G32M, mxfp4},
};

}  // namespace

const StoredFormat& stored_format(std::string_view name) {
  for (const StoredFormat& format : kFormats)
    if (format.name == name) return format;
  throw Error("storage: unknown storage '" + std::string(name) + "'");
}

}  // namespace helios
