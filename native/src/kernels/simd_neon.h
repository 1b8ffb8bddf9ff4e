// The vector vocabulary of the kernels, on NEON with the dot-product extension.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#define HK static inline __attribute__((always_inline))

namespace {

constexpr int W = 4;
using vf = float32x4_t;
using vi = int32x4_t;
using vm = uint32x4_t;
using bytes = uint8x16_t;

HK vf load(const float* p) { return vld1q_f32(p); }
HK vf load_n(const float* p, int n) {
  float padded[W] = {};
  std::memcpy(padded, p, static_cast<size_t>(n) * 4);
  return vld1q_f32(padded);
}
HK void store(float* p, vf v) { vst1q_f32(p, v); }
HK void store_n(float* p, vf v, int n) {
  float padded[W];
  vst1q_f32(padded, v);
  std::memcpy(p, padded, static_cast<size_t>(n) * 4);
}
HK vf set(float x) { return vdupq_n_f32(x); }
HK vf zero() { return vdupq_n_f32(0.0f); }
HK vf add(vf a, vf b) { return vaddq_f32(a, b); }
HK vf sub(vf a, vf b) { return vsubq_f32(a, b); }
HK vf mul(vf a, vf b) { return vmulq_f32(a, b); }
HK vf div(vf a, vf b) { return vdivq_f32(a, b); }
HK vf fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
HK vf select(vm m, vf yes, vf no) { return vbslq_f32(m, yes, no); }
HK vm less(vf a, vf b) { return vcltq_f32(a, b); }
HK vf vmin(vf a, vf b) { return select(less(a, b), a, b); }
HK vf vmax(vf a, vf b) { return select(less(b, a), a, b); }
HK vf vabs(vf a) { return vabsq_f32(a); }
HK bool any(vm m) { return vmaxvq_u32(m) != 0; }
HK float sum(vf a) {  // in halves, as everywhere
  const float32x2_t half = vadd_f32(vget_low_f32(a), vget_high_f32(a));
  return vget_lane_f32(half, 0) + vget_lane_f32(half, 1);
}
HK float largest(vf a) { return vmaxvq_f32(a); }
HK vf nearest(vf a) { return vrndnq_f32(a); }

HK vi to_int(vf a) { return vcvtnq_s32_f32(a); }
HK vf to_float(vi a) { return vcvtq_f32_s32(a); }
HK vi iset(int32_t x) { return vdupq_n_s32(x); }
HK vi iadd(vi a, vi b) { return vaddq_s32(a, b); }
HK vi isub(vi a, vi b) { return vsubq_s32(a, b); }
template <int N>
HK vi shift_left(vi a) {
  return vshlq_n_s32(a, N);
}
HK vi load_words(const uint8_t* p) { return vreinterpretq_s32_u8(vld1q_u8(p)); }
template <int N>
HK vi shift_right(vi a) {
  if constexpr (N == 0) return a;
  else return vreinterpretq_s32_u32(vshrq_n_u32(vreinterpretq_u32_s32(a), N));
}
HK vi keep_bits(vi a, int32_t mask) { return vandq_s32(a, vdupq_n_s32(mask)); }
HK vf as_float(vi a) { return vreinterpretq_f32_s32(a); }
HK vi as_int(vf a) { return vreinterpretq_s32_f32(a); }
HK void store_s8(int8_t* p, vi a) {
  const int8x8_t narrow = vmovn_s16(vcombine_s16(vmovn_s32(a), vdup_n_s16(0)));
  std::memcpy(p, &narrow, W);
}

HK vf load_f16(const uint16_t* p) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)));
}
HK void store_f16(uint16_t* p, vf v) { vst1_u16(p, vreinterpret_u16_f16(vcvt_f16_f32(v))); }
HK vf load_bf16(const uint16_t* p) {
  return vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16));
}

HK void transpose(vf (&r)[W]) {
  const float32x4x2_t a = vtrnq_f32(r[0], r[1]), b = vtrnq_f32(r[2], r[3]);
  r[0] = vcombine_f32(vget_low_f32(a.val[0]), vget_low_f32(b.val[0]));
  r[1] = vcombine_f32(vget_low_f32(a.val[1]), vget_low_f32(b.val[1]));
  r[2] = vcombine_f32(vget_high_f32(a.val[0]), vget_high_f32(b.val[0]));
  r[3] = vcombine_f32(vget_high_f32(a.val[1]), vget_high_f32(b.val[1]));
}

// ---- bytes: four columns for each of W output rows ------------------------------------------
HK bytes load_bytes(const uint8_t* p) { return vld1q_u8(p); }
HK void store_bytes(uint8_t* p, bytes b) { vst1q_u8(p, b); }
HK bytes low_nibbles(bytes b) { return vandq_u8(b, vdupq_n_u8(15)); }
HK bytes high_nibbles(bytes b) { return vshrq_n_u8(b, 4); }
HK bytes broadcast4(const int8_t* p) {
  return vreinterpretq_u8_s32(vld1q_dup_s32(reinterpret_cast<const int32_t*>(p)));
}

// The signed product takes bytes above 127 as negative; flipping the top bit of `value + 128`
// gives the value itself, so the kernels subtract no correction here.
constexpr bool kWideBytes = true;
#define HELIOS_SIGNED_BYTES 1
using sums = int32x4_t;
HK sums no_sums() { return vdupq_n_s32(0); }
HK sums accumulate(sums s, bytes weights, bytes activations) {
  return vdotq_s32(s, vreinterpretq_s8_u8(weights), vreinterpretq_s8_u8(activations));
}
HK bytes centred(bytes b) { return veorq_u8(b, vdupq_n_u8(0x80)); }
HK vi finish(sums s) { return s; }

constexpr int kBlocks = 1;  // taken at once by matrix products
constexpr int kTokenTile = 4;
constexpr int kFloatTile = 4;
constexpr bool kHardwareFma = true;

}  // namespace
