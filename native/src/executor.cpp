#include "executor.h"

#include <algorithm>
#include <cstring>
#include <ctime>

namespace helios {
namespace {

// The longest B, T or S of a program. A phase of a pool has room for twice as many chunks.
constexpr int64_t kMostLength = 1 << 19;

// Elements below which handing work to another thread costs more than doing it.
constexpr int64_t kWorthSharing = 16384;

}  // namespace

// ---- workspace ------------------------------------------------------------------------------

namespace {

void require_possible(int64_t nbytes) {
  if (nbytes >= kMost) throw Error("workspace: a step needs more memory than any machine has");
}

}  // namespace

void Workspace::need_thread_bytes(int64_t nbytes) {
  require_possible(nbytes);
  thread_bytes_ = std::max(thread_bytes_, nbytes);
}

void Workspace::need_region(int64_t id, int64_t nbytes) {
  require_possible(nbytes);
  for (Region& region : regions_)
    if (region.id == id) {
      region.nbytes = std::max(region.nbytes, nbytes);
      return;
    }
  regions_.push_back({id, nbytes, nullptr});
}

int64_t Workspace::nbytes(int threads) const {
  int64_t total = stride() * threads;
  for (const Region& region : regions_) total += align_up(region.nbytes, 64);
  return total;
}

void Workspace::place(uint8_t* base, int threads) {
  base_ = base;
  uint8_t* next = base + stride() * threads;
  for (Region& region : regions_) {
    region.address = next;
    next += align_up(region.nbytes, 64);
  }
}

uint8_t* Workspace::region(int64_t id) const {
  for (const Region& region : regions_)
    if (region.id == id) return region.address;
  throw Error("region: no step fills region " + std::to_string(id));
}

// ---- row steps ------------------------------------------------------------------------------

uint32_t RowStep::begin(const Context& context) {
  total_ = count_.of(context.extents);
  if (total_ <= 0) return 0;
  const int64_t worth = capped_product(total_, cost_) / kWorthSharing;
  const int64_t chunks = std::clamp<int64_t>(worth, 1, context.threads * 4);
  per_chunk_ = context.threads == 1 ? total_ : align_up(ceil_div(total_, chunks), quantum_);
  return static_cast<uint32_t>(ceil_div(total_, per_chunk_));
}

void RowStep::chunk(const Context& context, uint32_t index, int thread) {
  const int64_t begin = index * per_chunk_;
  rows(context, begin, std::min(total_, begin + per_chunk_), thread);
}

// ---- programs -------------------------------------------------------------------------------

struct Executor::Program : Job {
  std::vector<std::unique_ptr<Step>> steps;
  Workspace workspace;
  Extents capacity;
  Context context;
  size_t next = 0;
  Step* current = nullptr;
  bool borrows = false;  // its workspace is the host's

  // What stopped the run. Only steps that run alone may refuse, so one thread writes it.
  std::string failure;

  std::vector<std::string> kinds;
  // While profiling: when each step began, and when the last ended.
  int64_t* started = nullptr;
  clockid_t clock = CLOCK_MONOTONIC;

  int64_t now() const {
    timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
  }

  void attach(uint8_t* base, int threads) {
    workspace.place(base, threads);
    for (const auto& step : steps) step->attach(workspace);
  }

  uint32_t advance(int thread) override {
    size_t at = next;
    try {
      while (true) {
        if (started != nullptr && started[next] == 0) started[next] = now();
        if (next == steps.size()) break;
        at = next;
        current = steps[at].get();
        const uint32_t chunks = current->begin(context);
        if (chunks > Pool::kMostChunks) throw Error("chunks: too many for one step");
        if (!current->repeats()) ++next;
        if (chunks > 1) return chunks;
        if (chunks == 1) current->chunk(context, 0, thread);
      }
    } catch (const Error& error) {
      failure = "steps[" + std::to_string(at) + "]: " + error.what();
    }
    return 0;
  }

