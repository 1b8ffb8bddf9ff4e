// Philox4x32-10 (Salmon et al., SC'11): random numbers as a pure function of key and counter.
#pragma once

#include <cstdint>

namespace helios {

// The first of the four words at key (low, high) and counter (counter, 0, 0, 0).
inline uint32_t philox(uint64_t key, uint32_t counter) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  uint32_t c[4] = {counter, 0, 0, 0};
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    const uint32_t next[4] = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0,
                              static_cast<uint32_t>(p1),
                              static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1,
                              static_cast<uint32_t>(p0)};
    for (int i = 0; i < 4; ++i) c[i] = next[i];
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c[0];
}

inline double uniform(uint64_t seed, uint32_t position) {
  return static_cast<double>(philox(seed, position) >> 8) * 0x1p-24;
}

}  // namespace helios
