// Programs of native steps, and the executor that runs them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "kernels.h"
#include "memory.h"
#include "params.h"
#include "pool.h"

namespace helios {

// The lengths a submission chooses.
struct Extents {
  int64_t rows = 0;     // B
  int64_t tokens = 0;   // T
  int64_t sampled = 0;  // S
};

// A leading dimension: one of the extents, or a constant.
struct Count {
  char extent = 0;  // 'B', 'T', 'S' or 0
  int64_t constant = 0;

  int64_t of(const Extents& extents) const {
    switch (extent) {
      case 'B': return extents.rows;
      case 'T': return extents.tokens;
      case 'S': return extents.sampled;
      default: return constant;
    }
  }
};

struct Context {
  Extents extents;
  const Kernels* kernels = nullptr;
  int threads = 1;
};

// What a program's steps may use while they run: memory of each thread, and regions shared by
// steps under a number that the host chose (quantised activations, rotation tables). Nothing in it
// outlives a run, so all programs of an executor share the same memory.
class Workspace {
 public:
  void need_thread_bytes(int64_t nbytes);
  void need_region(int64_t id, int64_t nbytes);
  // Bytes for that many threads, once every step has said what it needs.
  int64_t nbytes(int threads) const;
  void place(uint8_t* base, int threads);

  uint8_t* of_thread(int thread) const { return base_ + thread * stride(); }
  uint8_t* region(int64_t id) const;

 private:
  struct Region {
    int64_t id, nbytes;
    uint8_t* address;
  };

  int64_t stride() const { return align_up(thread_bytes_, 4096); }

  uint8_t* base_ = nullptr;
  int64_t thread_bytes_ = 0;
  std::vector<Region> regions_;
};

class Step {
 public:
  virtual ~Step() = default;
  // Declares workspace; called once, before any run.
  virtual void plan(Workspace& workspace, const Extents& capacity) = 0;
  // Learns where its workspace is; called before the first run and whenever it has moved.
  virtual void attach(const Workspace& workspace) = 0;
  // Called alone, before the step's chunks. Returns their number: 0 for nothing to do. A single
  // chunk is run by the caller at once.
  virtual uint32_t begin(const Context& context) = 0;
  virtual void chunk(const Context& context, uint32_t index, int thread) = 0;
  // Whether the chunks of the last `begin` are followed by another of the same step.
  virtual bool repeats() const { return false; }
};

// A step whose work on one row of its leading dimension depends on no other row.
class RowStep : public Step {
 public:
  RowStep(Count count, int64_t cost) : count_(count), cost_(cost < 1 ? 1 : cost) {}
  void plan(Workspace&, const Extents&) override {}
  void attach(const Workspace&) override {}
  uint32_t begin(const Context& context) override;
  void chunk(const Context& context, uint32_t index, int thread) override;

 protected:
  virtual void rows(const Context& context, int64_t begin, int64_t end, int thread) = 0;
  Count count_;
  // Rows are handed out in multiples of this.
  int64_t quantum_ = 1;

 private:
  int64_t cost_;  // of a row, in elements touched
  int64_t total_ = 0;
  int64_t per_chunk_ = 1;
};

std::unique_ptr<Step> make_step(const std::string& kind, const Params& params);

using StepSpec = std::pair<std::string, Params>;

// A copy the host asks for around a run: to staging, or from it.
struct Transfer {
  int64_t destination, source, nbytes;
};

class Executor {
 public:
  explicit Executor(int threads);

  int threads() const { return pool_.threads(); }
  Pool& pool() { return pool_; }
  const Kernels& kernels() const { return kernels_; }
  // Holds off runs and loads; throws in a process forked from the executor's, where one that is in
  // progress would never end.
  std::unique_lock<std::mutex> exclusive();
  const char* isa() const { return kernels_.name; }
  // Returns the program's number. Capacities bound the extents of every run. The workspace lies in
  // the memory given, if it is large enough, or in memory of the executor's own.
  int64_t load(const std::vector<StepSpec>& steps, const Extents& capacity,
               uint8_t* workspace = nullptr, int64_t workspace_bytes = 0);
  void unload(int64_t program);
  // Bytes that the executor had to allocate for workspace.
  int64_t allocated_bytes() const { return memory_ ? memory_->nbytes() : 0; }
  // Copies `before`, runs the steps, copies `after`. One run at a time; allocates nothing.
  void run(int64_t program, const Extents& extents, const Transfer* before, size_t before_count,
           const Transfer* after, size_t after_count);
  // Runs the steps once and tells, by kind of step, how often it ran and for how many nanoseconds:
  // of wall time, or of processor time where there is but one thread.
  std::map<std::string, std::pair<int64_t, int64_t>> profile(int64_t program,
                                                             const Extents& extents);

 private:
  struct Program;
  struct Deleter {
    void operator()(Program* program) const;
  };

  Program& find(int64_t program) const;
  void make_room(int64_t nbytes);
  void start(Program& program, const Extents& extents, int64_t* started = nullptr);

  const Kernels& kernels_;
  Pool pool_;
  std::mutex busy_;
  std::unique_ptr<Memory> memory_;
  std::vector<std::unique_ptr<Program, Deleter>> programs_;
};

}  // namespace helios
