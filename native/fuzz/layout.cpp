// Any bytes as a packed matrix of any layout and shape.
#include "layout.h"

#include "input.h"

using namespace helios;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  try {
    const Layout layout = static_cast<Layout>(input.below(static_cast<int64_t>(Layout::FLAT) + 1));
    const int64_t rows = input.size(70);
    const int64_t whole = input.below(2) == 0 ? 0 : 32 * (1 + input.below(12));
    const int64_t columns = whole > 0 ? whole : input.size(70);
    const int64_t nbytes = packed_bytes(layout_spec(layout), rows, columns);
    if (nbytes > 1 << 20 || columns > 1 << 20) return 0;
    const std::vector<uint8_t> packed = input.bytes(nbytes);
    std::vector<float> row(static_cast<size_t>(columns));
    for (int64_t r = 0; r < rows; ++r)
      unpack_row({packed.data(), layout, rows, columns}, r, row.data());
  } catch (const Error&) {
  }
  return 0;
}
