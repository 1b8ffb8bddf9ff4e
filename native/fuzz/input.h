// Choices made from the bytes of a fuzzer; zeros where they have ended.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <vector>

#include "common.h"

namespace helios::fuzz {

class Input {
 public:
  Input(const uint8_t* data, size_t size) : rest_(data, size) {}

  template <class T>
  T take() {
    T value{};
    const size_t n = std::min(sizeof value, rest_.size());
    if (n > 0) std::memcpy(&value, rest_.data(), n);
    rest_ = rest_.subspan(n);
    return value;
  }

  int64_t below(int64_t limit) { return take<uint16_t>() % limit; }

  template <class Choices>
  auto one_of(const Choices& choices) {
    return choices[static_cast<size_t>(below(static_cast<int64_t>(std::size(choices))))];
  }

  // A small size as a rule; now and then one that no size can have.
  int64_t size(int64_t most) {
    static constexpr int64_t kAbsurd[] = {0, -1, INT32_MAX, kMost, kMost + 1, INT64_MAX, INT64_MIN};
    return below(16) == 0 ? one_of(kAbsurd) : 1 + below(most);
  }

  // Memory of exactly that size, so that a step beyond it is seen; repeats what bytes are left.
  std::vector<uint8_t> bytes(int64_t n) {
    std::vector<uint8_t> filled(static_cast<size_t>(n));
    for (size_t i = 0; i < filled.size() && !rest_.empty(); ++i)
      filled[i] = rest_[i % rest_.size()];
    return filled;
  }

 private:
  std::span<const uint8_t> rest_;
};

}  // namespace helios::fuzz
