// Checks of the kernels without Python, for sanitizers and for processors that only an emulator
// has. Every instruction set that runs here is checked against sums in double precision.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "cpu.h"
#include "executor.h"
#include "gguf.h"
#include "half.h"
#include "kernels.h"
#include "pack.h"
#include "pool.h"

using namespace helios;

namespace {

int failures = 0;

void expect(bool good, const std::string& what) {
  if (good) return;
  ++failures;
  std::printf("FAILED: %s\n", what.c_str());
}

std::mt19937 generator(7);

float normal() { return std::normal_distribution<float>()(generator); }

// Where the formats keep their 16-bit scales.
std::vector<int> scale_places(const std::string& storage) {
  if (storage == "Q4_1" || storage == "Q5_1" || storage == "Q4_K" || storage == "Q5_K")
    return {0, 2};
  if (storage == "Q2_K") return {80, 82};
  if (storage == "Q3_K") return {108};
  if (storage == "Q6_K") return {208};
  if (storage == "MXFP4") return {};
  return {0};
}

std::vector<uint8_t> random_rows(const std::string& storage, int64_t rows, int64_t columns) {
  const StoredFormat& format = stored_format(storage);
  std::vector<uint8_t> raw(static_cast<size_t>(stored_row_bytes(storage, columns) * rows));
  if (format.decode == nullptr) {
    for (size_t i = 0; i < raw.size(); i += static_cast<size_t>(format.nbytes)) {
      const float value = normal();
      const uint16_t half = storage == "F16" ? f32_to_f16(value) : f32_to_bf16(value);
      if (format.nbytes == 4)
        std::memcpy(&raw[i], &value, 4);
      else
        std::memcpy(&raw[i], &half, 2);
    }
    return raw;
  }
  for (uint8_t& byte : raw) byte = static_cast<uint8_t>(generator());
  for (size_t i = 0; i < raw.size(); i += static_cast<size_t>(format.nbytes)) {
    if (storage == "MXFP4") raw[i] = static_cast<uint8_t>(120 + generator() % 10);
    for (const int place : scale_places(storage)) {
      const uint16_t half = f32_to_f16(0.05f * normal());
      std::memcpy(&raw[i + static_cast<size_t>(place)], &half, 2);
    }
  }
  return raw;
}

struct Product {
  Matrix matrix;
  std::vector<uint8_t> packed;
  std::vector<double> weights;
};

Product make_product(const std::string& storage, int64_t rows, int64_t columns, Pool& pool) {
  const Layout layout = natural_layout(storage);
  Product made;
  const std::vector<uint8_t> raw = random_rows(storage, rows, columns);
  made.packed.resize(static_cast<size_t>(packed_bytes(layout_spec(layout), rows, columns)));
  pack(storage, layout, rows, columns, raw.data(), made.packed.data(), pool);
  made.matrix = {made.packed.data(), layout, rows, columns};
  std::vector<float> row(static_cast<size_t>(columns));
  for (int64_t r = 0; r < rows; ++r) {
    unpack_row(made.matrix, r, row.data());
    made.weights.insert(made.weights.end(), row.begin(), row.end());
  }
  return made;
}

// out[tokens][16] of the first block; planes 0 takes the activations as they are.
std::vector<float> multiply(const Kernels& k, const Product& p, const std::vector<float>& x,
                            int64_t tokens, int planes) {
  const int64_t columns = p.matrix.columns;
  std::vector<float> out(static_cast<size_t>(tokens * 16));
  std::vector<float> scratch(static_cast<size_t>(columns * 16));
  const Block block{p.matrix.base, p.matrix.layout, columns};
  if (planes == 0) {
    k.dot_float(block, x.data(), columns, tokens, out.data(), 16, scratch.data());
    return out;
  }
  std::vector<uint8_t> space(static_cast<size_t>(Quant::bytes(tokens, columns, planes)));
  const Quant quant{space.data(), columns / 32, planes};
  for (int64_t t = 0; t < tokens; ++t) k.quantise(&x[t * columns], quant, t, 0, columns / 32);
  k.dot(block, 1, quant, 0, tokens, out.data(), 16, reinterpret_cast<uint8_t*>(scratch.data()));
  return out;
}

void check_products(const Kernels& k, Pool& pool) {
  constexpr int64_t kTokens = 37, kColumns = 256;
  constexpr double kTolerance[] = {1e-5, 2e-2, 1e-4};
  std::vector<float> x(kTokens * kColumns);
  for (float& value : x) value = normal();
  for (const char* storage : {"Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0", "Q2_K", "Q3_K", "Q4_K",
                              "Q5_K", "Q6_K", "IQ4_NL", "MXFP4", "F32", "F16", "BF16"}) {
    const Product p = make_product(storage, 16, kColumns, pool);
    const bool integer = layout_spec(p.matrix.layout).group != 0;
    for (int planes = 0; planes <= (integer ? 2 : 0); ++planes) {
      const std::string what =
          std::string(k.name) + " " + storage + " with " + std::to_string(planes) + " planes";
      const std::vector<float> whole = multiply(k, p, x, kTokens, planes);
      double worst = 0, largest = 0;
      for (int64_t t = 0; t < kTokens; ++t)
        for (int64_t r = 0; r < 16; ++r) {
          double sum = 0;
          for (int64_t c = 0; c < kColumns; ++c)
            sum += static_cast<double>(x[t * kColumns + c]) * p.weights[r * kColumns + c];
          worst = std::max(worst, std::abs(sum - static_cast<double>(whole[t * 16 + r])));
          largest = std::max(largest, std::abs(sum));
        }
      expect(worst <= kTolerance[planes] * largest, what);
      for (const int64_t tokens : {1, 2, 3, 5, 8, 9, 17}) {
        const std::vector<float> part = multiply(k, p, x, tokens, planes);
        expect(std::memcmp(part.data(), whole.data(), part.size() * 4) == 0,
               what + ": bits of " + std::to_string(tokens) + " tokens");
      }
    }
  }
}

void check_functions(const Kernels& k) {
  std::vector<float> x(53), one(53, 1.0f), y(53);
  for (size_t i = 0; i < x.size(); ++i) x[i] = -9.0f + 0.35f * static_cast<float>(i);
  for (int function = 0; function < 3; ++function) {
    k.gate(static_cast<Gate>(function), x.data(), one.data(), y.data(), 53);
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      const double u = 0.79788456080286536 * (v + 0.044715 * v * v * v);
      const double want = function == 0   ? v / (1 + std::exp(-v))
                          : function == 1 ? 0.5 * v * std::erfc(-v / std::sqrt(2.0))
                                          : v / (1 + std::exp(-2 * u));
      expect(std::abs(static_cast<double>(y[i]) - want) <= 1e-5 * (1 + std::abs(want)),
             std::string(k.name) + " gate " + std::to_string(function));
    }
  }
  k.softcap(x.data(), 3.0f, y.data(), 53);
  for (size_t i = 0; i < x.size(); ++i)
    expect(std::abs(static_cast<double>(y[i]) - 3 * std::tanh(static_cast<double>(x[i]) / 3)) < 1e-5,
           std::string(k.name) + " softcap");
  double total = 0;
  for (const float v : x) total += std::exp(static_cast<double>(v));
  const double got = k.sum_exp(x.data(), k.largest(x.data(), 53), 1.0f, nullptr, 53) *
                     std::exp(static_cast<double>(x.back()));
  expect(std::abs(got - total) < 1e-5 * total, std::string(k.name) + " sum_exp");
  expect(k.argmax(x.data(), 53) == 52, std::string(k.name) + " argmax");
  std::vector<uint16_t> half(53);
  for (const DType type : {DType::F16, DType::BF16}) {
    k.to_cache(type, x.data(), half.data(), 53);
    for (size_t i = 0; i < x.size(); ++i) {
      const uint16_t want = type == DType::F16 ? f32_to_f16(x[i]) : f32_to_bf16(x[i]);
      expect(half[i] == want, std::string(k.name) + " 16-bit conversion");
    }
  }
}

