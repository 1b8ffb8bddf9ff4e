// Attention over paged history.
//
// History is taken in blocks of 64 positions inside spans of 256, both aligned to absolute
// positions. A query's result in a span is a running softmax (maximum, total, output) over the
// span's blocks from the oldest; spans are merged from the oldest. So neither the tile of queries
// nor the way spans are handed to threads changes a query's numbers.

constexpr int64_t kPositions = helios::kKeyBlock;

HK int64_t padded_dim(int64_t dim) { return (dim + 15) / 16 * 16; }

constexpr float kNone = -__builtin_inff();
alignas(64) constexpr float kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// Where the keys or values of a block lie, position by position.
HK void locate(const helios::AttentionTask& task, const uint8_t* plane, int64_t begin,
               int64_t count, const uint8_t** at) {
  int64_t page = begin / task.page_tokens, inside = begin % task.page_tokens;
  for (int64_t i = 0; i < count; ++page, inside = 0) {
    const uint8_t* source = plane + task.pages[page] * task.page_stride + inside * task.token_stride;
    for (; i < count && inside < task.page_tokens; ++i, ++inside, source += task.token_stride)
      at[i] = source;
  }
}

// Rows lie far apart, so the processor does not foresee them: ask for them one phase early.
HK void fetch(const helios::AttentionTask& task, const uint8_t* plane, int64_t begin,
              int64_t count) {
  const uint8_t* at[kPositions];
  locate(task, plane, begin, count, at);
  const int64_t nbytes = task.dim * (task.type == helios::DType::F32 ? 4 : 2);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t b = 0; b < nbytes; b += 64) __builtin_prefetch(at[i] + b);
}

struct FromF16 {
  static vf get(const uint8_t* p, int64_t i) {
    return load_f16(reinterpret_cast<const uint16_t*>(p) + i);
  }
};
struct FromBf16 {
  static vf get(const uint8_t* p, int64_t i) {
    return load_bf16(reinterpret_cast<const uint16_t*>(p) + i);
  }
};
struct FromF32 {
  static vf get(const uint8_t* p, int64_t i) {
    return load(reinterpret_cast<const float*>(p) + i);
  }
};

struct AttentionScratch {
  float *queries, *scores, *keys, *values, *rows, *maximum, *total, *output, *correction;
  AttentionScratch(float* base, int64_t count, int64_t padded) {
    const auto take = [&](int64_t floats) {
      float* here = base;
      base += (floats + 15) / 16 * 16;
      return here;
    };
    queries = take(count * padded);
    scores = take(count * kPositions);
    keys = take(padded * kPositions);
    values = take(kPositions * padded);
    rows = take(kPositions * padded);
    maximum = take(count);
    total = take(count);
    output = take(count * padded);
    correction = take(count);
  }
};

// keys[dim][64]: positions in the lanes. Lanes past `count` repeat the last position.
template <class From>
HK void turn_keys(const uint8_t* const* at, int64_t count, int64_t dim, float* keys) {
  for (int64_t p0 = 0; p0 < count; p0 += W)
    for (int64_t d = 0; d < dim; d += W) {
      vf r[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) r[i] = From::get(at[p0 + i < count ? p0 + i : count - 1], d);
      transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) store(keys + (d + i) * kPositions + p0, r[i]);
    }
}

template <class From>
HK void copy_values(const uint8_t* const* at, int64_t count, int64_t dim, float* values) {
  for (int64_t i = 0; i < count; ++i)
    for (int64_t d = 0; d < dim; d += W) store(values + i * dim + d, From::get(at[i], d));
}

// Calls body with the type of the cache. Heads that don't fill whole vectors are widened and
// padded in scratch first.
template <class Body>
HK void with_rows(const helios::AttentionTask& task, const uint8_t** at, int64_t count,
                  float* scratch, Body body) {
  const int64_t padded = padded_dim(task.dim);
  if (padded != task.dim) {
    for (int64_t i = 0; i < count; ++i) {
      from_cache(task.type, at[i], scratch + i * padded, task.dim);
      at[i] = reinterpret_cast<const uint8_t*>(scratch + i * padded);
    }
    return body(FromF32{});
  }
  switch (task.type) {
    case helios::DType::F16: return body(FromF16{});
    case helios::DType::BF16: return body(FromBf16{});
    default: return body(FromF32{});
  }
}

