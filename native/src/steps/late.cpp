// The step at which a program waits for input that comes while it runs.
#include <chrono>

#include "latch.h"
#include "steps/steps.h"

namespace helios {
namespace {

class AwaitInput final : public Step {
 public:
  explicit AwaitInput(const Params& p)
      : latch_(p.pointer<Latch>("latch")), seconds_(p.number("seconds")) {
    if (!(seconds_ >= 0.0 && seconds_ <= 1e6))
      throw Error("seconds: must lie between 0 and a million");
  }

  void plan(Workspace&, const Extents&) override {}
  void attach(const Workspace&) override {}

  uint32_t begin(const Context&) override {
    const std::chrono::duration<double> most(seconds_);
    if (!latch_->wait(std::chrono::duration_cast<std::chrono::nanoseconds>(most)))
      throw Error("the host did not supply what this step reads while it ran");
    return 0;
  }

  void chunk(const Context&, uint32_t, int) override {}

 private:
  Latch* latch_;
  double seconds_;
};

}  // namespace

std::unique_ptr<Step> late_step(const std::string& kind, const Params& params) {
  if (kind == "await_input") return std::make_unique<AwaitInput>(params);
  return nullptr;
}

}  // namespace helios
