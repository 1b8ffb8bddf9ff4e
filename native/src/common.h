// Types and errors shared by every part of the native runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace helios {

// Element types, numbered as on the wire (program.proto).
enum class DType : int { F32 = 1, F16 = 2, BF16 = 3, I32 = 4, U32 = 5, U64 = 6, U8 = 7, I64 = 8 };

// A refusal. `field` says where; the binding turns it into a ConfigurationError of the same words.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

constexpr int64_t align_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

constexpr int64_t ceil_div(int64_t value, int64_t divisor) {
  return (value + divisor - 1) / divisor;
}

// No dimension, and no memory that is asked for, is larger: sums of a few such numbers stay exact.
inline constexpr int64_t kMost = int64_t{1} << 46;

// a * b, or kMost where it would be more. Neither is negative.
constexpr int64_t capped_product(int64_t a, int64_t b) {
  return a > 0 && b > kMost / a ? kMost : a * b;
}

}  // namespace helios
