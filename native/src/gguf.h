// Decoding GGUF's quantised blocks, one group of 32 values at a time.
#pragma once

#include <string_view>

#include "layout.h"

namespace helios {

// value[k] = scale[k / 16] * q[k] + minimum[k / 16].
struct StoredGroup {
  int8_t q[32];
  float scale[2];
  float minimum[2];
};

struct StoredFormat {
  std::string_view name;
  int64_t block;         // values in a block
  int64_t nbytes;        // bytes of a block
  Layout layout;         // the layout that holds it exactly
  void (*decode)(const uint8_t* row, int64_t group, StoredGroup& out);  // null for floats
};

const StoredFormat& stored_format(std::string_view name);

}  // namespace helios
