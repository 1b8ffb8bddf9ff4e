// A fixed set of threads that work through jobs made of phases.
//
// A phase is a number of independent chunks. Every thread has a run of neighbouring chunks of its
// own, which it takes from the front, so that it reads memory in order and shares no counter; once
// that is empty, it takes from the back of another's. Whoever completes a phase prepares the next
// one at once, running small serial work itself, so there is no barrier at which threads must meet:
// a thread that the system has descheduled holds up nobody unless it is inside a chunk. Threads
// without work spin briefly and then park.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "common.h"

namespace helios {

class Job {
 public:
  virtual ~Job() = default;
  // Called by one thread at a time, with every earlier phase complete. Returns the number of chunks
  // of the next phase, or 0 when the job is done.
  virtual uint32_t advance(int thread) = 0;
  virtual void chunk(uint32_t index, int thread) = 0;
};

class Pool {
 public:
  // `threads` counts the caller of run(): a pool of one starts no thread.
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Of one phase.
  static constexpr uint32_t kMostChunks = 1'000'000;

  int threads() const { return threads_; }
  // Runs the job to its end. One job at a time. Throws in a process forked from the pool's owner.
  void run(Job& job);
  // Throws in a process forked from the pool's owner.
  void require_owner() const;

 private:
  // The chunks that are left of a thread's own: [phase : 24 | first : 20 | end : 20], so that only
  // who knows the current phase can take one.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
  };
  enum class End { FRONT, BACK };
  static constexpr int kBits = 20;
  static constexpr uint64_t kMask = (1u << kBits) - 1;
  static constexpr uint64_t kPhaseMask = (1u << 24) - 1;
  static_assert(kMostChunks <= kMask);

  void end();
  void worker(int thread);
  bool work(uint64_t ticket, int thread);
  static bool take(Share& share, uint64_t phase, End from, uint32_t* index);
  void publish(uint32_t chunks);
  void wait_beyond(uint64_t ticket);

  const int threads_;
  const pid_t owner_;
  const std::unique_ptr<Share[]> shares_;
  // [phase : 32 | its chunks : 32]; threads park on the upper half. A phase of no chunks ends a job.
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> completed_{0};
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  Job* job_ = nullptr;
  std::unique_ptr<std::vector<std::thread>> workers_;
};

}  // namespace helios