  void chunk(uint32_t index, int thread) override { current->chunk(context, index, thread); }
};

void Executor::Deleter::operator()(Program* program) const { delete program; }

Executor::Executor(int threads) : kernels_(best_kernels()), pool_(threads) {}

std::unique_lock<std::mutex> Executor::exclusive() {
  pool_.require_owner();
  return std::unique_lock(busy_);
}

namespace {

void check(const char* name, int64_t length, int64_t capacity) {
  if (length < 0 || length > capacity)
    throw Error(std::string(name) + ": the program holds 0 to " + std::to_string(capacity) +
                ", got " + std::to_string(length));
}

void check(const Extents& extents, const Extents& capacity) {
  check("B", extents.rows, capacity.rows);
  check("T", extents.tokens, capacity.tokens);
  check("S", extents.sampled, capacity.sampled);
}

void copy(const Transfer* transfers, size_t count) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(reinterpret_cast<void*>(transfers[i].destination),
                reinterpret_cast<const void*>(transfers[i].source),
                static_cast<size_t>(transfers[i].nbytes));
}

}  // namespace

int64_t Executor::load(const std::vector<StepSpec>& specs, const Extents& capacity,
                       uint8_t* workspace, int64_t workspace_bytes) {
  check(capacity, {kMostLength, kMostLength, kMostLength});
  std::unique_ptr<Program, Deleter> program(new Program);
  program->capacity = capacity;
  program->context.kernels = &kernels_;
  program->context.threads = threads();
  for (size_t i = 0; i < specs.size(); ++i) {
    try {
      program->steps.push_back(make_step(specs[i].first, specs[i].second));
      program->kinds.push_back(specs[i].first);
    } catch (const Error& error) {
      throw Error("steps[" + std::to_string(i) + "] " + specs[i].first + ": " + error.what());
    }
  }
  for (const auto& step : program->steps) step->plan(program->workspace, capacity);
  const auto lock = exclusive();
  const int64_t needed = program->workspace.nbytes(threads());
  program->borrows = needed <= workspace_bytes;
  if (!program->borrows) make_room(needed);
  program->attach(program->borrows ? workspace : memory_->data(), threads());
  programs_.push_back(std::move(program));
  return static_cast<int64_t>(programs_.size()) - 1;
}

void Executor::unload(int64_t program) {
  const auto lock = exclusive();
  find(program);
  programs_[static_cast<size_t>(program)].reset();
}

void Executor::make_room(int64_t nbytes) {
  if (memory_ && memory_->nbytes() >= nbytes) return;
  memory_ = std::make_unique<Memory>(std::max<int64_t>(nbytes, 64));
  for (const auto& program : programs_)
    if (program && !program->borrows) program->attach(memory_->data(), threads());
}

Executor::Program& Executor::find(int64_t program) const {
  if (program < 0 || program >= static_cast<int64_t>(programs_.size()) ||
      programs_[static_cast<size_t>(program)] == nullptr)
    throw Error("program: no program is loaded under " + std::to_string(program));
  return *programs_[static_cast<size_t>(program)];
}

void Executor::run(int64_t program, const Extents& extents, const Transfer* before,
                   size_t before_count, const Transfer* after, size_t after_count) {
  const std::unique_lock lock(busy_, std::try_to_lock);
  if (!lock) throw Error("executor: a run is already in progress");
  Program& found = find(program);
  check(extents, found.capacity);
  copy(before, before_count);
  start(found, extents);
  copy(after, after_count);
}

void Executor::start(Program& program, const Extents& extents, int64_t* started) {
  program.started = started;
  program.context.extents = extents;
  program.next = 0;
  program.failure.clear();
  pool_.run(program);
  if (!program.failure.empty()) throw Error(program.failure);
}

std::map<std::string, std::pair<int64_t, int64_t>> Executor::profile(int64_t program,
                                                                     const Extents& extents) {
  const auto lock = exclusive();
  Program& found = find(program);
  check(extents, found.capacity);
  found.clock = threads() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  std::vector<int64_t> started(found.steps.size() + 1);
  start(found, extents, started.data());
  std::map<std::string, std::pair<int64_t, int64_t>> told;
  for (size_t i = 0; i < found.steps.size(); ++i) {
    auto& [count, total] = told[found.kinds[i]];
    ++count;
    total += started[i + 1] - started[i];
  }
  return told;
}

}  // namespace helios
