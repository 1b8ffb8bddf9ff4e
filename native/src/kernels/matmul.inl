// Matrix products: sixteen output rows (a block) by a few tokens.
//
// The sums of one (token, output row) are taken group by group in column order, exactly in
// integers inside a group and by the same two fused multiply-adds between groups, in every
// instantiation below. So a token's results don't depend on how many tokens share the call.
//
// Bounds. Without wide dot products, pairs are summed in 16 bits: a nibble times a byte is at most
// 15 * 127 = 1,905, a pair 3,810, the eight pairs of a group 30,480 < 2^15. Bytes are split into
// two nibbles there. In 32 bits, 32 * 255 * 127 < 2^21; both planes together 255 * 2^21 < 2^29, and
// so are words: 32 * 255 * 32,512 < 2^29.

constexpr int V = helios::kBlockRows / W;

enum class Source { NIBBLES, SMALL_BYTES, BYTES };  // SMALL_BYTES: unpacked nibbles

template <Source S, int HALVES, bool MINIMUM, bool HALF_SCALES, int BLOCKS = 1>
struct Traits {
  template <Source OTHER, int COUNT>
  using With = Traits<OTHER, HALVES, MINIMUM, HALF_SCALES, COUNT>;
  static constexpr Source source = S;
  static constexpr int blocks = BLOCKS;
  static constexpr int halves = HALVES;  // scales per group of 32
  static constexpr bool minimum = MINIMUM;
  static constexpr bool half_scales = HALF_SCALES;
  static constexpr int scales_bytes = HALVES * helios::kBlockRows * (HALF_SCALES ? 2 : 4);
  static constexpr int header_bytes = scales_bytes * (MINIMUM ? 2 : 1);
  static constexpr int record_bytes = header_bytes + (S == Source::BYTES ? 512 : 256);
  static constexpr bool in_place = S != Source::SMALL_BYTES;
  static constexpr bool split = S == Source::BYTES && !kWideBytes;  // where multiplied as bytes
  static constexpr int all_vectors = V * BLOCKS;
};

// Where there are words, activations of 16 bits are multiplied as such and not as two planes.
#ifdef HELIOS_WORDS
constexpr bool kWords = true;
#else
constexpr bool kWords = false;
#endif

// Vectors of output rows that are taken at once.
template <class T, int P>
constexpr int vectors_of() {
  return T::split && !(kWords && P == 2) ? 1 : T::all_vectors;
}

// Records of a block; the data lies in them, or unpacked in scratch. `ahead` is how far beyond a
// record the memory lies that will be wanted soon.
struct BlockView {
  const uint8_t* records;
  const uint8_t* data;
  int64_t groups;
  int64_t ahead;
  int64_t next_records;  // from a block to the block after it
  int64_t next_data;
};

template <bool HALF_SCALES>
HK vf load_scale(const uint8_t* table, int64_t index) {
  if constexpr (HALF_SCALES)
    return load_f16(reinterpret_cast<const uint16_t*>(table) + index);
  else
    return load(reinterpret_cast<const float*>(table) + index);
}

// Bytes of step j of half h, for the rows of vector v; a second block lies `next` bytes on.
template <class T>
HK bytes load_step(const uint8_t* data, int64_t next, int h, int j, int v) {
  const uint8_t* at = data + v / V * next + v % V * 4 * W;
  if constexpr (T::source == Source::NIBBLES) {
    const bytes raw = load_bytes(at + j * 64);
    return h == 0 ? low_nibbles(raw) : high_nibbles(raw);
  } else {
    return load_bytes(at + (h * 4 + j) * 64);
  }
}

// Integer products of halves [H0, H1) of a group with plane `q` of RT tokens.
template <int RT, int N, class T, int H0, int H1>
HK void group_products(const uint8_t* data, int64_t next, int v0, const int8_t* q,
                       const int32_t* offset, vi (&dot)[RT][N]) {
  if constexpr (T::split) {
    sums low[RT], high[RT];
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t) low[t] = high[t] = no_sums();
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 2
      for (int h = H0; h < H1; ++h) {
        const bytes w = load_step<T>(data, next, h, j, v0);
        const bytes w0 = low_nibbles(w), w1 = high_nibbles(w);
#pragma GCC unroll 16
        for (int t = 0; t < RT; ++t) {
          const bytes a = broadcast4(q + t * 32 + h * 16 + j * 4);
          low[t] = accumulate(low[t], w0, a);
          high[t] = accumulate(high[t], w1, a);
        }
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t)
      dot[t][0] = iadd(iadd(shift_left<4>(finish(high[t])), finish(low[t])), iset(offset[t]));
  } else {
    sums s[RT][N];
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) s[t][v] = no_sums();
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
#pragma GCC unroll 2
      for (int h = H0; h < H1; ++h) {
        bytes w[N];
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          w[v] = load_step<T>(data, next, h, j, v0 + v);
#ifdef HELIOS_SIGNED_BYTES
          if constexpr (T::source == Source::BYTES) w[v] = centred(w[v]);
#endif
        }
