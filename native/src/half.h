// Scalar conversions between 16-bit and 32-bit floats. Kernel files include this, so it must emit
// no shared inline function: hence the builtin in place of std::bit_cast.
#pragma once

#include <cstdint>

namespace helios {

static inline float f16_to_f32(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t rest = half & 0x7fffu;
  if (rest >= 0x7c00u) return __builtin_bit_cast(float, sign | 0x7f800000u | ((rest & 0x3ffu) << 13));
  // Scaling by 2^112 rebiases the exponent and normalises subnormals, exactly.
  const float magnitude = __builtin_bit_cast(float, rest << 13) * 0x1p112f;
  return __builtin_bit_cast(float, sign | __builtin_bit_cast(uint32_t, magnitude));
}

static inline uint16_t f32_to_f16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t rest = bits & 0x7fffffffu;
  if (rest > 0x7f800000u) return sign | 0x7e00u;
  if (rest >= 0x477ff000u) return sign | 0x7c00u;  // rounds to infinity
  if (rest < 0x38800000u) {                        // subnormal: let the adder round to 2^-24
    const float rounded = __builtin_bit_cast(float, rest) + 0.5f;
    return static_cast<uint16_t>(sign | (__builtin_bit_cast(uint32_t, rounded) - 0x3f000000u));
  }
  const uint32_t even = rest + 0xfffu + ((rest >> 13) & 1u);
  return static_cast<uint16_t>(sign | ((even - 0x38000000u) >> 13));
}

static inline float bf16_to_f32(uint16_t half) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(half) << 16);
}

static inline uint16_t f32_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace helios
