// The kernels of one instruction set, as a table of functions.
#pragma once

#include "layout.h"
#include "quant.h"

namespace helios {

enum class Gate : int { SILU = 0, GELU = 1, GELU_TANH = 2 };

// One block of sixteen output rows. Its nibbles are unpacked to scratch for all tokens at once, or,
// where it `streams` and for a single tile of tokens, in passing.
struct Block {
  const uint8_t* base;
  Layout layout;
  int64_t columns;
  bool streams = false;
};

// A tile of queries of one sequence against neighbouring key heads: for each of them `count` query
// vectors (tokens times the heads that share it), the positions they sit at, and where history lies.
//
// A page holds its heads one after another. In a page of keys, a head is [dim][tokens]: vectors hold
// positions. In a page of values it is [tokens][dim]: vectors hold elements. With `pairs`, of bfloat16
// numbers, those are [dim / 2][tokens][2] and [tokens / 2][dim][2], and both must be even.
struct AttentionTask {
  const float* const* queries;   // [heads][count] pointers to [dim]
  const int32_t* positions;      // [count], ascending; the same for every key head
  int count;
  int heads;                     // key heads
  int dim;
  int64_t first;                 // history to read: positions first … last, whole spans of it
  int64_t last;
  int64_t window;                // 0: none
  float scale;
  float softcap;                 // 0: none
  const int32_t* pages;          // the row of the page table
  int64_t page_tokens;
  int64_t page_stride;           // bytes from page to page
  int64_t head_stride;           // bytes from head to head inside a page
  const uint8_t* keys;           // at the first key head
  const uint8_t* values;
  DType type;
  bool pairs;                    // products of bfloat16 numbers; only of such a cache
  float* maximum;                // [heads][count]: running result, in and out
  float* total;                  // [heads][count]
  float* output;                 // [heads][count][padded dim]
  float* scratch;                // attention_scratch(heads * count, dim) floats
  const AttentionTask* next;     // whose first keys will be wanted soon; may be null
};

struct Kernels {
  const char* name;
  int lanes;
  bool pairs;  // multiplies bfloat16 numbers

  // Quantises one token's row (see quant.h) of `groups` groups, starting at group `first`.
  void (*quantise)(const float* x, const Quant& quant, int64_t token, int64_t first,
                   int64_t groups);
  // out[(t - begin) * pitch][0 .. 16) = block . token t, for begin <= t < end; begin is a multiple
  // of 16. A second block, adjacent in memory, goes to [16 .. 32). A token's sums are taken in an
  // order that only the layout fixes. Scratch: 32 * columns bytes.
  void (*dot)(const Block& block, int blocks, const Quant& quant, int64_t begin,
              int64_t end, float* out, int64_t pitch, uint8_t* scratch);
  // The same for float activations x[t * stride]; scratch: 64 * columns bytes.
  void (*dot_float)(const Block& block, const float* x, int64_t stride, int64_t count, float* out,
                    int64_t pitch, float* scratch);
  // out[t * stride][0 .. lanes) = tile[t * pitch] + bias + residual[t * stride], where not null.
  void (*store_block)(const float* tile, int64_t pitch, int64_t count, int lanes,
                      const float* bias, const float* residual, float* out, int64_t stride);

  void (*rms_norm)(const float* x, const float* weight, float epsilon, float* y, int64_t n);
  void (*add)(const float* left, const float* right, float* y, int64_t n);
  void (*scale)(const float* x, float factor, float* y, int64_t n);
  void (*softcap)(const float* x, float cap, float* y, int64_t n);
  void (*gate)(Gate function, const float* gate, const float* up, float* y, int64_t n);
  // Rotates one head; table holds cosines then sines, `pairs` of each.
  void (*rope)(const float* x, const float* table, int64_t pairs, bool interleaved, int64_t dim,
               float* y);
  void (*to_cache)(DType type, const float* x, void* out, int64_t n);

  // Folds whole spans of history into (maximum, total, output) of every query.
  void (*attend)(const AttentionTask& task);
  // Folds another partial result into the first, as `attend` does between spans.
  void (*merge)(float* maximum, float* total, float* output, const float* other_maximum,
                const float* other_total, const float* other_output, int64_t count, int64_t padded);
  // y[dim] = output / (total + exp(sink - maximum)); no sink where it is null.
  void (*normalise)(float maximum, float total, const float* output, const float* sink, float* y,
                    int64_t dim);

  int64_t (*argmax)(const float* x, int64_t n);  // the first of the largest
  float (*largest)(const float* x, int64_t n);
  // Sum of exp((x - shift) * factor); the terms go to `terms` if that is not null.
  double (*sum_exp)(const float* x, float shift, float factor, float* terms, int64_t n);

  // Ceilings: multiply-accumulates done from registers alone, and bytes read. All return a number
  // that depends on the work, so that no compiler leaves it out.
  int64_t (*probe_integer)(int64_t rounds, int64_t* done);
  int64_t (*probe_float)(int64_t rounds, int64_t* done);
  int64_t (*probe_read)(const uint8_t* data, int64_t nbytes);
};

// Positions of history are folded in spans of this length, aligned to multiples of it.
inline constexpr int64_t kSpan = 256;
inline constexpr int64_t kKeyBlock = 64;

int64_t attention_scratch(int64_t count, int64_t dim);

// The kernels named by HELIOS_ISA, or the best that this processor runs.
const Kernels& best_kernels();
const Kernels& kernels_named(const std::string& name);

}  // namespace helios