#pragma GCC unroll 16
        for (int t = 0; t < RT; ++t) {
          const bytes a = broadcast4(q + t * 32 + h * 16 + j * 4);
#pragma GCC unroll 4
          for (int v = 0; v < N; ++v) s[t][v] = accumulate(s[t][v], w[v], a);
        }
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) {
        dot[t][v] = finish(s[t][v]);
#ifndef HELIOS_SIGNED_BYTES
        if constexpr (T::source == Source::BYTES) dot[t][v] = iadd(dot[t][v], iset(offset[t]));
#endif
      }
  }
}

#ifdef HELIOS_WORDS
// The same with words, two columns to a lane: see `store_word_pairs`.
template <int RT, int N, class T, int H0, int H1>
HK void word_products(const uint8_t* data, int64_t next, int v0, const int8_t* q,
                      const int32_t* offset, vi (&dot)[RT][N]) {
#pragma GCC unroll 16
  for (int t = 0; t < RT; ++t)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v)
      dot[t][v] = iset(T::source == Source::BYTES ? offset[t] : 0);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j)
#pragma GCC unroll 2
    for (int h = H0; h < H1; ++h) {
      vi even[N], odd[N];
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) {
        const bytes w = load_step<T>(data, next, h, j, v0 + v);
        even[v] = even_bytes(w);
        odd[v] = odd_bytes(w);
      }
#pragma GCC unroll 16
      for (int t = 0; t < RT; ++t) {
        const int8_t* pairs = q + (t * 32 + h * 16 + j * 4) * 2;
        const bytes a = broadcast4(pairs), b = broadcast4(pairs + 4);
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v)
          dot[t][v] = add_pairs(add_pairs(dot[t][v], even[v], a), odd[v], b);
      }
    }
}
#endif

// All bits of a group's half (or of the whole group, if its halves share a scale).
template <int RT, int N, class T, int P, int H0, int H1>
HK void half_products(const uint8_t* data, int64_t next, int v0, const uint8_t* record, int lane,
                      vi (&dot)[RT][N]) {
  constexpr int part = H1 - H0 == 2 ? 2 : H0;
  const int32_t* offsets =
      reinterpret_cast<const int32_t*>(record + helios::kOffsetAt) + part * 16 + lane;
  const int8_t* q = reinterpret_cast<const int8_t*>(record + helios::bytes_at(P));
#ifdef HELIOS_WORDS
  if constexpr (P == 2)
    return word_products<RT, N, T, H0, H1>(data, next, v0, q + lane * 64, offsets, dot);
#endif
  q += lane * 32;
  group_products<RT, N, T, H0, H1>(data, next, v0, q, offsets, dot);
  if constexpr (P == 2) {
    vi low[RT][N];
    group_products<RT, N, T, H0, H1>(data, next, v0, q + 512, offsets + 48, low);
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v)
        dot[t][v] = iadd(isub(shift_left<8>(dot[t][v]), dot[t][v]), low[t][v]);
  }
}

// Weights stream from memory, so ask for what comes a few groups later. Past the end of the weights
// this does nothing.
constexpr int64_t kAhead = 10240, kFarAhead = 32 << 10;

template <int BYTES>
HK void prefetch(const uint8_t* p) {
#pragma GCC unroll 16
  for (int i = 0; i < BYTES; i += 64) __builtin_prefetch(p + i);
}

