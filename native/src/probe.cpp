#include "probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "memory.h"

namespace helios {
namespace {

constexpr int64_t kRounds = 1 << 20;
constexpr int64_t kBytes = 256 << 20;  // beyond any cache
constexpr int kTries = 5;

enum class Kind { INTEGER, FLOAT, READ };

class Probe final : public Job {
 public:
  Probe(const Kernels& kernels, Kind kind, const Memory& memory, int threads)
      : kernels_(kernels), kind_(kind), memory_(memory), chunks_(threads * 8) {}

  uint32_t advance(int) override {
    if (started_) return 0;
    started_ = true;
    return static_cast<uint32_t>(chunks_);
  }

  void chunk(uint32_t index, int) override {
    int64_t done = memory_.nbytes() / chunks_;
    int64_t seen = 0;
    switch (kind_) {
      case Kind::INTEGER: seen = kernels_.probe_integer(kRounds, &done); break;
      case Kind::FLOAT: seen = kernels_.probe_float(kRounds, &done); break;
      case Kind::READ: seen = kernels_.probe_read(memory_.data() + index * done, done); break;
    }
    done_.fetch_add(done, std::memory_order_relaxed);
    seen_.fetch_add(seen, std::memory_order_relaxed);
  }

  int64_t done() const { return done_.load(); }

 private:
  const Kernels& kernels_;
  Kind kind_;
  const Memory& memory_;
  int64_t chunks_;
  bool started_ = false;
  std::atomic<int64_t> done_{0};
  std::atomic<int64_t> seen_{0};
};

double best(const Kernels& kernels, Kind kind, const Memory& memory, Pool& pool) {
  double best = 0;
  for (int i = 0; i < kTries; ++i) {
    Probe probe(kernels, kind, memory, pool.threads());
    const auto start = std::chrono::steady_clock::now();
    pool.run(probe);
    const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(probe.done()) / spent.count());
  }
  return best;
}

}  // namespace

Ceilings measure_ceilings(const Kernels& kernels, Pool& pool) {
  const Memory memory(kBytes);
  std::memset(memory.data(), 0, static_cast<size_t>(kBytes));
  return {best(kernels, Kind::INTEGER, memory, pool), best(kernels, Kind::FLOAT, memory, pool),
          best(kernels, Kind::READ, memory, pool)};
}

}  // namespace helios