// The widest steps that the registers hold for so many rows.
HK void product(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride,
                const float* b, int64_t b_stride, float* c, int64_t c_stride, bool add_to) {
  if (rows <= 3 && columns % (4 * W) == 0)
    product_rows<4>(rows, columns, depth, a, a_stride, b, b_stride, c, c_stride, add_to);
  else if (columns % (2 * W) == 0)
    product_rows<2>(rows, columns, depth, a, a_stride, b, b_stride, c, c_stride, add_to);
  else
    product_rows<1>(rows, columns, depth, a, a_stride, b, b_stride, c, c_stride, add_to);
}

// A few queries leave too little work to lay keys and values out anew for it: they take them from
// the cache directly, in the same order and so with the same results.
constexpr int kFewQueries = 4;

// scores[R][64] = queries . keys, as `turn_keys` and `product` have it.
template <int R, class From>
HK void few_scores(const uint8_t* const* at, int64_t count, int64_t dim, int64_t padded,
                   const float* queries, float* scores) {
  for (int64_t p0 = 0; p0 < count; p0 += W) {
    vf acc[R];
#pragma GCC unroll 4
    for (int q = 0; q < R; ++q) acc[q] = zero();
    for (int64_t d = 0; d < dim; d += W) {
      vf r[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) r[i] = From::get(at[p0 + i < count ? p0 + i : count - 1], d);
      transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) {
        if (d + i >= dim) break;  // what lies beyond is padding
#pragma GCC unroll 4
        for (int q = 0; q < R; ++q)
          acc[q] = fma(set(queries[q * padded + d + i]), r[i], acc[q]);
      }
    }
#pragma GCC unroll 4
    for (int q = 0; q < R; ++q) store(scores + q * kPositions + p0, acc[q]);
  }
}

// output[R][dim] += weights . values, N vectors of columns at a time.
template <int R, int N, class From>
HK void few_values(const uint8_t* const* at, int64_t count, int64_t padded, const float* weights,
                   float* output) {
  for (int64_t d = 0; d < padded; d += N * W) {
    vf acc[R][N];
#pragma GCC unroll 4
    for (int q = 0; q < R; ++q)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[q][v] = load(output + q * padded + d + v * W);
    for (int64_t i = 0; i < count; ++i) {
      vf value[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) value[v] = From::get(at[i], d + v * W);
#pragma GCC unroll 4
      for (int q = 0; q < R; ++q) {
        const vf weight = set(weights[q * kPositions + i]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) acc[q][v] = fma(weight, value[v], acc[q][v]);
      }
    }
#pragma GCC unroll 4
    for (int q = 0; q < R; ++q)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(output + q * padded + d + v * W, acc[q][v]);
  }
}

template <class Body>
HK void with_few(int count, Body body) {
  switch (count) {
    case 1: return body.template operator()<1>();
    case 2: return body.template operator()<2>();
    case 3: return body.template operator()<3>();
    case 4: return body.template operator()<4>();
    default: __builtin_unreachable();
  }
}

// scores[queries][64] of a block of `count` positions.
void score_block(const helios::AttentionTask& task, int64_t begin, int64_t count,
                 const AttentionScratch& s) {
  const uint8_t* at[kPositions];
  locate(task, task.keys, begin, count, at);
  const int64_t padded = padded_dim(task.dim);
  with_rows(task, at, count, s.rows, [&]<class From>(From) __attribute__((always_inline)) {
    if (task.count > kFewQueries) return turn_keys<From>(at, count, padded, s.keys);
    with_few(task.count, [&]<int R>() __attribute__((always_inline)) {
      few_scores<R, From>(at, count, task.dim, padded, s.queries, s.scores);
    });
  });
  if (task.count > kFewQueries)
    product(task.count, kPositions, task.dim, s.queries, padded, s.keys, kPositions, s.scores,
            kPositions, false);
}