// out[t * pitch][16] for RT tokens that share a record, from its lane `lane` on.
template <int RT, class T, int P>
HK void tile(const BlockView& b, const uint8_t* records, int64_t record_bytes, int lane, float* out,
             int64_t pitch) {
  constexpr int N = vectors_of<T, P>();
  const int64_t next = T::in_place ? b.next_records : b.next_data;
  for (int v0 = 0; v0 < T::all_vectors; v0 += N) {
    vf acc[RT][N];
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[t][v] = zero();
    for (int64_t g = 0; g < b.groups; ++g) {
      const uint8_t* record = records + g * record_bytes;
      const uint8_t* weights = b.records + g * T::record_bytes;
      const uint8_t* data = T::in_place ? weights + T::header_bytes : b.data + g * 512;
      const float* scales = reinterpret_cast<const float*>(record) + lane;
#pragma GCC unroll 2
      for (int i = 0; i < T::blocks; ++i)
        prefetch<T::record_bytes>(weights + i * b.next_records + b.ahead);
      const auto half = [&]<int H0, int H1>() __attribute__((always_inline)) {
        vi dot[RT][N];
        half_products<RT, N, T, P, H0, H1>(data, next, v0, record, lane, dot);
        constexpr int part = H1 - H0 == 2 ? 2 : H0;
        const float* minimum_sums =
            reinterpret_cast<const float*>(record + helios::kSumsAt) + part * 16 + lane;
#pragma GCC unroll 4
        for (int v = 0; v < N; ++v) {
          const int64_t index = (T::halves == 2 ? H0 * 16 : 0) + (v0 + v) % V * W;
          const uint8_t* header = weights + (v0 + v) / V * b.next_records;
          const vf d = load_scale<T::half_scales>(header, index);
          [[maybe_unused]] vf m;
          if constexpr (T::minimum) m = load_scale<T::half_scales>(header + T::scales_bytes, index);
#pragma GCC unroll 16
          for (int t = 0; t < RT; ++t) {
            acc[t][v] = fma(mul(to_float(dot[t][v]), d), set(scales[t]), acc[t][v]);
            if constexpr (T::minimum) acc[t][v] = fma(m, set(minimum_sums[t]), acc[t][v]);
          }
        }
      };
      if constexpr (T::halves == 1) {
        half.template operator()<0, 2>();
      } else {
        half.template operator()<0, 1>();
        half.template operator()<1, 2>();
      }
    }
#pragma GCC unroll 16
    for (int t = 0; t < RT; ++t)
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) store(out + t * pitch + (v0 + v) * W, acc[t][v]);
  }
}

template <class T, int P, int RT>
__attribute__((noinline)) void tile_of(const BlockView& b, const uint8_t* records,
                                       int64_t record_bytes, int lane, float* out,
                                       int64_t pitch) {
  tile<RT, T, P>(b, records, record_bytes, lane, out, pitch);
}

using TileFunction = void (*)(const BlockView&, const uint8_t*, int64_t, int, float*, int64_t);

template <class T, int P>
HK TileFunction tile_for(int tokens) {
  switch (tokens) {
    case 1: return tile_of<T, P, 1>;
    case 2: return tile_of<T, P, 2>;
    case 3: return tile_of<T, P, 3>;
    case 4: return tile_of<T, P, 4>;
  }
  if constexpr (kTokenTile > 4) {
    switch (tokens) {
      case 5: return tile_of<T, P, 5>;
      case 6: return tile_of<T, P, 6>;
      case 7: return tile_of<T, P, 7>;
      case 8: return tile_of<T, P, 8>;
    }
  }
  __builtin_unreachable();
}

// Two blocks at once, which only the widest vectors take, fill the registers with fewer tokens.
template <class T>
constexpr int tile_tokens() {
  return T::blocks == 1 ? kTokenTile : 6;
}

template <class T, int P>
HK void all_tiles(BlockView view, const helios::Quant& quant, int64_t begin, int64_t end,
                  float* out, int64_t pitch) {
  for (int64_t t = begin; t < end;) {
    const int lane = static_cast<int>(t % helios::kQuantTile);
    constexpr int kMost = tile_tokens<T>();
    const int here = lane + kMost < helios::kQuantTile ? kMost : helios::kQuantTile - lane;
    const int tokens = static_cast<int>(end - t < here ? end - t : here);
    // The next block is on its way after the first tile of tokens.
    if (t > begin) view.ahead = 0;
    tile_for<T, P>(tokens)(view, quant.at(t, 0), quant.record(), lane, out + (t - begin) * pitch,
                           pitch);
    t += tokens;
  }
}

template <class T>
HK void all_planes(const BlockView& b, const helios::Quant& quant, int64_t begin, int64_t end,
                   float* out, int64_t pitch) {
  if (quant.planes == 1)
    all_tiles<T, 1>(b, quant, begin, end, out, pitch);
  else
    all_tiles<T, 2>(b, quant, begin, end, out, pitch);
}

