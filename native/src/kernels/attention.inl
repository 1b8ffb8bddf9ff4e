// Attention over paged history.
//
// History is taken in blocks of 64 positions inside spans of 256, both aligned to absolute
// positions. A query's result in a span is a running softmax (maximum, total, output) over the
// span's blocks from the oldest; spans are merged from the oldest. So neither the tile of queries
// nor the way spans are handed to threads changes a query's numbers.
//
// Many queries lie in the lanes of vectors, and nothing is ever added across them; a few leave the
// lanes to positions. The numbers are the same: a score is a sum over the head's elements in order,
// an element of the output one over the positions in order, and a block's total one of W sums, each
// of every W-th position, which are folded in halves as `sum` does it.
//
// Products see single precision, or, where the processor multiplies them and the cache consists of
// them, pairs of bfloat16 numbers: a lane then holds two neighbouring elements of a head, or of
// positions. Sums and whatever lies between the products are in single precision either way.

constexpr int64_t kPositions = helios::kKeyBlock;
constexpr int64_t kStep = 16;  // positions, or elements of a head, are taken in multiples of it

HK int64_t padded_dim(int64_t dim) { return (dim + kStep - 1) / kStep * kStep; }

constexpr float kNone = -__builtin_inff();
alignas(64) constexpr float kLanes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// What a lane holds of the factors of a product: numbers in single precision.
struct Singles {
  static constexpr int64_t width = 1;
  static vf add(vf sum, vf a, vf b) { return fma(a, b, sum); }
  static vf exp(vf x) { return exp_falling(x); }  // of scores
  // Lane by lane, the numbers of `width` vectors.
  static vf join(const vf* numbers) { return numbers[0]; }
  // A row of numbers to lanes, in its place.
  static void pack(float*, int64_t) {}
};

// Rows of a cache whose numbers are no lanes yet.
template <class Element>
struct NarrowRows : Singles {
  static constexpr int64_t lane_bytes = sizeof(typename Element::type);
  static vf lanes(const uint8_t* at) {
    return Element::get(reinterpret_cast<const typename Element::type*>(at));
  }
};

#ifdef HELIOS_PAIRS
constexpr bool kHasPairs = true;

// Two bfloat16 numbers.
struct Pairs {
  static constexpr int64_t width = 2;
  static vf add(vf sum, vf a, vf b) { return add_pair_products(sum, a, b); }
  static vf exp(vf x) { return coarse_exp_falling(x); }
  static vf join(const vf* numbers) { return interleaved_pairs(numbers[0], numbers[1]); }
  static void pack(float* row, int64_t count) {
    for (int64_t i = 0; i < count; i += 2 * W)
      store(row + i / 2, pairs(load(row + i), i + W < count ? load(row + i + W) : zero()));
  }
};
#else
constexpr bool kHasPairs = false;
#endif

// Rows of lanes: of a cache of such, and of scratch.
template <class A>
struct LaneRows : A {
  static constexpr int64_t lane_bytes = 4;
  static vf lanes(const uint8_t* at) { return load(reinterpret_cast<const float*>(at)); }
};

// Lanes whose second numbers, if they have such, are nothing.
template <class A>
HK vf first_numbers(vf lanes) {
  return A::width > 1 ? as_float(keep_bits(as_int(lanes), 0xffff)) : lanes;
}

HK int64_t divided_up(int64_t n, int64_t by) { return (n + by - 1) / by; }

// Lanes that hold n numbers.
template <class A>
HK int64_t lanes_for(int64_t n) {
  return (n + A::width - 1) / A::width;
}

// Calls body(the first number, whether it is the only one left) for the lanes of `count` numbers.
template <class A, class Body>
HK void for_lanes(int64_t count, Body body) {
  int64_t i = 0;
  for (; i + A::width <= count; i += A::width) body(i, false);
  if constexpr (A::width > 1)
    if (i < count) body(i, true);
}

// Calls body with the type of what the cache consists of.
template <class A, class Body>
HK void with_rows(const helios::AttentionTask& task, Body body) {
  if constexpr (A::width == 1) {
    if (task.type == helios::DType::F16) return body(NarrowRows<F16Element>{});
    if (task.type == helios::DType::BF16) return body(NarrowRows<Bf16Element>{});
  }
  return body(LaneRows<A>{});
}

