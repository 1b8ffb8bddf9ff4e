// The vector vocabulary of the kernels in portable C++: four lanes of the compiler's own vectors.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "half.h"

#define HK static inline __attribute__((always_inline))

namespace {

constexpr int W = 4;
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint8_t bytes __attribute__((vector_size(16)));
using vm = vi;

HK vf load(const float* p) {
  vf v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
HK vf load_n(const float* p, int n) {
  vf v = {};
  std::memcpy(&v, p, static_cast<size_t>(n) * 4);
  return v;
}
HK void store(float* p, vf v) { std::memcpy(p, &v, sizeof v); }
HK void store_n(float* p, vf v, int n) { std::memcpy(p, &v, static_cast<size_t>(n) * 4); }
HK vf set(float x) { return vf{x, x, x, x}; }
HK vf zero() { return vf{}; }
HK vf add(vf a, vf b) { return a + b; }
HK vf sub(vf a, vf b) { return a - b; }
HK vf mul(vf a, vf b) { return a * b; }
HK vf div(vf a, vf b) { return a / b; }
HK vf fma(vf a, vf b, vf c) { return a * b + c; }  // rounds twice: contraction is off
HK vf select(vm m, vf yes, vf no) { return (vf)((m & (vi)yes) | (~m & (vi)no)); }
HK vf vmin(vf a, vf b) { return select(a < b, a, b); }
HK vf vmax(vf a, vf b) { return select(a > b, a, b); }
HK vf vabs(vf a) { return (vf)((vi)a & 0x7fffffff); }
HK vm less(vf a, vf b) { return a < b; }
HK bool any(vm m) { return (m[0] | m[1] | m[2] | m[3]) != 0; }
HK float sum(vf a) { return (a[0] + a[2]) + (a[1] + a[3]); }
HK float largest(vf a) {
  const float x = a[0] > a[1] ? a[0] : a[1];
  const float y = a[2] > a[3] ? a[2] : a[3];
  return x > y ? x : y;
}
HK vf nearest(vf a) {
  // Adding and taking away 1.5 * 2^23 rounds to nearest even; larger magnitudes are integers.
  const vf magic = set(12582912.0f);
  const vf rounded = (a + magic) - magic;
  return select(less(vabs(a), set(4194304.0f)), rounded, a);
}

HK vf to_float(vi a) { return __builtin_convertvector(a, vf); }
HK vi to_int(vf a) {
  const vf limited = vmax(vmin(nearest(a), set(2147483520.0f)), set(-2147483648.0f));
  return __builtin_convertvector(limited, vi);
}
HK vi iset(int32_t x) { return vi{x, x, x, x}; }
HK vi iadd(vi a, vi b) { return a + b; }
HK vi isub(vi a, vi b) { return a - b; }
template <int N>
HK vi shift_left(vi a) {
  return a << N;
}
HK vi load_words(const uint8_t* p) {
  vi v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
template <int N>
HK vi shift_right(vi a) {
  typedef uint32_t words __attribute__((vector_size(16)));
  return (vi)((words)a >> N);
}
HK vi keep_bits(vi a, int32_t mask) { return a & mask; }
HK vf as_float(vi a) { return (vf)a; }
HK vi as_int(vf a) { return (vi)a; }
HK void store_s8(int8_t* p, vi a) {
  for (int i = 0; i < W; ++i) p[i] = static_cast<int8_t>(a[i]);
}

HK vf load_f16(const uint16_t* p) {
  return vf{helios::f16_to_f32(p[0]), helios::f16_to_f32(p[1]), helios::f16_to_f32(p[2]),
            helios::f16_to_f32(p[3])};
}
HK void store_f16(uint16_t* p, vf v) {
  for (int i = 0; i < W; ++i) p[i] = helios::f32_to_f16(v[i]);
}
HK vf load_bf16(const uint16_t* p) {
  const vi wide = {p[0], p[1], p[2], p[3]};
  return (vf)(wide << 16);
}

HK void transpose(vf (&r)[W]) {
  vf t[W];
  for (int i = 0; i < W; ++i) t[i] = vf{r[0][i], r[1][i], r[2][i], r[3][i]};
  for (int i = 0; i < W; ++i) r[i] = t[i];
}

// ---- bytes: four columns for each of W output rows ------------------------------------------
HK bytes load_bytes(const uint8_t* p) {
  bytes b;
  std::memcpy(&b, p, sizeof b);
  return b;
}
HK void store_bytes(uint8_t* p, bytes b) { std::memcpy(p, &b, sizeof b); }
HK bytes low_nibbles(bytes b) { return b & 15; }
HK bytes high_nibbles(bytes b) { return b >> 4; }
HK bytes broadcast4(const int8_t* p) {
  bytes b;
  for (int i = 0; i < 4; ++i) std::memcpy(reinterpret_cast<char*>(&b) + 4 * i, p, 4);
  return b;
}

constexpr bool kWideBytes = true;
using sums = vi;
HK sums no_sums() { return vi{}; }
HK sums accumulate(sums s, bytes weights, bytes activations) {
  // Even and odd bytes of every row, widened in place to sixteen bits.
  typedef int16_t words __attribute__((vector_size(16)));
  typedef uint16_t uwords __attribute__((vector_size(16)));
  const words w0 = (words)((uwords)weights & 255), w1 = (words)((uwords)weights >> 8);
  const words a0 = (words)((uwords)activations << 8) >> 8, a1 = (words)activations >> 8;
  const words p0 = w0 * a0, p1 = w1 * a1;  // |p| <= 255 * 127 < 2^15
  const vi low = (((vi)p0 << 16) >> 16) + (((vi)p1 << 16) >> 16);
  return s + low + ((vi)p0 >> 16) + ((vi)p1 >> 16);
}
HK vi finish(sums s) { return s; }

constexpr int kBlocks = 1;  // taken at once by matrix products
constexpr int kTokenTile = 4;
constexpr int kFloatTile = 4;
constexpr bool kHardwareFma = false;

}  // namespace