// Nibbles of a whole block as bytes, in the order of the W8 layouts.
template <class T>
HK void unpack_nibbles(const uint8_t* records, int64_t groups, uint8_t* out) {
  for (int64_t g = 0; g < groups; ++g, out += 512) {
    const uint8_t* record = records + g * T::record_bytes;
    prefetch<T::record_bytes>(record + kAhead);
#pragma GCC unroll 16
    for (int i = 0; i < 4 * V; ++i) {
      const bytes raw = load_bytes(record + T::header_bytes + i * 4 * W);
      store_bytes(out + i * 4 * W, low_nibbles(raw));
      store_bytes(out + 256 + i * 4 * W, high_nibbles(raw));
    }
  }
}

// Calls body with the traits of an integer layout.
template <class Body>
HK void with_traits(helios::Layout layout, Body body) {
  switch (layout) {
    case helios::Layout::W4G32: return body(Traits<Source::NIBBLES, 1, true, true>{});
    case helios::Layout::W4G32F: return body(Traits<Source::NIBBLES, 1, true, false>{});
    case helios::Layout::W8G32: return body(Traits<Source::BYTES, 1, false, true>{});
    case helios::Layout::W8G32M: return body(Traits<Source::BYTES, 1, true, false>{});
    case helios::Layout::W8G16: return body(Traits<Source::BYTES, 2, false, false>{});
    case helios::Layout::W8G16M: return body(Traits<Source::BYTES, 2, true, false>{});
    default: __builtin_unreachable();
  }
}

// Nibbles are unpacked as they stream by for one tile of tokens and where the block says so, else
// once to scratch.
template <class T>
HK void dot_blocks(const helios::Block& block, const helios::Quant& quant, int64_t begin,
                   int64_t end, float* out, int64_t pitch, uint8_t* scratch) {
  const int64_t groups = block.columns / helios::kGroup;
  const int64_t nbytes = groups * T::record_bytes;
  // Two short blocks side by side are over before a look ahead within them pays: look to the next.
  const int64_t pair = T::blocks * nbytes;
  const int64_t ahead = T::blocks == 2 && pair <= kFarAhead ? pair : kAhead;
  BlockView view{block.base, nullptr, groups, ahead, nbytes, groups * 512};
  if constexpr (T::source == Source::NIBBLES) {
    if (end - begin > kTokenTile && !block.streams) {
      for (int i = 0; i < T::blocks; ++i)
        unpack_nibbles<T>(view.records + i * nbytes, groups, scratch + i * view.next_data);
      view.data = scratch;
      view.ahead = pair;
      return all_planes<typename T::template With<Source::SMALL_BYTES, T::blocks>>(
          view, quant, begin, end, out, pitch);
    }
  }
  all_planes<T>(view, quant, begin, end, out, pitch);
}

void dot(const helios::Block& block, int blocks, const helios::Quant& quant, int64_t begin,
         int64_t end, float* out, int64_t pitch, uint8_t* scratch) {
  with_traits(block.layout, [&]<class T>(T) __attribute__((always_inline)) {
    // So few tokens wait for memory, which one stream uses best.
    constexpr int64_t kStreamed = 3;
    if constexpr (kBlocks == 2)
      if (blocks == 2 && end - begin > kStreamed)
        return dot_blocks<typename T::template With<T::source, 2>>(block, quant, begin, end, out,
                                                                   pitch, scratch);
    for (int i = 0; i < blocks; ++i) {
      const int64_t at = i * block.columns / helios::kGroup * T::record_bytes;
      const helios::Block one{block.base + at, block.layout, block.columns, block.streams};
      dot_blocks<T>(one, quant, begin, end, out + i * helios::kBlockRows, pitch, scratch);
    }
  });
}

// ---- float activations ----------------------------------------------------------------------

// c[r][0 .. N * W) = a[r][0 .. depth) . b[0 .. depth)[0 .. N * W), in order of depth.
template <int R, int N>
HK void small_product(const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                      int64_t depth, float* c, int64_t c_stride) {
  vf acc[R][N];
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) acc[r][v] = zero();
#pragma GCC unroll 4
  for (int64_t k = 0; k < depth; ++k) {
    vf row[N];
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) row[v] = load(b + k * b_stride + v * W);
#pragma GCC unroll 16
    for (int r = 0; r < R; ++r) {
      const vf x = set(a[r * a_stride + k]);
#pragma GCC unroll 4
      for (int v = 0; v < N; ++v) acc[r][v] = fma(x, row[v], acc[r][v]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) store(c + r * c_stride + v * W, acc[r][v]);
}

