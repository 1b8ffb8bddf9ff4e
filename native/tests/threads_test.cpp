// Checks of what threads share, for the thread sanitizer: latches, executors, and runs at once.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "executor.h"
#include "latch.h"
#include "pool.h"

using namespace helios;

namespace {

int failures = 0;

void expect(bool good, const char* what) {
  if (good) return;
  ++failures;
  std::printf("FAILED: %s\n", what);
}

template <class T>
int64_t address(T* pointer) {
  return reinterpret_cast<int64_t>(pointer);
}

// Phases of as many chunks as its list says, which must all be run once and in this order.
class Phases final : public Job {
 public:
  explicit Phases(const std::vector<uint32_t>& chunks) : chunks_(chunks) {}

  uint32_t advance(int) override {
    expect(run_.load() == expected_, "a phase begins when every earlier chunk has been run");
    for (uint32_t i = 0; i < (next_ > 0 ? chunks_[next_ - 1] : 0); ++i) {
      expect(taken_[i].load() == 1, "a chunk is run once");
      taken_[i].store(0);
    }
    if (next_ == chunks_.size()) return 0;
    expected_ += chunks_[next_];
    return chunks_[next_++];
  }

  void chunk(uint32_t index, int) override {
    taken_[index].fetch_add(1);
    run_.fetch_add(1);
  }

  bool complete() const { return next_ == chunks_.size() && run_.load() == expected_; }

 private:
  const std::vector<uint32_t> chunks_;
  size_t next_ = 0;
  uint32_t expected_ = 0;
  std::atomic<uint32_t> run_{0};
  std::atomic<int> taken_[64] = {};
};

// Runs that end while some threads have just come, and phases with fewer chunks than threads.
void check_pool(int threads) {
  Pool pool(threads);
  for (uint32_t round = 0; round < 20'000; ++round) {
    Phases job({1 + round % 7, 1, 64 - round % 64, 2});
    pool.run(job);
    expect(job.complete(), "a run returns when all phases are complete");
  }
}

// A program that waits at a latch, and doubles what the host wrote meanwhile.
struct Waiting {
  static constexpr int64_t kCount = 64;

  explicit Waiting(int threads) : executor(threads) {
    Params wait, add;
    wait.set("latch", address(&latch));
    wait.set("seconds", 60.0);
    add.set("count", kCount);
    add.set("left", address(written));
    add.set("right", address(written));
    add.set("out", address(read));
    program = executor.load({{"await_input", wait}, {"add_integers", add}}, {});
  }

  void run() { executor.run(program, {}, nullptr, 0, nullptr, 0); }

  Latch latch;
  Executor executor;
  int64_t program = 0;
  int32_t written[kCount] = {}, read[kCount] = {};
};

void check_latch(int threads) {
  Waiting waiting(threads);
  for (int32_t round = 1; round <= 200; ++round) {
    waiting.latch.hold();
    std::thread runner([&] { waiting.run(); });
    // Sooner than the run waits, while it spins, or long after it has parked.
    if (round % 3 > 0) std::this_thread::sleep_for(std::chrono::microseconds(round % 3 * 30));
    for (int32_t& value : waiting.written) value = round;
    waiting.latch.release();
    runner.join();
    for (const int32_t value : waiting.read)
      expect(value == 2 * round, "a released run reads what was written before");
  }
}

bool refused(Executor& executor, int64_t program) {
  try {
    executor.run(program, {}, nullptr, 0, nullptr, 0);
  } catch (const Error& error) {
    expect(std::string(error.what()).find("in progress") != std::string::npos,
           "nothing else refuses a run");
    return true;
  }
  return false;
}

void check_refusal(int threads) {
  Waiting waiting(threads);
  const int64_t nothing = waiting.executor.load({}, {});
  for (int round = 0; round < 50; ++round) {
    waiting.latch.hold();
    // Either thread may find the other's run in progress. This one's are short, so the waiting one
    // gets in; from then on, until the latch is released, it is this thread that is refused.
    std::thread runner([&] {
      while (refused(waiting.executor, waiting.program)) std::this_thread::yield();
    });
    while (!refused(waiting.executor, nothing)) std::this_thread::yield();
    waiting.latch.release();
    runner.join();
    expect(!refused(waiting.executor, nothing), "a run that has ended refuses no other");
  }
}

void check_time_out() {
  Latch latch;
  expect(latch.wait(std::chrono::nanoseconds(0)), "a latch that nobody holds is passed");
  latch.hold();
  expect(!latch.wait(std::chrono::milliseconds(1)), "a latch that stays held is given up");
  latch.release();
}

// One executor waits for what the other does, so neither can be waiting for the other's threads.
void check_two_executors() {
  Waiting first(2), second(3);
  for (int round = 0; round < 50; ++round) {
    first.latch.hold();
    second.latch.hold();
    std::thread one([&] { first.run(); }), other([&] {
      second.run();
      first.latch.release();
    });
    second.latch.release();
    other.join();
    one.join();
  }
}

}  // namespace

int main() {
  check_time_out();
  for (const int threads : {1, 2, 3, 5}) check_pool(threads);
  for (const int threads : {1, 3}) {
    check_latch(threads);
    check_refusal(threads);
  }
  check_two_executors();
  std::printf("%s\n", failures == 0 ? "all threads agree" : "some threads disagree");
  return failures == 0 ? 0 : 1;
}