// The last `count` tokens of a history against two key heads, each query also alone: the results lie
// near the sums in double precision, and company changes no bit of them.
void check_attention(const Kernels& k, int64_t dim, int count, bool pairs) {
  constexpr int64_t kPage = 16, kHistory = 300;
  constexpr int kHeads = 2;
  const std::string what = std::string(k.name) + " attention of " + std::to_string(count) +
                           " queries of width " + std::to_string(dim) +
                           (pairs ? ", of bfloat16" : "");
  const int64_t pages = ceil_div(kHistory, kPage), padded = align_up(dim, 16);
  // Numbers that bfloat16 holds, too.
  const auto coarse = [] { return bf16_to_f32(f32_to_bf16(normal())); };
  const size_t numbers = static_cast<size_t>(pages * kPage * kHeads * dim);
  std::vector<float> keys(numbers), values(numbers);
  std::vector<uint16_t> key_pairs(numbers), value_pairs(numbers);
  const auto at = [&](int64_t page, int64_t head, int64_t row, int64_t column, int64_t columns) {
    return static_cast<size_t>((page * kHeads + head) * kPage * dim + row * columns + column);
  };
  // A history in order, and where AttentionTask wants it.
  std::vector<float> key_of(numbers), value_of(numbers);
  for (int64_t page = 0; page < pages; ++page)
    for (int64_t head = 0; head < kHeads; ++head)
      for (int64_t t = 0; t < kPage; ++t)
        for (int64_t d = 0; d < dim; ++d) {
          const size_t plain = at(page, head, t, d, dim);
          key_of[plain] = coarse();
          value_of[plain] = coarse();
          keys[at(page, head, d, t, kPage)] = key_of[plain];
          values[plain] = value_of[plain];
          if (!pairs) continue;
          key_pairs[at(page, head, d / 2, 2 * t + d % 2, 2 * kPage)] = f32_to_bf16(key_of[plain]);
          value_pairs[at(page, head, t / 2, 2 * d + t % 2, 2 * dim)] =
              f32_to_bf16(value_of[plain]);
        }
  std::vector<int32_t> table;
  for (int64_t i = 0; i < pages; ++i) table.push_back(static_cast<int32_t>((i * 7 + 3) % pages));
  const int64_t queries = kHeads * count;
  std::vector<float> q(static_cast<size_t>(queries * dim));
  for (float& v : q) v = coarse();
  std::vector<const float*> pointers;
  for (int64_t i = 0; i < queries; ++i) pointers.push_back(q.data() + i * dim);
  std::vector<int32_t> positions;
  for (int i = 0; i < count; ++i) positions.push_back(static_cast<int32_t>(kHistory - count + i));
  std::vector<float> scratch(static_cast<size_t>(attention_scratch(queries, dim)));

  AttentionTask task{};
  task.dim = static_cast<int>(dim);
  task.scale = 0.25f;
  task.pages = table.data();
  task.page_tokens = kPage;
  task.head_stride = kPage * dim * (pairs ? 2 : 4);
  task.page_stride = kHeads * task.head_stride;
  task.type = pairs ? DType::BF16 : DType::F32;
  task.pairs = pairs;
  task.scratch = scratch.data();
  // Rows of [dim], head by head.
  const auto attend = [&](int head, int heads, int first, int of) {
    const int64_t n = heads * of;
    std::vector<float> state(static_cast<size_t>(n * (padded + 2)));
    std::fill_n(state.begin(), n, -INFINITY);
    task.queries = &pointers[static_cast<size_t>(head * count + first)];
    task.positions = &positions[static_cast<size_t>(first)];
    task.count = of;
    task.heads = heads;
    task.last = positions[static_cast<size_t>(first + of - 1)];
    const auto plane = [&](const std::vector<float>& plain, const std::vector<uint16_t>& paired) {
      const void* base = pairs ? static_cast<const void*>(paired.data()) : plain.data();
      return static_cast<const uint8_t*>(base) + head * task.head_stride;
    };
    task.keys = plane(keys, key_pairs);
    task.values = plane(values, value_pairs);
    task.maximum = state.data();
    task.total = state.data() + n;
    task.output = state.data() + 2 * n;
    k.attend(task);
    std::vector<float> y(static_cast<size_t>(n * dim));
    for (int64_t i = 0; i < n; ++i)
      k.normalise(task.maximum[i], task.total[i], task.output + i * padded, nullptr, &y[i * dim],
                  dim);
    return y;
  };
  const std::vector<float> all = attend(0, kHeads, 0, count);
  // Pairs round the weights of the values to 8 bits, and no value lies beyond 5.
  const double tolerance = pairs ? 5.0 / 256 : 2e-5;
  for (int64_t i = 0; i < queries; ++i) {
    const int head = static_cast<int>(i) / count, token = static_cast<int>(i) % count;
    const std::vector<float> alone = attend(head, 1, token, 1);
    expect(std::memcmp(alone.data(), &all[i * dim], static_cast<size_t>(dim) * 4) == 0,
           what + ": one alone");
    std::vector<double> want(static_cast<size_t>(dim));
    double total = 0;
    for (int64_t p = 0; p <= positions[token]; ++p) {
      const size_t row = at(table[p / kPage], head, p % kPage, 0, dim);
      double score = 0;
      for (int64_t d = 0; d < dim; ++d)
        score += static_cast<double>(pointers[i][d]) * static_cast<double>(key_of[row + d]);
      const double weight = std::exp(0.25 * score);
      total += weight;
      for (int64_t d = 0; d < dim; ++d) want[d] += weight * static_cast<double>(value_of[row + d]);
    }
    for (int64_t d = 0; d < dim; ++d)
      expect(std::abs(want[d] / total - static_cast<double>(all[i * dim + d])) < tolerance, what);
  }
}

