// The vector vocabulary of the kernels, on AVX2 with FMA and F16C (and AVX-VNNI if compiled for it).
#pragma once

#include <immintrin.h>

#include <cstdint>

#define HK static inline __attribute__((always_inline))

namespace {

constexpr int W = 8;
using vf = __m256;
using vi = __m256i;
using vm = __m256;
using bytes = __m256i;

alignas(32) constexpr int32_t kFirst[16] = {-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0};
HK vi first(int n) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kFirst + 8 - n));
}

HK vf load(const float* p) { return _mm256_loadu_ps(p); }
HK vf load_n(const float* p, int n) { return _mm256_maskload_ps(p, first(n)); }
HK void store(float* p, vf v) { _mm256_storeu_ps(p, v); }
HK void store_n(float* p, vf v, int n) { _mm256_maskstore_ps(p, first(n), v); }
HK vf set(float x) { return _mm256_set1_ps(x); }
HK vf zero() { return _mm256_setzero_ps(); }
HK vf add(vf a, vf b) { return _mm256_add_ps(a, b); }
HK vf sub(vf a, vf b) { return _mm256_sub_ps(a, b); }
HK vf mul(vf a, vf b) { return _mm256_mul_ps(a, b); }
HK vf div(vf a, vf b) { return _mm256_div_ps(a, b); }
HK vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
HK vf vmin(vf a, vf b) { return _mm256_min_ps(a, b); }
HK vf vmax(vf a, vf b) { return _mm256_max_ps(a, b); }
HK vf vabs(vf a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
HK vf nearest(vf a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
HK vm less(vf a, vf b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
HK vf select(vm m, vf yes, vf no) { return _mm256_blendv_ps(no, yes, m); }
HK bool any(vm m) { return _mm256_movemask_ps(m) != 0; }
HK float sum(vf a) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}
HK float largest(vf a) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

HK vi to_int(vf a) { return _mm256_cvtps_epi32(a); }
HK vf to_float(vi a) { return _mm256_cvtepi32_ps(a); }
HK vi iset(int32_t x) { return _mm256_set1_epi32(x); }
HK vi iadd(vi a, vi b) { return _mm256_add_epi32(a, b); }
HK vi isub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
template <int N>
HK vi shift_left(vi a) {
  return _mm256_slli_epi32(a, N);
}
HK vi load_words(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
template <int N>
HK vi shift_right(vi a) {
  return _mm256_srli_epi32(a, N);
}
HK vi keep_bits(vi a, int32_t mask) { return _mm256_and_si256(a, _mm256_set1_epi32(mask)); }
HK vf as_float(vi a) { return _mm256_castsi256_ps(a); }
HK vi as_int(vf a) { return _mm256_castps_si256(a); }
HK void store_s8(int8_t* p, vi a) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(a), _mm256_extracti128_si256(a, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packs_epi16(words, words));
}

HK vf load_f16(const uint16_t* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
HK void store_f16(uint16_t* p, vf v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
}
HK vf load_bf16(const uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

HK void transpose(vf (&r)[W]) {
  vf t[W];
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 2; ++i) {
    r[4 * i] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0x44);
    r[4 * i + 1] = _mm256_shuffle_ps(t[4 * i], t[4 * i + 2], 0xee);
    r[4 * i + 2] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0x44);
    r[4 * i + 3] = _mm256_shuffle_ps(t[4 * i + 1], t[4 * i + 3], 0xee);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x20);
    t[4 + i] = _mm256_permute2f128_ps(r[i], r[4 + i], 0x31);
  }
#pragma GCC unroll 8
  for (int i = 0; i < W; ++i) r[i] = t[i];
}

// ---- bytes: four columns for each of W output rows ------------------------------------------
HK bytes load_bytes(const uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
HK void store_bytes(uint8_t* p, bytes b) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), b); }
HK bytes low_nibbles(bytes b) { return _mm256_and_si256(b, _mm256_set1_epi8(15)); }
HK bytes high_nibbles(bytes b) { return low_nibbles(_mm256_srli_epi16(b, 4)); }
HK bytes broadcast4(const int8_t* p) {
  return _mm256_set1_epi32(*reinterpret_cast<const int32_t*>(p));
}

using sums = __m256i;
HK sums no_sums() { return _mm256_setzero_si256(); }
#ifdef __AVXVNNI__
constexpr bool kWideBytes = true;
HK sums accumulate(sums s, bytes weights, bytes activations) {
  return _mm256_dpbusd_avx_epi32(s, weights, activations);
}
HK vi finish(sums s) { return s; }
#else
constexpr bool kWideBytes = false;
HK sums accumulate(sums s, bytes weights, bytes activations) {
  return _mm256_add_epi16(s, _mm256_maddubs_epi16(weights, activations));
}
HK vi finish(sums s) { return _mm256_madd_epi16(s, _mm256_set1_epi16(1)); }
#endif

// Words: two 16-bit numbers in each of W lanes. Those of activations are stored in the order in
// which bytes are taken apart, columns 0, 2, 1, 3 of four.
#define HELIOS_WORDS 1
HK vi even_bytes(bytes b) { return _mm256_and_si256(b, _mm256_set1_epi16(255)); }
HK vi odd_bytes(bytes b) { return _mm256_srli_epi16(b, 8); }
HK vi add_pairs(vi s, vi a, vi b) {
#ifdef __AVXVNNI__
  return _mm256_dpwssd_avx_epi32(s, a, b);
#else
  return _mm256_add_epi32(s, _mm256_madd_epi16(a, b));
#endif
}
HK void store_word_pairs(int16_t* p, vi a) {
  const __m256i turned = _mm256_shuffle_epi32(a, 0xd8);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(turned),
                                        _mm256_extracti128_si256(turned, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), words);
}

constexpr int kBlocks = 1;  // taken at once by matrix products
constexpr int kTokenTile = 4;
constexpr int kFloatTile = 6;
constexpr bool kHardwareFma = true;

}  // namespace
