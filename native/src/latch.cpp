#include "latch.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>

namespace helios {
namespace {

// As long as a pool's threads do: longer than a mask that is nearly done, too short to matter.
constexpr std::chrono::microseconds kSpin{40};

static_assert(sizeof(std::atomic<uint32_t>) == 4);

}  // namespace

void Latch::release() {
  held_.store(0, std::memory_order_release);
  syscall(SYS_futex, &held_, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

bool Latch::wait(std::chrono::nanoseconds most) {
  if (is_free()) return true;
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() < began + kSpin)
    if (is_free()) return true;
  while (!is_free()) {
    const auto left = began + most - std::chrono::steady_clock::now();
    if (left <= std::chrono::nanoseconds::zero()) return false;
    const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(left).count();
    const timespec time{ns / 1'000'000'000, ns % 1'000'000'000};
    syscall(SYS_futex, &held_, FUTEX_WAIT_PRIVATE, 1, &time, nullptr, 0);
  }
  return true;
}

}  // namespace helios