// `count` positions from `begin` on, the pages that hold them, and where in a plane of keys the first
// element of each lies, and in one of values its row (see AttentionTask).
struct History {
  int64_t begin, count, pages;
  int64_t page[kPositions], key[kPositions], value[kPositions];
};

HK void locate(const helios::AttentionTask& task, int64_t begin, History* block) {
  const int64_t left = task.last + 1 - begin;
  const int64_t count = left < kPositions ? left : kPositions;
  const int64_t width = task.pairs ? 2 : 1;
  const int64_t lane_bytes = task.type == helios::DType::F32 ? 4 : 2 * width;
  const int64_t row_bytes = task.dim * lane_bytes;
  block->begin = begin;
  block->count = count;
  int64_t page = begin / task.page_tokens, inside = begin % task.page_tokens, pages = 0;
  for (int64_t i = 0; i < count; ++page, inside = 0) {
    const int64_t base = task.pages[page] * task.page_stride;
    block->page[pages++] = base;
    for (; i < count && inside < task.page_tokens; ++i, ++inside) {
      block->key[i] = base + inside * lane_bytes;
      block->value[i] = base + inside / width * row_bytes;
    }
  }
  block->pages = pages;
}

// Pages that will be read next, asked for a cache line at a time while others are worked on, for the
// processor does not foresee them. They wait in the second cache, since the first is full of what is
// worked on. `then` is what comes after them.
class Stream {
 public:
  Stream(const uint8_t* plane, const History& block, int64_t page_bytes,
         const Stream* then = nullptr)
      : plane_(plane),
        page_(block.page),
        end_(page_bytes > 0 && block.count > 0 ? block.page + block.pages : block.page),
        page_bytes_(page_bytes),
        then_(then) {}

  int64_t lines() const { return (end_ - page_) * ((page_bytes_ + 63) / 64); }

  void advance(int64_t lines) {
    for (; lines > 0; --lines) {
      if (left_ <= 0 && !turn()) return;
      __builtin_prefetch(at_, 0, 2);
      at_ += 64;
      left_ -= 64;
    }
  }

 private:
  bool turn() {
    if (page_ == end_) {
      if (then_ == nullptr) return false;
      *this = *then_;
      return turn();
    }
    at_ = plane_ + *page_++;
    left_ = page_bytes_;
    return true;
  }

  const uint8_t* at_ = nullptr;
  int64_t left_ = 0;
  const uint8_t* plane_;
  const int64_t* page_;
  const int64_t* end_;
  int64_t page_bytes_;
  const Stream* then_;
};

// Bytes of a page that its heads read; none of long pages, of which a block is but a part.
HK int64_t bytes_ahead(const helios::AttentionTask& task) {
  return task.page_tokens <= kPositions ? task.heads * task.head_stride : 0;
}

struct AttentionScratch {
  float *queries, *scores, *keys, *values, *maximum, *total, *output, *correction, *low, *high;
  AttentionScratch(const helios::AttentionTask& task, int64_t count) {
    const int64_t lanes = padded_dim(count), padded = padded_dim(task.dim);
    float* base = task.scratch;
    const auto take = [&](int64_t floats) {
      float* here = base;
      base += floats;
      return here;
    };
    queries = take(lanes * padded);
    output = take(lanes * padded);
    scores = take(lanes * kPositions);
    keys = take(kPositions * padded);
    values = take(kPositions * padded);
    maximum = take(lanes);
    total = take(lanes);
    correction = take(lanes);
    low = take(lanes);
    high = take(lanes);
  }
};

// Positions of the block that the query at `position` sees: [low, high).
HK void visible(const helios::AttentionTask& task, int64_t position, const History& block,
                int64_t* low, int64_t* high) {
  const int64_t oldest = task.window > 0 ? position - task.window + 1 : 0;
  *low = oldest > block.begin ? oldest - block.begin : 0;
  const int64_t length = position - block.begin + 1;
  *high = length < block.count ? length : block.count;
}

HK vf capped(vf scores, float cap) { return mul(vtanh(div(scores, set(cap))), set(cap)); }

// What scores are measured from: their maximum, or zero as long as there is none.
HK vf anchor(vf maximum) { return select(less(maximum, set(-3e38f)), zero(), maximum); }