// Vocabularies of any length, to the last element of no vector.
void check_vocabularies(const Kernels& k) {
  for (const size_t n : {1, 2, 3, 7, 15, 17, 33, 1023, 1025, 49153}) {
    std::vector<float> x(n), terms(n);
    for (float& value : x) value = normal();
    x[n - 1] = 9.0f;
    double want = 0;
    for (const float value : x) want += std::exp(static_cast<double>(value) - 9.0);
    const int64_t length = static_cast<int64_t>(n);
    const std::string what = std::string(k.name) + " vocabulary of " + std::to_string(n);
    expect(k.argmax(x.data(), length) == length - 1, what + ": argmax");
    expect(k.largest(x.data(), length) == 9.0f, what + ": largest");
    const double got = k.sum_exp(x.data(), 9.0f, 1.0f, terms.data(), length);
    expect(std::abs(got - want) < 1e-5 * want, what + ": sum_exp");
    expect(terms[n - 1] == 1.0f, what + ": the largest term");
  }
}

class Counting final : public Job {
 public:
  explicit Counting(int phases) : phases_(phases) {}
  uint32_t advance(int) override {
    if (phase_ > 0 && sum_.exchange(0) != kChunks) wrong_ = true;
    return phase_++ < phases_ ? kChunks : 0;
  }
  void chunk(uint32_t, int) override { sum_.fetch_add(1, std::memory_order_relaxed); }
  bool right() const { return !wrong_; }

 private:
  static constexpr uint32_t kChunks = 7;
  int phases_, phase_ = 0;
  bool wrong_ = false;
  std::atomic<uint32_t> sum_{0};
};

void check_pool() {
  for (const int threads : {1, 2, 5}) {
    Pool pool(threads);
    for (int i = 0; i < 20; ++i) {
      Counting job(200);
      pool.run(job);
      expect(job.right(), "every chunk of a phase runs once, before the next phase");
    }
  }
}

}  // namespace

int main() {
  Pool pool(2);
  check_pool();
  for (const std::string& isa : supported_isas()) {
    const Kernels& kernels = kernels_named(isa);
    check_products(kernels, pool);
    check_functions(kernels);
    check_vocabularies(kernels);
    for (const int64_t dim : {32, 33, 40, 64, 80, 96, 128, 256})
      for (const int count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 61}) {
        check_attention(kernels, dim, count, false);
        if (kernels.pairs && dim % 2 == 0) check_attention(kernels, dim, count, true);
      }
    std::printf("%s checked\n", isa.c_str());
  }
  std::printf("%s\n", failures == 0 ? "all kernels agree" : "some kernels disagree");
  return failures == 0 ? 0 : 1;
}