// Adds a block's values, weighed by its scores, to the output.
void add_block(const helios::AttentionTask& task, int64_t begin, int64_t count,
               const AttentionScratch& s) {
  const uint8_t* at[kPositions];
  locate(task, task.values, begin, count, at);
  const int64_t padded = padded_dim(task.dim);
  with_rows(task, at, count, s.rows, [&]<class From>(From) __attribute__((always_inline)) {
    if (task.count > kFewQueries) return copy_values<From>(at, count, padded, s.values);
    with_few(task.count, [&]<int R>() __attribute__((always_inline)) {
      if (R < 4 && padded % (4 * W) == 0)
        few_values<R, 4, From>(at, count, padded, s.scores, s.output);
      else if (padded % (2 * W) == 0)
        few_values<R, 2, From>(at, count, padded, s.scores, s.output);
      else
        few_values<R, 1, From>(at, count, padded, s.scores, s.output);
    });
  });
  if (task.count > kFewQueries)
    product(task.count, padded, count, s.scores, kPositions, s.values, padded, s.output, padded,
            true);
}

// Positions of the block that the query at `position` sees: [low, high).
HK void visible(const helios::AttentionTask& task, int64_t position, int64_t begin, int64_t count,
                int64_t* low, int64_t* high) {
  const int64_t oldest = task.window > 0 ? position - task.window + 1 : 0;
  *low = oldest > begin ? oldest - begin : 0;
  *high = position - begin + 1 < count ? position - begin + 1 : count;
}

// Hides what a query does not see, caps the rest, and returns the largest score.
HK float largest_score(const helios::AttentionTask& task, float* scores, int64_t low,
                       int64_t high) {
  if (low > 0 || high < kPositions) {
    const vf from = set(static_cast<float>(low)), to = set(static_cast<float>(high));
    for (int64_t i = 0; i < kPositions; i += W) {
      const vf at = add(load(kLanes), set(static_cast<float>(i)));
      const vf early = select(less(at, to), load(scores + i), set(kNone));
      store(scores + i, select(less(at, from), set(kNone), early));
    }
  }
  if (task.softcap > 0.0f)
    for (int64_t i = 0; i < kPositions; i += W) {
      const vf s = load(scores + i);
      const vf capped = mul(vtanh(div(s, set(task.softcap))), set(task.softcap));
      store(scores + i, select(less(s, set(-3e38f)), s, capped));
    }
  vf top = load(scores);
#pragma GCC unroll 16
  for (int64_t i = W; i < kPositions; i += W) top = vmax(top, load(scores + i));
  return largest(top);
}

// Scores become weights, relative to the running maximum; returns their sum.
HK float weigh(float* scores, float maximum) {
  const vf shift = set(maximum == kNone ? 0.0f : maximum);
  vf total = zero();
#pragma GCC unroll 16
  for (int64_t i = 0; i < kPositions; i += W) {
    const vf e = exp_falling(sub(load(scores + i), shift));
    store(scores + i, e);
    total = add(total, e);
  }
  return sum(total);
}

HK void rescale(float* row, float factor, int64_t n) {
  for (int64_t i = 0; i < n; i += W) store(row + i, mul(load(row + i), set(factor)));
}

void merge(float* maximum, float* total, float* output, const float* other_maximum,
           const float* other_total, const float* other_output, int64_t count, int64_t padded) {
  for (int64_t q = 0; q < count; ++q) {
    if (other_maximum[q] == kNone) continue;
    const float top = other_maximum[q] > maximum[q] ? other_maximum[q] : maximum[q];
    alignas(64) float factors[W] = {};
    factors[0] = maximum[q] - top;
    factors[1] = other_maximum[q] - top;
    store(factors, exp_falling(load(factors)));
    maximum[q] = top;
    total[q] = total[q] * factors[0] + other_total[q] * factors[1];
    float* row = output + q * padded;
    const float* other = other_output + q * padded;
    for (int64_t i = 0; i < padded; i += W)
      store(row + i, fma(load(other + i), set(factors[1]), mul(load(row + i), set(factors[0]))));
  }
}