// By which factors two running results are multiplied before they are added.
HK void weigh_results(float* maximum, float* total, const float* other_maximum,
                      const float* other_total, float* keep, float* take, int lanes) {
  const vf mine = load_some(maximum, lanes), other = load_some(other_maximum, lanes);
  const vf top = vmax(mine, other), shift = anchor(top);
  const vf k = exp_falling(sub(mine, shift)), t = exp_falling(sub(other, shift));
  store(keep, k);
  store(take, t);
  store_some(maximum, top, lanes);
  store_some(total, add(mul(load_some(total, lanes), k), mul(load_some(other_total, lanes), t)),
             lanes);
}

HK void clear_span(const AttentionScratch& s, int64_t queries, int64_t padded) {
  for (int64_t i = 0; i < queries; i += W) {
    store(s.maximum + i, set(kNone));
    store(s.total + i, zero());
  }
  __builtin_memset(s.output, 0, static_cast<size_t>(queries * padded) * 4);
}

HK vf merged(const float* row, vf other, float keep, float take) {
  return fma(other, set(take), mul(load(row), set(keep)));
}

void merge(float* maximum, float* total, float* output, const float* other_maximum,
           const float* other_total, const float* other_output, int64_t count, int64_t padded) {
  for_vectors(count, [&](int64_t q, int lanes) __attribute__((always_inline)) {
    alignas(64) float keep[W], take[W];
    weigh_results(maximum + q, total + q, other_maximum + q, other_total + q, keep, take, lanes);
    for (int i = 0; i < lanes; ++i) {
      float* row = output + (q + i) * padded;
      const float* other = other_output + (q + i) * padded;
      for (int64_t d = 0; d < padded; d += W)
        store(row + d, merged(row + d, load(other + d), keep[i], take[i]));
    }
  });
}

// ---- many queries: in the lanes ----------------------------------------------------------------

// Panels of up to three vectors of queries lie one after the other, each as [dim][N * W].
constexpr int kPanelVectors = 3;
constexpr int64_t kPanel = kPanelVectors * W;

// Rows that the registers hold beside N vectors.
template <int N>
constexpr int panel_rows() {
  int rows = kStep;
  while (rows * N > 2 * kFloatTile) rows /= 2;
  return rows;
}

// acc[r] += a[r * row + k * step] * b[k][0 .. N * W), in order of k; all of them lanes.
template <class A, int R, int N>
HK void add_products(const float* a, int64_t row, int64_t step, const float* b, int64_t depth,
                     vf (&acc)[R][N]) {
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    vf column[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) column[v] = load(b + (k * N + v) * W);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const vf x = set(a[r * row + k * step]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[r][v] = A::add(acc[r][v], x, column[v]);
    }
  }
}

// Products of panels stay functions of their own: inlined into all of attention, they would get too
// few registers, and a sum that waits in memory takes twice as long.

// scores[reach][N * W]
template <class A, int N>
__attribute__((noinline)) void score_panel(const float* keys, const float* queries, int64_t dim,
                                           int64_t reach, float* scores) {
  constexpr int R = panel_rows<N>();
  for (int64_t p = 0; p < reach; p += R) {
    vf acc[R][N];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[r][v] = zero();
    add_products<A, R, N>(keys + p, 1, kPositions, queries, lanes_for<A>(dim), acc);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(scores + ((p + r) * N + v) * W, acc[r][v]);
  }
}

// output[padded][N * W] = output * correction + values . weights
template <class A, int N>
__attribute__((noinline)) void add_panel(const float* values, int64_t padded, const float* weights,
                                         int64_t depth, const float* correction, float* output) {
  constexpr int R = panel_rows<N>();
  for (int64_t d = 0; d < padded; d += R) {
    vf acc[R][N];
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v)
        acc[r][v] = mul(load(output + ((d + r) * N + v) * W), load(correction + v * W));
    add_products<A, R, N>(values + d, 1, padded, weights, lanes_for<A>(depth), acc);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(output + ((d + r) * N + v) * W, acc[r][v]);
  }
}

// Hides from each query what it does not see.
template <int N>
HK void hide(const float* low, const float* high, int64_t reach, float* scores) {
  for (int64_t p = 0; p < reach; ++p) {
    const vf at = set(static_cast<float>(p));
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      float* score = scores + (p * N + v) * W;
      const vf early = select(less(at, load(high + v * W)), load(score), set(kNone));
      store(score, select(less(at, load(low + v * W)), set(kNone), early));
    }
  }
}

