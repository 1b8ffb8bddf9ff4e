// What the processor can do at best, for benchmarks to compare with.

// Keeps a value in a register and hides where it came from.
template <class T>
HK void opaque(T& value) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(value));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(value));
#endif
}

// Twelve independent chains are enough for any latency times throughput met so far.
constexpr int kChains = 12;

int64_t probe_integer(int64_t rounds, int64_t* done) {
  sums chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = no_sums();
  alignas(64) uint8_t ones[4 * W];
  for (int i = 0; i < 4 * W; ++i) ones[i] = 1;
  bytes weights = load_bytes(ones), activations = load_bytes(ones);
  for (int64_t r = 0; r < rounds; ++r) {
    opaque(weights);
    opaque(activations);
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = accumulate(chains[i], weights, activations);
  }
  vf total = zero();
  for (int i = 0; i < kChains; ++i) total = add(total, to_float(finish(chains[i])));
  *done = rounds * kChains * 4 * W;
  return static_cast<int64_t>(sum(total));
}

int64_t probe_float(int64_t rounds, int64_t* done) {
  vf chains[kChains];
  for (int i = 0; i < kChains; ++i) chains[i] = zero();
  vf a = set(1.0f), b = set(0.5f);
  for (int64_t r = 0; r < rounds; ++r) {
    opaque(a);
    opaque(b);
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chains[i] = fma(a, b, chains[i]);
  }
  vf total = zero();
  for (int i = 0; i < kChains; ++i) total = add(total, chains[i]);
  *done = rounds * kChains * W;
  return static_cast<int64_t>(sum(total));
}

int64_t probe_read(const uint8_t* data, int64_t nbytes) {
  vf total[4] = {zero(), zero(), zero(), zero()};
  constexpr int64_t kStep = 16 * W;
  for (int64_t i = 0; i + kStep <= nbytes; i += kStep) {
    __builtin_prefetch(data + i + 4096);
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j)
      total[j] = add(total[j], load(reinterpret_cast<const float*>(data + i) + j * W));
  }
  return static_cast<int64_t>(sum(add(add(total[0], total[1]), add(total[2], total[3]))));
}
