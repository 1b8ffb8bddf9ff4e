#include "pool.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdio>
#include <system_error>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace helios {
namespace {

// Long enough to bridge a serial step, short enough not to matter on a busy machine.
constexpr std::chrono::microseconds kSpin{40};

// Rounding and subnormals as IEEE 754 has them, whatever other libraries set in this thread.
class PlainFloats {
 public:
#if defined(__x86_64__)
  PlainFloats() : saved_(_mm_getcsr()) { _mm_setcsr(0x1f80); }
  ~PlainFloats() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#else
  PlainFloats() {}
  ~PlainFloats() {}
#endif
};

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

static_assert(sizeof(std::atomic<uint64_t>) == 8);
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

uint32_t* upper_half(std::atomic<uint64_t>& word) { return reinterpret_cast<uint32_t*>(&word) + 1; }

void park(std::atomic<uint64_t>& word, uint64_t seen) {
  syscall(SYS_futex, upper_half(word), FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(seen >> 32),
          nullptr, nullptr, 0);
}

void wake_all(std::atomic<uint64_t>& word) {
  syscall(SYS_futex, upper_half(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace

Pool::Pool(int threads) : threads_(threads), owner_(getpid()) {
  if (threads < 1 || threads > 1024)
    throw Error("threads: must lie between 1 and 1024, got " + std::to_string(threads));
  workers_ = std::make_unique<std::vector<std::thread>>();
  try {
    for (int i = 1; i < threads; ++i) {
      workers_->emplace_back([this, i] { worker(i); });
      char name[16];
      std::snprintf(name, sizeof name, "helios-%d", i);
      pthread_setname_np(workers_->back().native_handle(), name);
    }
  } catch (const std::system_error&) {
    const size_t started = workers_->size() + 1;
    end();
    throw Error("threads: the system grants this process " + std::to_string(started) + ", not " +
                std::to_string(threads));
  }
}

Pool::~Pool() {
  if (getpid() != owner_) {
    // The threads stayed with the parent, and their handles may name others by now.
    (void)workers_.release();
    return;
  }
  end();
}

void Pool::end() {
  stop_.store(true);
  publish(0);
  for (std::thread& worker : *workers_) worker.join();
}

void Pool::require_owner() const {
  if (getpid() != owner_)
    throw Error("executor: its threads did not survive fork(); create it in the child process");
}

void Pool::run(Job& job) {
  require_owner();
  const PlainFloats floats;
  job_ = &job;
  const uint32_t chunks = job.advance(0);
  if (chunks == 0) return;
  publish(chunks);
  while (true) {
    const uint64_t seen = ticket_.load(std::memory_order_acquire);
    if ((seen >> kBits & kMask) == 0) return;  // the phase of no chunks ends a job
    if (!work_once(0)) wait_beyond(seen);
  }
}

void Pool::worker(int thread) {
  const PlainFloats floats;
  while (true) {
    const uint64_t seen = ticket_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!work_once(thread)) wait_beyond(seen);
  }
}

// Claims and runs one chunk, and the change of phase if it was the last. False if none was left.
bool Pool::work_once(int thread) {
  uint64_t ticket = ticket_.load(std::memory_order_acquire);
  if ((ticket & kMask) >= (ticket >> kBits & kMask)) return false;
  ticket = ticket_.fetch_add(1, std::memory_order_acq_rel);
  const uint32_t index = static_cast<uint32_t>(ticket & kMask);
  const uint32_t chunks = static_cast<uint32_t>(ticket >> kBits & kMask);
  if (index >= chunks) return false;
  job_->chunk(index, thread);
  if (completed_.fetch_add(1, std::memory_order_acq_rel) + 1 == chunks) {
    const uint32_t next = job_->advance(thread);
    completed_.store(0, std::memory_order_relaxed);
    publish(next);
  }
  return true;
}

void Pool::publish(uint32_t chunks) {
  const uint64_t sequence = (ticket_.load(std::memory_order_relaxed) >> 40) + 1;
  ticket_.store(sequence << 40 | static_cast<uint64_t>(chunks) << kBits, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) wake_all(ticket_);
}

// Returns once a phase later than `seen` has been published.
void Pool::wait_beyond(uint64_t seen) {
  const auto changed = [&] {
    return ticket_.load(std::memory_order_acquire) >> 40 != seen >> 40;
  };
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (changed()) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  parked_.fetch_add(1, std::memory_order_seq_cst);
  while (ticket_.load(std::memory_order_seq_cst) >> 40 == seen >> 40) park(ticket_, seen);
  parked_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace helios