// Scores become weights, relative to the running maximum, by whose growth earlier results shrink.
template <class A, int N>
HK void weigh_panel(float* scores, int64_t reach, float* maximum, float* total, float* correction) {
  vf top[N];
#pragma GCC unroll 4
  for (int v = 0; v < N; ++v) top[v] = load(maximum + v * W);
  for (int64_t p = 0; p < reach; ++p)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) top[v] = vmax(top[v], load(scores + (p * N + v) * W));
  for (int v = 0; v < N; ++v) {
    const vf shift = anchor(top[v]);
    const vf factor = exp_falling(sub(load(maximum + v * W), shift));
    store(maximum + v * W, top[v]);
    store(correction + v * W, factor);
    vf sums[W];
#pragma GCC unroll 16
    for (int i = 0; i < W; ++i) sums[i] = zero();
    for (int64_t p = 0; p < reach; p += W)
#pragma GCC unroll 16
      for (int i = 0; i < W; i += A::width) {
        vf weights[A::width];
#pragma GCC unroll 2
        for (int j = 0; j < A::width; ++j) {
          weights[j] = A::exp(sub(load(scores + ((p + i + j) * N + v) * W), shift));
          sums[i + j] = add(sums[i + j], weights[j]);
        }
        store(scores + ((p + i) / A::width * N + v) * W, A::join(weights));
      }
#pragma GCC unroll 4
    for (int half = W / 2; half > 0; half /= 2)
#pragma GCC unroll 8
      for (int i = 0; i < half; ++i) sums[i] = add(sums[i], sums[i + half]);
    store(total + v * W, add(mul(load(total + v * W), factor), sums[0]));
  }
}

// One block into the running softmax of the panel at `lane`.
template <class A, int N>
void fold_panel(const helios::AttentionTask& task, const AttentionScratch& s, const History& block,
                int64_t lane) {
  const int64_t padded = padded_dim(task.dim);
  const auto position = [&](int64_t i) {
    return task.positions[lane + i < task.count ? lane + i : task.count - 1];
  };
  int64_t low, high, oldest_high, newest_low;
  visible(task, position(0), block, &low, &oldest_high);
  visible(task, position(N * W - 1), block, &newest_low, &high);
  if (high <= 0 || low >= high) return;
  // What lies between the newest position and the next step is hidden.
  const int64_t reach = padded_dim(high);
  score_panel<A, N>(s.keys, s.queries + lane * padded, task.dim, reach, s.scores);
  if (task.softcap > 0.0f)
    for (int64_t i = 0; i < reach * N * W; i += W)
      store(s.scores + i, capped(load(s.scores + i), task.softcap));
  if (newest_low > 0 || oldest_high < reach) {
    for (int64_t i = 0; i < N * W; ++i) {
      visible(task, position(i), block, &low, &oldest_high);
      s.low[i] = static_cast<float>(low);
      s.high[i] = static_cast<float>(oldest_high);
    }
    hide<N>(s.low, s.high, reach, s.scores);
  }
  weigh_panel<A, N>(s.scores, reach, s.maximum + lane, s.total + lane, s.correction + lane);
  add_panel<A, N>(s.values, padded, s.scores, high, s.correction + lane, s.output + lane * padded);
}

// Calls body with the vectors and the first lane of each panel.
template <class Body>
HK void for_panels(int64_t count, Body body) {
  int64_t lane = 0;
  for (; count - lane > 2 * W; lane += kPanel) body.template operator()<3>(lane);
  if (count - lane > W)
    body.template operator()<2>(lane);
  else if (count > lane)
    body.template operator()<1>(lane);
}

// Queries, scaled, to the lanes of their panel. Lanes to spare repeat the last query.
template <class A, int N>
HK void place_queries(const helios::AttentionTask& task, int64_t lane, float* panel) {
  for (int v = 0; v < N; ++v)
    for_vectors(task.dim, [&](int64_t d, int lanes) __attribute__((always_inline)) {
      vf r[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) {
        const int64_t q = lane + v * W + i;
        const float* query = task.queries[q < task.count ? q : task.count - 1];
        r[i] = mul(load_some(query + d, lanes), set(task.scale));
      }
      transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < W; i += A::width)
        store(panel + ((d + i) / A::width * N + v) * W, A::join(r + i));
    });
}