template <int N, int R = kFloatTile>
HK void some_rows(int rows, const float* a, int64_t a_stride, const float* b, int64_t b_stride,
                  int64_t depth, float* c, int64_t c_stride) {
  if constexpr (R > 0) {
    if (rows == R) return small_product<R, N>(a, a_stride, b, b_stride, depth, c, c_stride);
    some_rows<N, R - 1>(rows, a, a_stride, b, b_stride, depth, c, c_stride);
  }
}

// Columns in steps of N vectors; they are a multiple of N * W.
template <int N>
void product_rows(int64_t rows, int64_t columns, int64_t depth, const float* a, int64_t a_stride,
                  const float* b, int64_t b_stride, float* c, int64_t c_stride) {
  for (int64_t n = 0; n < columns; n += N * W)
    for (int64_t r = 0; r < rows; r += kFloatTile) {
      const int here = static_cast<int>(rows - r < kFloatTile ? rows - r : kFloatTile);
      some_rows<N>(here, a + r * a_stride, a_stride, b + n, b_stride, depth,
                   c + r * c_stride + n, c_stride);
    }
}

// Column 4j + I of every row of a vector: byte I of its words.
template <class T, int I>
HK vf column(const uint8_t* data, int k, int v) {
  const int64_t at = (T::source == Source::NIBBLES ? k % 16 : k) / 4 * 64 + v * 4 * W;
  vi word = shift_right<8 * I>(load_words(data + at));
  if constexpr (T::source == Source::BYTES)
    return to_float(isub(keep_bits(word, 255), iset(128)));
  else
    return to_float(keep_bits(k < 16 ? word : shift_right<4>(word), 15));
}

// A block's weights as floats: scale * q (+ minimum), [columns][16].
template <class T>
HK void floats_of(const uint8_t* records, int64_t groups, float* out) {
  for (int64_t g = 0; g < groups; ++g, out += 32 * 16) {
    const uint8_t* record = records + g * T::record_bytes;
    const uint8_t* data = record + T::header_bytes;
    prefetch<T::record_bytes>(record + kAhead);
    for (int k = 0; k < 32; k += 4)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const int64_t index = (T::halves == 2 ? k / 16 * 16 : 0) + v * W;
        const vf d = load_scale<T::half_scales>(record, index);
        vf m = zero();
        if constexpr (T::minimum) m = load_scale<T::half_scales>(record + T::scales_bytes, index);
        const auto put = [&]<int I>() __attribute__((always_inline)) {
          vf w = mul(column<T, I>(data, k, v), d);
          if constexpr (T::minimum) w = add(w, m);
          store(out + (k + I) * 16 + v * W, w);
        };
        put.template operator()<0>();
        put.template operator()<1>();
        put.template operator()<2>();
        put.template operator()<3>();
      }
  }
}

struct F16Element {
  using type = uint16_t;
  static vf get(const uint16_t* p) { return load_f16(p); }
};
struct Bf16Element {
  using type = uint16_t;
  static vf get(const uint16_t* p) { return load_bf16(p); }
};
struct F32Element {
  using type = float;
  static vf get(const float* p) { return load(p); }
};

// Float products sum four runs of columns apart and then add the runs in order. One token alone has
// too few chains of additions to keep the processor busy, so it takes the four runs side by side.
constexpr int kRuns = 4;

template <class Element>
HK void one_token(const typename Element::type* weights, const float* x, int64_t columns,
                  float* out) {
  const int64_t run = (columns + kRuns - 1) / kRuns;
  const int64_t last = columns - (kRuns - 1) * run;  // the shortest; may be empty
  const int64_t shared = last > 0 ? last : 0;
  vf acc[kRuns][V];
#pragma GCC unroll 4
  for (int s = 0; s < kRuns; ++s)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) acc[s][v] = zero();
  const auto step = [&](int s, int64_t k) __attribute__((always_inline)) {
    const vf value = set(x[k]);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v)
      acc[s][v] = fma(value, Element::get(weights + k * 16 + v * W), acc[s][v]);
  };
  for (int64_t i = 0; i < shared; ++i)