HK int64_t block_length(const helios::AttentionTask& task, int64_t begin) {
  const int64_t left = task.last + 1 - begin;
  return left < kPositions ? left : kPositions;
}

// Fetches the keys of the block after this one, or the first of the next task.
HK void fetch_next(const helios::AttentionTask& task, int64_t begin) {
  const int64_t next = begin + kPositions;
  if (next <= task.last)
    fetch(task, task.keys, next, block_length(task, next));
  else if (task.next_keys != nullptr) {
    const int64_t first = task.first / kPositions * kPositions;
    fetch(task, task.next_keys, first, block_length(task, first));
  }
}

// One block of keys and values into the span's running softmax.
HK void fold_block(const helios::AttentionTask& task, const AttentionScratch& s, int64_t begin) {
  const int64_t padded = padded_dim(task.dim);
  const int64_t count = block_length(task, begin);
  fetch(task, task.values, begin, count);
  score_block(task, begin, count, s);
  for (int64_t q = 0; q < task.count; ++q) {
    int64_t low, high;
    visible(task, task.positions[q], begin, count, &low, &high);
    const float before = s.maximum[q];
    const float top = largest_score(task, s.scores + q * kPositions, low, high);
    if (top > before) s.maximum[q] = top;
    s.correction[q] = top > before ? before - top : 0.0f;
  }
  for_vectors(task.count, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    store_some(s.correction + i, exp_falling(load_some(s.correction + i, lanes)), lanes);
  });
  for (int64_t q = 0; q < task.count; ++q) {
    const float weight = weigh(s.scores + q * kPositions, s.maximum[q]);
    s.total[q] = s.total[q] * s.correction[q] + weight;
    if (s.correction[q] != 1.0f) rescale(s.output + q * padded, s.correction[q], padded);
  }
  fetch_next(task, begin);
  add_block(task, begin, count, s);
}

void attend(const helios::AttentionTask& task) {
  const int64_t padded = padded_dim(task.dim);
  const AttentionScratch s(task.scratch, task.count, padded);
  for (int64_t q = 0; q < task.count; ++q) {
    scale_row(task.queries[q], task.scale, s.queries + q * padded, task.dim);
    for (int64_t i = task.dim; i < padded; ++i) s.queries[q * padded + i] = 0.0f;
  }
  const int64_t end = task.last + 1;
  for (int64_t span = task.first / helios::kSpan * helios::kSpan; span < end;
       span += helios::kSpan) {
    for (int64_t q = 0; q < task.count; ++q) {
      s.maximum[q] = kNone;
      s.total[q] = 0.0f;
    }
    __builtin_memset(s.output, 0, static_cast<size_t>(task.count * padded) * 4);
    for (int64_t b = span; b < span + helios::kSpan && b < end; b += kPositions) {
      if (b + kPositions <= task.first) continue;
      fold_block(task, s, b);
    }
    merge(task.maximum, task.total, task.output, s.maximum, s.total, s.output, task.count, padded);
  }
}

void normalise(float maximum, float total, const float* output, const float* sink, float* y,
               int64_t dim) {
  alignas(64) float factors[W] = {};
  if (sink != nullptr) {
    const float top = *sink > maximum ? *sink : maximum;
    factors[0] = maximum - top;
    factors[1] = *sink - top;
    store(factors, exp_falling(load(factors)));
    total = total * factors[0] + factors[1];
  } else {
    factors[0] = 1.0f;
  }
  const vf factor = set(total > 0.0f ? factors[0] / total : 0.0f);
  for_vectors(dim, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    store_some(y + i, mul(load_some(output + i, lanes), factor), lanes);
  });
}