// Merges a span's result into the task's, which lies row by row.
template <int N>
HK void merge_panel(const helios::AttentionTask& task, const AttentionScratch& s, int64_t lane) {
  const int64_t padded = padded_dim(task.dim);
  for (int v = 0; v < N; ++v) {
    const int64_t q = lane + v * W;
    const int lanes = static_cast<int>(task.count - q < W ? task.count - q : W);
    if (lanes <= 0) return;
    alignas(64) float keep[W], take[W];
    weigh_results(task.maximum + q, task.total + q, s.maximum + q, s.total + q, keep, take, lanes);
    for (int64_t d = 0; d < padded; d += W) {
      vf r[W];
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) r[i] = load(s.output + lane * padded + ((d + i) * N + v) * W);
      transpose(r);
#pragma GCC unroll 16
      for (int i = 0; i < W; ++i) {
        if (i >= lanes) break;
        float* row = task.output + (q + i) * padded + d;
        store(row, merged(row, r[i], keep[i], take[i]));
      }
    }
  }
}

template <class Rows>
HK void copy_lanes(const uint8_t* from, int64_t count, float* out) {
  for_vectors(count, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const uint8_t* at = from + i * Rows::lane_bytes;
    if (lanes == W) return store(out + i, Rows::lanes(at));
    alignas(64) uint8_t some[4 * W] = {};
    __builtin_memcpy(some, at, static_cast<size_t>(lanes * Rows::lane_bytes));
    store_n(out + i, Rows::lanes(some), lanes);
  });
}

// Keys of a block as [lanes of a head][positions].
template <class A>
HK void lay_keys(const helios::AttentionTask& task, const uint8_t* plane, const History& block,
                 float* out) {
  with_rows<A>(task, [&]<class Rows>(Rows) __attribute__((always_inline)) {
    int64_t inside = block.begin % task.page_tokens;
    for (int64_t i = 0, here; i < block.count; i += here, inside = 0) {
      here = task.page_tokens - inside;
      if (here > block.count - i) here = block.count - i;
      for (int64_t k = 0; k < lanes_for<A>(task.dim); ++k)
        copy_lanes<Rows>(plane + block.key[i] + k * task.page_tokens * Rows::lane_bytes, here,
                         out + k * kPositions + i);
    }
  });
}

// Values of a block as [lanes of positions][head], with zeros up to whole vectors.
template <class A>
HK void lay_values(const helios::AttentionTask& task, const uint8_t* plane, const History& block,
                   float* out) {
  const int64_t padded = padded_dim(task.dim);
  with_rows<A>(task, [&]<class Rows>(Rows) __attribute__((always_inline)) {
    for_lanes<A>(block.count, [&](int64_t i, bool last) __attribute__((always_inline)) {
      float* row = out + i / A::width * padded;
      for (int64_t d = task.dim; d < padded; ++d) row[d] = 0.0f;
      copy_lanes<Rows>(plane + block.value[i], task.dim, row);
      if (last)
        for (int64_t d = 0; d < padded; d += W) store(row + d, first_numbers<A>(load(row + d)));
    });
  });
}

template <class A>
HK void attend_many(const helios::AttentionTask& task) {
  const int64_t padded = padded_dim(task.dim);
  const AttentionScratch s(task, task.count);
  for_panels(task.count, [&]<int N>(int64_t lane) __attribute__((always_inline)) {
    place_queries<A, N>(task, lane, s.queries + lane * padded);
  });
  History block, next;
  locate(task, task.first / kPositions * kPositions, &block);
  while (block.count > 0) {
    if (block.begin % helios::kSpan == 0 || block.begin <= task.first)
      clear_span(s, padded_dim(task.count), padded);
    lay_keys<A>(task, task.keys, block, s.keys);
    lay_values<A>(task, task.values, block, s.values);
    locate(task, block.begin + kPositions, &next);
    const Stream values(task.values, next, bytes_ahead(task));
    Stream(task.keys, next, bytes_ahead(task), &values).advance(2 * values.lines());
    for_panels(task.count, [&]<int N>(int64_t lane) __attribute__((always_inline)) {
      fold_panel<A, N>(task, s, block, lane);
    });
    if (next.begin % helios::kSpan == 0 || next.count <= 0)
      for_panels(task.count, [&]<int N>(int64_t lane) __attribute__((always_inline)) {
        merge_panel<N>(task, s, lane);
      });
    block = next;
  }
}

