// Kernels over one row: quantisation, norms, rotations, elementwise functions, conversions.

HK vf group_largest(const float* x) {
  vf top = vabs(load(x));
  for (int i = W; i < 32; i += W) top = vmax(top, vabs(load(x + i)));
  return top;
}

// The scale, and the sums of q over the halves and the whole of a group, times the scale.
HK void store_sums(uint8_t* record, int lane, float scale, const float (&sum_of)[2]) {
  reinterpret_cast<float*>(record)[lane] = scale;
  float* table = reinterpret_cast<float*>(record + helios::kSumsAt) + lane;
  table[0] = scale * sum_of[0];
  table[16] = scale * sum_of[1];
  table[32] = scale * (sum_of[0] + sum_of[1]);
}

// -128 * the sums of a plane.
HK void store_offsets(uint8_t* record, int lane, int plane, const float (&sum_of)[2]) {
  int32_t* table = reinterpret_cast<int32_t*>(record + helios::kOffsetAt) + plane * 48 + lane;
  table[0] = -128 * static_cast<int32_t>(sum_of[0]);
  table[16] = -128 * static_cast<int32_t>(sum_of[1]);
  table[32] = -128 * static_cast<int32_t>(sum_of[0] + sum_of[1]);
}

template <int P>
HK void quantise_group(const float* x, uint8_t* record, int lane) {
  constexpr float kLargest = P == 1 ? 127.0f : 32512.0f;  // 255 * 127 + 127
  const float top = largest(group_largest(x));
  // Below this the reciprocal would overflow; such a group is nothing beside any other.
  const bool live = top > 1e-30f;
  const float scale = live ? top / kLargest : 0.0f;
  const vf inverse = set(live ? kLargest / top : 0.0f);
  int8_t* q = reinterpret_cast<int8_t*>(record + helios::bytes_at(P)) +
              lane * (kWords ? P * 32 : 32);
  float sum_of[2], high_sum[2], low_sum[2];
  for (int h = 0; h < 2; ++h) {
    vf total = zero(), highs = zero(), lows = zero();
    for (int i = h * 16; i < h * 16 + 16; i += W) {
      vf value = nearest(mul(load(x + i), inverse));
      value = vmin(vmax(value, set(-kLargest)), set(kLargest));
      total = add(total, value);
      if constexpr (P == 1) {
        store_s8(q + i, to_int(value));
#ifdef HELIOS_WORDS
      } else {
        store_word_pairs(reinterpret_cast<int16_t*>(q) + i, to_int(value));
#else
      } else {
        const vf high = nearest(mul(value, set(1.0f / 255.0f)));
        const vf low = sub(value, mul(high, set(255.0f)));
        store_s8(q + i, to_int(high));
        store_s8(q + 512 + i, to_int(low));
        highs = add(highs, high);
        lows = add(lows, low);
#endif
      }
    }
    sum_of[h] = sum(total);
    high_sum[h] = sum(highs);
    low_sum[h] = sum(lows);
  }
  store_sums(record, lane, scale, sum_of);
  if constexpr (P == 1 || kWords) {
    store_offsets(record, lane, 0, sum_of);
  } else {
    store_offsets(record, lane, 0, high_sum);
    store_offsets(record, lane, 1, low_sum);
  }
}

void quantise(const float* x, const helios::Quant& quant, int64_t token, int64_t first_group,
              int64_t groups) {
  const int lane = static_cast<int>(token % helios::kQuantTile);
  for (int64_t g = 0; g < groups; ++g) {
    uint8_t* record = quant.at(token, first_group + g);
    if (quant.planes == 1)
      quantise_group<1>(x + g * 32, record, lane);
    else
      quantise_group<2>(x + g * 32, record, lane);
  }
}

void rms_norm(const float* x, const float* weight, float epsilon, float* y, int64_t n) {
  vf squares = zero();
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const vf v = load_some(x + i, lanes);
    squares = fma(v, v, squares);
  });
  const float mean = sum(squares) / static_cast<float>(n);
  const vf inverse = set(1.0f / __builtin_sqrtf(mean + epsilon));
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const vf v = mul(load_some(x + i, lanes), inverse);
    store_some(y + i, mul(v, load_some(weight + i, lanes)), lanes);
  });
}

void add_rows(const float* left, const float* right, float* y, int64_t n) {
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    store_some(y + i, add(load_some(left + i, lanes), load_some(right + i, lanes)), lanes);
  });
}

void scale_row(const float* x, float factor, float* y, int64_t n) {
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    store_some(y + i, mul(load_some(x + i, lanes), set(factor)), lanes);
  });
}

void softcap_row(const float* x, float cap, float* y, int64_t n) {
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const vf v = vtanh(div(load_some(x + i, lanes), set(cap)));
    store_some(y + i, mul(v, set(cap)), lanes);
  });
}

template <class Function>
HK void gate_row(Function function, const float* gate, const float* up, float* y, int64_t n) {
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    const vf g = function(load_some(gate + i, lanes));
    store_some(y + i, mul(g, load_some(up + i, lanes)), lanes);
  });
}

void gate(helios::Gate function, const float* gate, const float* up, float* y, int64_t n) {
  switch (function) {
    case helios::Gate::SILU: return gate_row([](vf x) { return vsilu(x); }, gate, up, y, n);
    case helios::Gate::GELU: return gate_row([](vf x) { return vgelu(x); }, gate, up, y, n);
    case helios::Gate::GELU_TANH:
      return gate_row([](vf x) { return vgelu_tanh(x); }, gate, up, y, n);
  }
}

void rope(const float* x, const float* table, int64_t pairs, bool interleaved, int64_t dim,
          float* y) {
  const float* sines = table + pairs;
  if (interleaved) {
    for (int64_t f = 0; f < pairs; ++f) {
      const float a = x[2 * f], b = x[2 * f + 1];
      y[2 * f] = a * table[f] - b * sines[f];
      y[2 * f + 1] = b * table[f] + a * sines[f];
    }
  } else {
    for_vectors(pairs, [&](int64_t f, int lanes) __attribute__((always_inline)) {
      const vf a = load_some(x + f, lanes), b = load_some(x + pairs + f, lanes);
      const vf c = load_some(table + f, lanes), s = load_some(sines + f, lanes);
      store_some(y + f, sub(mul(a, c), mul(b, s)), lanes);
      store_some(y + pairs + f, add(mul(b, c), mul(a, s)), lanes);
    });
  }
  if (x != y)
    for (int64_t i = 2 * pairs; i < dim; ++i) y[i] = x[i];
}

void to_cache(helios::DType type, const float* x, void* out, int64_t n) {
  if (type == helios::DType::F32) {
    __builtin_memcpy(out, x, static_cast<size_t>(n) * 4);
    return;
  }
  uint16_t* half = static_cast<uint16_t*>(out);
  if (type == helios::DType::BF16) {
    for (int64_t i = 0; i < n; ++i) half[i] = helios::f32_to_bf16(x[i]);
    return;
  }
  // Tails go through a padded copy, so that they are converted by the same instructions.
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    if (lanes == W) return store_f16(half + i, load(x + i));
    uint16_t padded[W];
    store_f16(padded, load_n(x + i, lanes));
    for (int j = 0; j < lanes; ++j) half[i + j] = padded[j];
  });
}
