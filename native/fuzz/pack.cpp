// Stored rows of every type, in every layout that takes them: what is read back from a layout is
// what the rows hold.
#include "pack.h"

#include <cmath>
#include <cstdlib>

#include "input.h"

using namespace helios;

namespace {

constexpr const char* kStorages[] = {"F32",  "F16",  "BF16", "Q4_0", "Q4_1", "Q5_0",
                                     "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
                                     "Q6_K", "IQ4_NL", "MXFP4", "Q9_9"};
constexpr int64_t kColumns[] = {1, 31, 32, 64, 96, 256, 512, 0, -32, kMost, INT64_MAX};
constexpr int64_t kMostBytes = 1 << 20;

std::vector<float> packed_and_read(const char* storage, Layout layout, int64_t rows,
                                   int64_t columns, const std::vector<uint8_t>& source) {
  static Pool pool(1);
  std::vector<uint8_t> packed(
      static_cast<size_t>(packed_bytes(layout_spec(layout), rows, columns)));
  pack(storage, layout, rows, columns, source.data(), packed.data(), pool);
  std::vector<float> values(static_cast<size_t>(rows * columns));
  for (int64_t r = 0; r < rows; ++r)
    unpack_row({packed.data(), layout, rows, columns}, r, values.data() + r * columns);
  return values;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  try {
    const char* storage = input.one_of(kStorages);
    const Layout layout = static_cast<Layout>(input.below(static_cast<int64_t>(Layout::FLAT) + 1));
    const int64_t rows = input.size(40);
    const int64_t columns = input.one_of(kColumns);
    const int64_t row_bytes = stored_row_bytes(storage, columns);
    packed_bytes(layout_spec(layout), rows, columns);
    if (rows * columns > kMostBytes) return 0;
    const std::vector<uint8_t> source = input.bytes(rows * row_bytes);
    const std::vector<float> plain = packed_and_read(storage, Layout::FLAT, rows, columns, source);
    const std::vector<float> read = packed_and_read(storage, layout, rows, columns, source);
    for (size_t i = 0; i < plain.size(); ++i)
      if (read[i] != plain[i] && !std::isnan(plain[i])) std::abort();
  } catch (const Error&) {
  }
  return 0;
}