// ---- a few queries: positions in the lanes -----------------------------------------------------

// A few queries leave too little work to lay keys and values out anew for it: they take them from
// the cache directly.
constexpr int kFewQueries = 8;

// Vectors of columns that the registers hold for R queries.
template <int R>
constexpr int few_vectors() {
  int vectors = 4;
  while (vectors > 1 && R * vectors > 2 * kFloatTile) vectors /= 2;
  return vectors;
}

// scores[R][P * W] = queries . keys of P vectors of positions; `stride` bytes lie between lanes of a
// head. Lanes past the last position hold whatever lies there.
template <class Rows, int R, int P>
HK void few_products(const uint8_t* keys, const int64_t* offset, int64_t stride, int64_t depth,
                     const float* queries, int64_t padded, Stream& ahead, int64_t lines,
                     float* scores) {
  vf acc[P][R];
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q) acc[p][q] = zero();
  const uint8_t* at[P];
  for (int p = 0; p < P; ++p) at[p] = keys + offset[p * W];
  for (int64_t k = 0; k < depth; ++k) {
    ahead.advance(lines);
    vf key[P];
#pragma GCC unroll 4
    for (int p = 0; p < P; ++p) key[p] = Rows::lanes(at[p] + k * stride);
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q) {
      const vf x = set(queries[q * padded + k]);
#pragma GCC unroll 4
      for (int p = 0; p < P; ++p) acc[p][q] = Rows::add(acc[p][q], x, key[p]);
    }
  }
#pragma GCC unroll 4
  for (int p = 0; p < P; ++p)
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q) store(scores + q * kPositions + p * W, acc[p][q]);
}

// scores[R][64] = queries . keys. Side by side, vectors of positions wait less for their sums.
template <class Rows, int R, int P = few_vectors<R>()>
HK void few_scores(const uint8_t* keys, const int64_t* offset, int64_t stride, int64_t count,
                   int64_t depth, const float* queries, int64_t padded, Stream& ahead,
                   int64_t lines, float* scores, int64_t p = 0) {
  for (; count - p > (P - 1) * W; p += P * W)
    few_products<Rows, R, P>(keys, offset + p, stride, depth, queries, padded, ahead, lines,
                             scores + p);
  if constexpr (P > 1)
    if (p < count)
      few_scores<Rows, R, P / 2>(keys, offset, stride, count, depth, queries, padded, ahead, lines,
                                 scores, p);
}

// output[R][dim] = output * correction + weights . values from column d on, N vectors at a time and
// the rest by fewer. `ahead` advances with the first.
template <class Rows, int R, int N>
HK void few_values(const uint8_t* values, const int64_t* offset, int64_t count, int64_t padded,
                   const float* weights, const float* correction, Stream& ahead,
                   int64_t lines, float* output, int64_t d = 0) {
  for (; d + N * W <= padded; d += N * W) {
    vf acc[R][N];
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v)
        acc[q][v] = mul(load(output + q * padded + d + v * W), set(correction[q]));
    for_lanes<Rows>(count, [&](int64_t i, bool last) __attribute__((always_inline)) {
      if (d == 0) ahead.advance(lines);
      vf value[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) {
        value[v] = Rows::lanes(values + offset[i] + (d + v * W) * Rows::lane_bytes);
        if (last) value[v] = first_numbers<Rows>(value[v]);
      }
#pragma GCC unroll 8
      for (int q = 0; q < R; ++q) {
        const vf weight = set(weights[q * kPositions + i / Rows::width]);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) acc[q][v] = Rows::add(acc[q][v], weight, value[v]);
      }
    });
#pragma GCC unroll 8
    for (int q = 0; q < R; ++q)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(output + q * padded + d + v * W, acc[q][v]);
  }
  if constexpr (N > 1)
    few_values<Rows, R, N / 2>(values, offset, count, padded, weights, correction, ahead, lines,
                               output, d);
}

