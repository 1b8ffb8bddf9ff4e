// The vector vocabulary of the kernels, on AVX-512 (with VNNI and BF16 if the file is compiled for
// them).
#pragma once

#include <immintrin.h>

#include <cstdint>

#define HK static inline __attribute__((always_inline))

namespace {

constexpr int W = 16;
using vf = __m512;
using vi = __m512i;
using vm = __mmask16;
using bytes = __m512i;

HK vm first(int n) { return static_cast<vm>((1u << n) - 1u); }

HK vf load(const float* p) { return _mm512_loadu_ps(p); }
HK vf load_n(const float* p, int n) { return _mm512_maskz_loadu_ps(first(n), p); }
HK void store(float* p, vf v) { _mm512_storeu_ps(p, v); }
HK void store_n(float* p, vf v, int n) { _mm512_mask_storeu_ps(p, first(n), v); }
HK vf set(float x) { return _mm512_set1_ps(x); }
HK vf zero() { return _mm512_setzero_ps(); }
HK vf add(vf a, vf b) { return _mm512_add_ps(a, b); }
HK vf sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
HK vf mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
HK vf div(vf a, vf b) { return _mm512_div_ps(a, b); }
HK vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
HK vf vmin(vf a, vf b) { return _mm512_min_ps(a, b); }
HK vf vmax(vf a, vf b) { return _mm512_max_ps(a, b); }
HK vf vabs(vf a) { return _mm512_abs_ps(a); }
HK vf nearest(vf a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
HK vm less(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
HK vf select(vm m, vf yes, vf no) { return _mm512_mask_blend_ps(m, no, yes); }
HK bool any(vm m) { return m != 0; }
HK float sum(vf a) { return _mm512_reduce_add_ps(a); }
HK float largest(vf a) { return _mm512_reduce_max_ps(a); }

HK vi to_int(vf a) { return _mm512_cvtps_epi32(a); }
HK vf to_float(vi a) { return _mm512_cvtepi32_ps(a); }
HK vi iset(int32_t x) { return _mm512_set1_epi32(x); }
HK vi iadd(vi a, vi b) { return _mm512_add_epi32(a, b); }
HK vi isub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
template <int N>
HK vi shift_left(vi a) {
  return _mm512_slli_epi32(a, N);
}
HK vi load_words(const uint8_t* p) { return _mm512_loadu_si512(p); }
template <int N>
HK vi shift_right(vi a) {
  return _mm512_srli_epi32(a, N);
}
HK vi keep_bits(vi a, int32_t mask) { return _mm512_and_si512(a, _mm512_set1_epi32(mask)); }
HK vf as_float(vi a) { return _mm512_castsi512_ps(a); }
HK vi as_int(vf a) { return _mm512_castps_si512(a); }
HK void store_s8(int8_t* p, vi a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
}

HK vf load_f16(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
HK void store_f16(uint16_t* p, vf v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
HK vf load_bf16(const uint16_t* p) {
  const __m256i half = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

HK void transpose(vf (&r)[W]) {
  vf t[W];
#pragma GCC unroll 16
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    const __m512d a = _mm512_castps_pd(t[4 * i]), b = _mm512_castps_pd(t[4 * i + 2]);
    const __m512d c = _mm512_castps_pd(t[4 * i + 1]), d = _mm512_castps_pd(t[4 * i + 3]);
    r[4 * i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
    r[4 * i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    r[4 * i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(c, d));
    r[4 * i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(c, d));
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_f32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_f32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_f32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_f32x4(t[4 + i], t[12 + i], 0xdd);
  }
}

// ---- bytes: four columns for each of W output rows ------------------------------------------
HK bytes load_bytes(const uint8_t* p) { return _mm512_loadu_si512(p); }
HK void store_bytes(uint8_t* p, bytes b) { _mm512_storeu_si512(p, b); }
HK bytes low_nibbles(bytes b) { return _mm512_and_si512(b, _mm512_set1_epi8(15)); }
HK bytes high_nibbles(bytes b) { return low_nibbles(_mm512_srli_epi16(b, 4)); }
HK bytes broadcast4(const int8_t* p) {
  return _mm512_set1_epi32(*reinterpret_cast<const int32_t*>(p));
}

#ifdef __AVX512VNNI__
constexpr bool kWideBytes = true;
using sums = __m512i;
HK sums no_sums() { return _mm512_setzero_si512(); }
HK sums accumulate(sums s, bytes weights, bytes activations) {
  return _mm512_dpbusd_epi32(s, weights, activations);
}
HK vi finish(sums s) { return s; }
#else
constexpr bool kWideBytes = false;
using sums = __m512i;
HK sums no_sums() { return _mm512_setzero_si512(); }
HK sums accumulate(sums s, bytes weights, bytes activations) {
  return _mm512_add_epi16(s, _mm512_maddubs_epi16(weights, activations));
}
HK vi finish(sums s) { return _mm512_madd_epi16(s, _mm512_set1_epi16(1)); }
#endif

// Words: two 16-bit numbers in each of W lanes. Those of activations are stored in the order in
// which bytes are taken apart, columns 0, 2, 1, 3 of four.
#define HELIOS_WORDS 1
HK vi even_bytes(bytes b) { return _mm512_and_si512(b, _mm512_set1_epi16(255)); }
HK vi odd_bytes(bytes b) { return _mm512_srli_epi16(b, 8); }
HK vi add_pairs(vi s, vi a, vi b) {
#ifdef __AVX512VNNI__
  return _mm512_dpwssd_epi32(s, a, b);
#else
  return _mm512_add_epi32(s, _mm512_madd_epi16(a, b));
#endif
}
HK void store_word_pairs(int16_t* p, vi a) {
  const __m512i turned = _mm512_shuffle_epi32(a, static_cast<_MM_PERM_ENUM>(0xd8));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(turned));
}

#ifdef __AVX512BF16__
// Pairs of bfloat16 numbers, rounded to nearest, in the place of single-precision ones.
#define HELIOS_PAIRS 1
HK vf pairs(vf first, vf then) {
  return (vf)_mm512_cvtne2ps_pbh(then, first);
}
// Each lane of `low` beside the same lane of `high`.
HK vf interleaved_pairs(vf low, vf high) {
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24,
                                         8, 23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  return (vf)_mm512_permutexvar_epi16(order, (__m512i)pairs(low, high));
}
HK vf add_pair_products(vf sum, vf a, vf b) {
  return _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
}
#endif

constexpr int kBlocks = 2;  // taken at once by matrix products
constexpr int kTokenTile = 8;
constexpr int kFloatTile = 12;
constexpr bool kHardwareFma = true;

}  // namespace
