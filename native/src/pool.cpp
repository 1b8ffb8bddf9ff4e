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

uint64_t phase_of(uint64_t ticket) { return ticket >> 32; }
uint32_t chunks_of(uint64_t ticket) { return static_cast<uint32_t>(ticket); }

int checked_threads(int threads) {
  if (threads < 1 || threads > 1024)
    throw Error("threads: must lie between 1 and 1024, got " + std::to_string(threads));
  return threads;
}

}  // namespace

Pool::Pool(int threads)
    : threads_(checked_threads(threads)),
      owner_(getpid()),
      shares_(std::make_unique<Share[]>(static_cast<size_t>(threads))) {
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
    const uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (chunks_of(ticket) == 0) return;
    if (!work(ticket, 0)) wait_beyond(ticket);
  }
}

void Pool::worker(int thread) {
  const PlainFloats floats;
  while (true) {
    const uint64_t ticket = ticket_.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!work(ticket, thread)) wait_beyond(ticket);
  }
}

// Runs what is left of the thread's own chunks and of the others', and changes the phase if that
// completes it. False if nothing was left.
bool Pool::work(uint64_t ticket, int thread) {
  uint32_t done = 0, index = 0;
  for (int i = 0; i < threads_; ++i) {
    const End from = i == 0 ? End::FRONT : End::BACK;
    for (; take(shares_[(thread + i) % threads_], phase_of(ticket), from, &index); ++done)
      job_->chunk(index, thread);
  }
  if (done == 0) return false;
  // The phase can't change while chunks that were taken are not counted.
  if (completed_.fetch_add(done, std::memory_order_acq_rel) + done == chunks_of(ticket))
    publish(job_->advance(thread));
  return true;
}

bool Pool::take(Share& share, uint64_t phase, End from, uint32_t* index) {
  uint64_t left = share.left.load(std::memory_order_acquire);
  while (true) {
    const uint64_t first = left >> kBits & kMask, end = left & kMask;
    if (left >> 2 * kBits != (phase & kPhaseMask) || first >= end) return false;
    const uint64_t rest = from == End::FRONT ? left + (uint64_t{1} << kBits) : left - 1;
    if (!share.left.compare_exchange_weak(left, rest, std::memory_order_acq_rel)) continue;
    *index = static_cast<uint32_t>(from == End::FRONT ? first : end - 1);
    return true;
  }
}

void Pool::publish(uint32_t chunks) {
  const uint64_t phase = phase_of(ticket_.load(std::memory_order_relaxed)) + 1;
  completed_.store(0, std::memory_order_relaxed);
  const auto border = [&](int i) { return uint64_t{chunks} * i / threads_; };
  for (int i = 0; i < threads_; ++i)
    shares_[i].left.store(
        (phase & kPhaseMask) << 2 * kBits | border(i) << kBits | border(i + 1),
        std::memory_order_release);
  // Whoever sees the new phase may start a job of its own, so this comes last.
  ticket_.store(phase << 32 | chunks, std::memory_order_seq_cst);
  if (parked_.load(std::memory_order_seq_cst) > 0) wake_all(ticket_);
}

// Returns once a later phase has been published.
void Pool::wait_beyond(uint64_t ticket) {
  const auto changed = [&] {
    return phase_of(ticket_.load(std::memory_order_acquire)) != phase_of(ticket);
  };
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (changed()) return;
      relax();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  parked_.fetch_add(1, std::memory_order_seq_cst);
  while (phase_of(ticket_.load(std::memory_order_seq_cst)) == phase_of(ticket))
    park(ticket_, ticket);
  parked_.fetch_sub(1, std::memory_order_relaxed);
}

}  // namespace helios