#pragma GCC unroll 4
    for (int s = 0; s < kRuns; ++s) {
      __builtin_prefetch(weights + (s * run + i + columns) * 16);  // the next block
      step(s, s * run + i);
    }
#pragma GCC unroll 4
  for (int s = 0; s < kRuns; ++s)
    for (int64_t k = s * run + shared; k < (s + 1) * run && k < columns; ++k) step(s, k);
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    vf total = acc[0][v];
#pragma GCC unroll 4
    for (int s = 1; s < kRuns; ++s) total = add(total, acc[s][v]);
    store(out + v * W, total);
  }
}

template <class Element>
void few_tokens(const uint8_t* weights, const float* x, int64_t stride, int64_t count,
                int64_t columns, float* out, int64_t pitch) {
  for (int64_t t = 0; t < count; ++t)
    one_token<Element>(reinterpret_cast<const typename Element::type*>(weights), x + t * stride,
                       columns, out + t * pitch);
}

// The same sums for many tokens, from weights in single precision.
void many_tokens(const float* weights, const float* x, int64_t stride, int64_t count,
                 int64_t columns, float* out, int64_t pitch) {
  const int64_t run = (columns + kRuns - 1) / kRuns;
  alignas(64) float part[kFloatTile * 16];
  for (int64_t t = 0; t < count; t += kFloatTile) {
    const int64_t here = count - t < kFloatTile ? count - t : kFloatTile;
    for (int64_t k = 0; k < kRuns * run; k += run) {
      const int64_t depth = columns - k < run ? columns - k : run;
      float* to = k == 0 ? out + t * pitch : part;
      const int64_t to_pitch = k == 0 ? pitch : 16;
      product_rows<V>(here, 16, depth > 0 ? depth : 0, x + t * stride + k, stride,
                      weights + k * 16, 16, to, to_pitch);
      if (k == 0) continue;
      for (int64_t r = 0; r < here; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) {
          float* total = out + (t + r) * pitch + v * W;
          store(total, add(load(total), load(part + r * 16 + v * W)));
        }
    }
  }
}

HK void halves_to_floats(const helios::Block& block, float* out) {
  const uint16_t* half = reinterpret_cast<const uint16_t*>(block.base);
  const int64_t n = block.columns * 16;
  if (block.layout == helios::Layout::F16)
    for (int64_t i = 0; i < n; i += W) store(out + i, load_f16(half + i));
  else
    for (int64_t i = 0; i < n; i += W) store(out + i, load_bf16(half + i));
}

constexpr int64_t kFewTokens = 3;

void dot_float(const helios::Block& block, const float* x, int64_t stride, int64_t count,
               float* out, int64_t pitch, float* scratch) {
  using helios::Layout;
  const bool few = count <= kFewTokens;
  const int64_t columns = block.columns;
  const uint8_t* weights = block.base;
  switch (block.layout) {
    case Layout::F16:
      if (few) return few_tokens<F16Element>(weights, x, stride, count, columns, out, pitch);
      halves_to_floats(block, scratch);
      break;
    case Layout::BF16:
      if (few) return few_tokens<Bf16Element>(weights, x, stride, count, columns, out, pitch);
      halves_to_floats(block, scratch);
      break;
    case Layout::F32: break;
    default:
      with_traits(block.layout, [&]<class T>(T) __attribute__((always_inline)) {
        floats_of<T>(block.base, columns / helios::kGroup, scratch);
      });
  }
  const float* floats =
      block.layout == Layout::F32 ? reinterpret_cast<const float*>(weights) : scratch;
  if (few)
    return few_tokens<F32Element>(reinterpret_cast<const uint8_t*>(floats), x, stride, count,
                                  columns, out, pitch);
  many_tokens(floats, x, stride, count, columns, out, pitch);
}

void store_block(const float* tile, int64_t pitch, int64_t count, int lanes, const float* bias,
                 const float* residual, float* out, int64_t stride) {
  for (int64_t t = 0; t < count; ++t)
    for (int i = 0; i < lanes; i += W) {
      const int n = lanes - i < W ? lanes - i : W;
      vf y = load(tile + t * pitch + i);
      if (bias != nullptr) y = add(y, load_some(bias + i, n));
      if (residual != nullptr) y = add(load_some(residual + t * stride + i, n), y);
      store_some(out + t * stride + i, y, n);
    }
}