template <class Body>
HK void with_few(int count, Body body) {
  switch (count) {
    case 1: return body.template operator()<1>();
    case 2: return body.template operator()<2>();
    case 3: return body.template operator()<3>();
    case 4: return body.template operator()<4>();
    case 5: return body.template operator()<5>();
    case 6: return body.template operator()<6>();
    case 7: return body.template operator()<7>();
    case 8: return body.template operator()<8>();
    default: __builtin_unreachable();
  }
}

// Caps scores, hides those that a query does not see, and returns the largest.
HK float largest_score(const helios::AttentionTask& task, float* scores, int64_t low,
                       int64_t high) {
  if (task.softcap > 0.0f)
    for (int64_t i = 0; i < kPositions; i += W)
      store(scores + i, capped(load(scores + i), task.softcap));
  if (low > 0 || high < kPositions) {
    const vf from = set(static_cast<float>(low)), to = set(static_cast<float>(high));
    for (int64_t i = 0; i < kPositions; i += W) {
      const vf at = add(load(kLanes), set(static_cast<float>(i)));
      const vf early = select(less(at, to), load(scores + i), set(kNone));
      store(scores + i, select(less(at, from), set(kNone), early));
    }
  }
  vf top = load(scores);
#pragma GCC unroll 16
  for (int64_t i = W; i < kPositions; i += W) top = vmax(top, load(scores + i));
  return largest(top);
}

// Scores become weights, relative to the running maximum; returns their sum.
template <class A>
HK float weigh(float* scores, vf shift) {
  vf total = zero();
#pragma GCC unroll 16
  for (int64_t i = 0; i < kPositions; i += W) {
    const vf e = A::exp(sub(load(scores + i), shift));
    store(scores + i, e);
    total = add(total, e);
  }
  A::pack(scores, kPositions);
  return sum(total);
}

// The scores of every head become weights.
template <class A>
void weigh_few(const helios::AttentionTask& task, const AttentionScratch& s,
               const History& block) {
  const int64_t queries = task.heads * task.count;
  for (int64_t q = 0; q < queries; ++q) {
    int64_t low, high;
    visible(task, task.positions[q % task.count], block, &low, &high);
    const float top = largest_score(task, s.scores + q * kPositions, low, high);
    s.correction[q] = s.maximum[q];
    if (top > s.maximum[q]) s.maximum[q] = top;
  }
  for (int64_t q = 0; q < queries; q += W) {
    const vf shift = anchor(load(s.maximum + q));
    store(s.correction + q, exp_falling(sub(load(s.correction + q), shift)));
  }
  for (int64_t q = 0; q < queries; ++q) {
    const float weight = weigh<A>(s.scores + q * kPositions, anchor(set(s.maximum[q])));
    s.total[q] = s.total[q] * s.correction[q] + weight;
  }
}

// Calls body with the type of a block's keys, where they lie, where each vector of positions begins,
// and the bytes between lanes of a head. Pages that don't hold whole vectors are laid out first.
template <class A, class Body>
HK void with_keys(const helios::AttentionTask& task, int64_t head, const History& block,
                  float* scratch, Body body) {
  const uint8_t* plane = task.keys + head * task.head_stride;
  if (task.page_tokens % W == 0)
    return with_rows<A>(task, [&]<class Rows>(Rows rows) __attribute__((always_inline)) {
      body(rows, plane, block.key, task.page_tokens * Rows::lane_bytes);
    });
  lay_keys<A>(task, plane, block, scratch);
  int64_t offset[kPositions];
  for (int64_t i = 0; i < kPositions; ++i) offset[i] = i * 4;
  body(LaneRows<A>{}, reinterpret_cast<const uint8_t*>(scratch), offset, kPositions * 4);
}

// Calls body with the type of a block's values, where they lie, and where each row of them begins.
// Heads that don't fill whole vectors are laid out first.
template <class A, class Body>
HK void with_values(const helios::AttentionTask& task, int64_t head, const History& block,
                    float* scratch, Body body) {
  const uint8_t* plane = task.values + head * task.head_stride;
  const int64_t padded = padded_dim(task.dim);
  if (padded == task.dim)
    return with_rows<A>(task, [&]<class Rows>(Rows rows) __attribute__((always_inline)) {
      body(rows, plane, block.value);
    });
  lay_values<A>(task, plane, block, scratch);
  int64_t offset[kPositions];
  for (int64_t i = 0; i < block.count; ++i) offset[i] = i / A::width * padded * 4;
  body(LaneRows<A>{}, reinterpret_cast<const uint8_t*>(scratch), offset);
}

