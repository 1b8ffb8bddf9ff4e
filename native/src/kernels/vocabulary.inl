// Kernels over a row of logits.

float largest_of(const float* x, int64_t n) {
  vf top = set(-__builtin_inff());
  for_vectors(n, [&](int64_t i, int lanes) __attribute__((always_inline)) {
    vf v = load_some(x + i, lanes);
    if (lanes < W) {  // missing lanes must not count as zero
      alignas(64) float padded[W];
      store(padded, v);
      for (int j = lanes; j < W; ++j) padded[j] = -__builtin_inff();
      v = load(padded);
    }
    top = vmax(v, top);
  });
  return largest(top);
}

int64_t argmax(const float* x, int64_t n) {
  const float top = largest_of(x, n);
  int64_t i = 0;
  const vf below = set(top);
  for (; i + W <= n; i += W) {
    // The first vector with an element that is not below the largest.
    vf v = load(x + i);
    const vf hit = select(less(v, below), zero(), set(1.0f));
    if (any(less(zero(), hit))) break;
  }
  for (; i < n; ++i)
    if (x[i] == top) return i;
  return 0;
}

double sum_exp(const float* x, float shift, float factor, float* terms, int64_t n) {
  // Lanes in single precision over short runs, runs in double precision.
  constexpr int64_t kRun = 1024;
  double total = 0.0;
  for (int64_t begin = 0; begin < n; begin += kRun) {
    const int64_t length = n - begin < kRun ? n - begin : kRun;
    vf partial = zero();
    for_vectors(length, [&](int64_t i, int lanes) __attribute__((always_inline)) {
      const vf v = load_some(x + begin + i, lanes);
      vf e = exp_falling(mul(sub(v, set(shift)), set(factor)));
      if (lanes < W) {
        alignas(64) float kept[W];
        store(kept, e);
        for (int j = lanes; j < W; ++j) kept[j] = 0.0f;
        e = load(kept);
      }
      if (terms != nullptr) store_some(terms + begin + i, e, lanes);
      partial = add(partial, e);
    });
    total += static_cast<double>(sum(partial));
  }
  return total;
}
