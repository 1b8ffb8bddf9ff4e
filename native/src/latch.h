// Where a running program waits for input that the host supplies while it runs.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace helios {

// Held by the host from before a run that needs such input until it is there. Releasing twice, or
// what nobody waits for, does no harm.
class Latch {
 public:
  Latch() = default;
  Latch(const Latch&) = delete;
  Latch& operator=(const Latch&) = delete;

  void hold() { held_.store(1, std::memory_order_release); }
  void release();
  // Returns once nothing holds it, with all that was written before visible; false if that took
  // longer than `most`. Spins briefly, then parks.
  bool wait(std::chrono::nanoseconds most);

 private:
  bool is_free() const { return held_.load(std::memory_order_acquire) == 0; }

  std::atomic<uint32_t> held_{0};
};

}  // namespace helios
