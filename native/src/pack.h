// From GGUF's blocks to the layouts of the kernels.
#pragma once

#include <string_view>

#include "layout.h"
#include "pool.h"

namespace helios {

// Bytes of a stored row, or an Error for an unknown storage or a width it can't have.
int64_t stored_row_bytes(std::string_view storage, int64_t columns);

// The smallest layout that holds every value of a storage exactly.
Layout natural_layout(std::string_view storage);

// Writes the matrix [rows, columns] at `source` as `layout` to `destination`, on all threads.
void pack(std::string_view storage, Layout layout, int64_t rows, int64_t columns,
          const uint8_t* source, uint8_t* destination, Pool& pool);

}  // namespace helios