// One block of every head into the span's running softmax; `next` is read after it, for `then`.
template <class A, int R>
__attribute__((noinline)) void fold_few(const helios::AttentionTask& task,
                                        const AttentionScratch& s, const History& block,
                                        const helios::AttentionTask& then, const History& next) {
  const int64_t padded = padded_dim(task.dim), count = block.count, depth = lanes_for<A>(task.dim);
  constexpr int64_t kAtOnce = few_vectors<R>() * W;
  const Stream keys(then.keys, next, bytes_ahead(then));
  Stream ahead(task.values, block, bytes_ahead(task), &keys);
  // Scores take longer than what is made of them, so half again as much is asked for meanwhile as
  // they read themselves.
  const int64_t steps = task.heads * divided_up(count, kAtOnce) * depth;
  const int64_t step_lines = divided_up(ahead.lines() * 3 / 2, steps);
  const int64_t row_lines = divided_up(keys.lines(), task.heads * lanes_for<A>(count));
  for (int64_t h = 0; h < task.heads; ++h)
    with_keys<A>(task, h, block, s.keys, [&]<class Rows>(
        Rows, const uint8_t* plane, const int64_t* offset,
        int64_t stride) __attribute__((always_inline)) {
      few_scores<Rows, R>(plane, offset, stride, count, depth, s.queries + h * R * padded, padded,
                          ahead, step_lines, s.scores + h * R * kPositions);
    });
  weigh_few<A>(task, s, block);
  for (int64_t h = 0; h < task.heads; ++h)
    with_values<A>(task, h, block, s.values, [&]<class Rows>(
        Rows, const uint8_t* plane, const int64_t* offset) __attribute__((always_inline)) {
      few_values<Rows, R, few_vectors<R>()>(plane, offset, count, padded,
                                            s.scores + h * R * kPositions, s.correction + h * R,
                                            ahead, row_lines, s.output + h * R * padded);
    });
}

template <class A>
HK void attend_few(const helios::AttentionTask& task) {
  const int64_t padded = padded_dim(task.dim), queries = task.heads * task.count;
  const AttentionScratch s(task, queries);
  for (int64_t q = 0; q < queries; ++q) {
    scale_row(task.queries[q], task.scale, s.queries + q * padded, task.dim);
    for (int64_t i = task.dim; i < padded; ++i) s.queries[q * padded + i] = 0.0f;
    A::pack(s.queries + q * padded, padded);
  }
  History block, next;
  locate(task, task.first / kPositions * kPositions, &block);
  while (block.count > 0) {
    if (block.begin % helios::kSpan == 0 || block.begin <= task.first)
      clear_span(s, queries, padded);
    locate(task, block.begin + kPositions, &next);
    const bool last = next.count <= 0, ends = last || next.begin % helios::kSpan == 0;
    const helios::AttentionTask& then = last && task.next != nullptr ? *task.next : task;
    if (last && task.next != nullptr) locate(then, then.first / kPositions * kPositions, &next);
    with_few(task.count, [&]<int R>() __attribute__((always_inline)) {
      fold_few<A, R>(task, s, block, then, next);
    });
    if (ends)
      merge(task.maximum, task.total, task.output, s.maximum, s.total, s.output, queries, padded);
    if (last) return;
    block = next;
  }
}

template <class A>
HK void attend_as(const helios::AttentionTask& task) {
  if (task.count <= kFewQueries) return attend_few<A>(task);
  helios::AttentionTask one = task;
  one.heads = 1;
  for (int h = 0; h < task.heads; ++h) {
    attend_many<A>(one);
    one.queries += task.count;
    one.keys += task.head_stride;
    one.values += task.head_stride;
    one.maximum += task.count;
    one.total += task.count;
    one.output += task.count * padded_dim(task.dim);
  }
}

void attend(const helios::AttentionTask& task) {
#ifdef HELIOS_PAIRS
  if (task.pairs) return attend_as<Pairs>(task);
#endif
  attend_as<Singles>(task);
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
