/* What the machine can do at most: ceilings THREADS prints one JSON object of rates per second.

   Every thread does the same work for a fixed time; a rate is the sum over threads. The best of
   some rounds counts, since a ceiling is what is possible, not what is usual. */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

enum { BUFFER = 192 << 20, PASSES = 1 << 16, ROUNDS = 7 };
static const double SECONDS = 0.15;

#if defined(__AVX512F__)
enum { WIDTH = 64 };
#elif defined(__AVX__)
enum { WIDTH = 32 };
#else
enum { WIDTH = 16 };
#endif
typedef float floats __attribute__((vector_size(WIDTH)));
typedef uint64_t words __attribute__((vector_size(WIDTH)));
#if defined(__aarch64__)
#define KEEP(x) __asm__ volatile("" : "+w"(x))
#else
#define KEEP(x) __asm__ volatile("" : "+v"(x))
#endif

/* Independent accumulators: enough to cover the latency of an instruction, few enough to stay in
   sixteen registers. Each is KEPT from the start: to a compiler that saw them begin alike they would
   all be the same, and one would do. */
#define TWELVE(F) F(0) F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11)

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Each piece of work returns how much it did: bytes, or operations. */

static double read_memory(const void *buffer) {
  const words *p = buffer;
  words a = {0}, b = {0}, c = {0}, d = {0};
  for (size_t i = 0; i < BUFFER / WIDTH; i += 4) {
    a += p[i];
    b += p[i + 1];
    c += p[i + 2];
    d += p[i + 3];
  }
  a += b + c + d;
  KEEP(a);
  return BUFFER;
}

static double multiply_floats(const void *buffer) {
  floats x, y;
  memcpy(&x, buffer, sizeof x);
  memcpy(&y, buffer, sizeof y);
#define MAKE(i)      \
  floats acc##i = x; \
  KEEP(acc##i);
#define STEP(i) acc##i += x * y;
#define SHOW(i) KEEP(acc##i);
  TWELVE(MAKE)
  for (int i = 0; i < PASSES; i++) {
    KEEP(x);
    TWELVE(STEP)
  }
  TWELVE(SHOW)
  return 2.0 * PASSES * 12 * (WIDTH / 4);
#undef MAKE
#undef STEP
}

/* Multiply-accumulates of unsigned by signed bytes into 32 bits. */

#if defined(__AVX2__)
static double multiply_bytes_in_16_bits(const void *buffer) {
  __m256i x = _mm256_loadu_si256(buffer), y = x;
  const __m256i ones = _mm256_set1_epi16(1);
#define MAKE(i)       \
  __m256i acc##i = x; \
  KEEP(acc##i);
#define STEP(i) \
  acc##i = _mm256_add_epi32(acc##i, _mm256_madd_epi16(_mm256_maddubs_epi16(x, acc##i), ones));
  TWELVE(MAKE)
  for (int i = 0; i < PASSES; i++) {
    KEEP(x);
    TWELVE(STEP)
  }
  TWELVE(SHOW)
  KEEP(y);
  return 32.0 * PASSES * 12;
#undef MAKE
#undef STEP
}
#endif

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#define HAVE_DOT
static double multiply_bytes(const void *buffer) {
  __m512i x = _mm512_loadu_si512(buffer), y = x;
#define MAKE(i)       \
  __m512i acc##i = x; \
  KEEP(acc##i);
#define STEP(i) acc##i = _mm512_dpbusd_epi32(acc##i, x, y);
  TWELVE(MAKE)
  for (int i = 0; i < PASSES; i++) {
    KEEP(x);
    TWELVE(STEP)
  }
  TWELVE(SHOW)
  return 64.0 * PASSES * 12;
#undef MAKE
#undef STEP
}
#elif defined(__AVXVNNI__)
#define HAVE_DOT
static double multiply_bytes(const void *buffer) {
  __m256i x = _mm256_loadu_si256(buffer), y = x;
#define MAKE(i)       \
  __m256i acc##i = x; \
  KEEP(acc##i);
#define STEP(i) acc##i = _mm256_dpbusd_avx_epi32(acc##i, x, y);
  TWELVE(MAKE)
  for (int i = 0; i < PASSES; i++) {
    KEEP(x);
    TWELVE(STEP)
  }
  TWELVE(SHOW)
  return 32.0 * PASSES * 12;
#undef MAKE
#undef STEP
}
#elif defined(__ARM_FEATURE_DOTPROD)
#define HAVE_DOT
static double multiply_bytes(const void *buffer) {
  int8x16_t x = vld1q_s8(buffer), y = x;
#define MAKE(i)                               \
  int32x4_t acc##i = vreinterpretq_s32_s8(x); \
  KEEP(acc##i);
#define STEP(i) acc##i = vdotq_s32(acc##i, x, y);
  TWELVE(MAKE)
  for (int i = 0; i < PASSES; i++) {
    KEEP(x);
    TWELVE(STEP)
  }
  TWELVE(SHOW)
  return 16.0 * PASSES * 12;
#undef MAKE
#undef STEP
}
#endif

typedef double work(const void *);

struct worker {
  pthread_t thread;
  pthread_barrier_t *start;
  work *run;
  void *buffer;
  double rate;
};

static void *drive(void *argument) {
  struct worker *w = argument;
  pthread_barrier_wait(w->start);
  const double begin = now();
  double done = 0, elapsed;
  do {
    done += w->run(w->buffer);
    elapsed = now() - begin;
  } while (elapsed < SECONDS);
  w->rate = done / elapsed;
  return NULL;
}

static double best(work *run, struct worker *workers, int threads) {
  double most = 0;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_t start;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    double rate = 0;
    for (int i = 0; i < threads; i++) {
      workers[i].run = run;
      workers[i].start = &start;
      if (pthread_create(&workers[i].thread, NULL, drive, &workers[i])) exit(1);
    }
    for (int i = 0; i < threads; i++) {
      pthread_join(workers[i].thread, NULL);
      rate += workers[i].rate;
    }
    pthread_barrier_destroy(&start);
    if (rate > most) most = rate;
  }
  return most;
}

int main(int count, char **arguments) {
  const int threads = count > 1 ? atoi(arguments[1]) : 1;
  if (threads < 1 || threads > 1024) return 2;
  struct worker *workers = calloc((size_t)threads, sizeof *workers);
  for (int i = 0; i < threads; i++) {
    workers[i].buffer = aligned_alloc(64, BUFFER);
    if (!workers[i].buffer) return 1;
    memset(workers[i].buffer, 0, BUFFER);
  }
  printf("{\"threads\": %d, \"read_bytes\": %.4g", threads, best(read_memory, workers, threads));
  printf(", \"f32_flops\": %.4g", best(multiply_floats, workers, threads));
#if defined(__AVX2__)
  printf(", \"i8_macs_16bit\": %.4g", best(multiply_bytes_in_16_bits, workers, threads));
#endif
#if defined(HAVE_DOT)
  printf(", \"i8_macs_dot\": %.4g", best(multiply_bytes, workers, threads));
#endif
  printf("}\n");
  return 0;
}
