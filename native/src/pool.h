// A fixed set of threads that work through jobs made of phases.
//
// A phase is a number of independent chunks, claimed from one atomic counter. Whoever completes a
// phase's last chunk prepares the next phase at once, running small serial work itself, so there
// is no barrier at which threads must meet: a thread that the system has descheduled holds up
// nobody unless it is inside a chunk. Threads without work spin briefly and then park.
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
  // [seq : 24 | chunks in the phase : 20 | next chunk : 20], so that one fetch_add both claims a
  // chunk and tells whether it exists. The upper half changes with every phase: threads park on it.
  static constexpr int kBits = 20;
  static constexpr uint64_t kMask = (1u << kBits) - 1;

  void end();
  void worker(int thread);
  bool work_once(int thread);
  void publish(uint32_t chunks);
  void wait_beyond(uint64_t seen);

  const int threads_;
  const pid_t owner_;
  alignas(64) std::atomic<uint64_t> ticket_{0};
  alignas(64) std::atomic<uint32_t> completed_{0};
  alignas(64) std::atomic<int> parked_{0};
  std::atomic<bool> stop_{false};
  Job* job_ = nullptr;
  std::unique_ptr<std::vector<std::thread>> workers_;
};

}  // namespace helios
