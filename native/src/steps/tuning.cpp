// Tuning: runs a matrix product in every way that it may be cut, and keeps the fastest.
//
// A trial is one whole product on the executor's own threads, with zeros for tokens, by the next of
// the weights, so that weights are as far from the processor as when a model serves. Places of the
// choices are settled one after the other, each at the most tokens that it covers, as far as one
// run goes; a place that is too large to try takes the choice of the one before. Time decides only
// which of several right answers is taken, and only within the budget: what could not be compared
// stays neutral.
#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "steps/cuts.h"
#include "steps/steps.h"

namespace helios {
namespace {

constexpr int64_t kLeastRounds = 4;
constexpr int64_t kMostRounds = 8;
constexpr int64_t kEnough = 1'000'000;       // nanoseconds of a place, past the least rounds
constexpr int64_t kMostWork = 1 << 26;       // multiply-accumulates of a trial
constexpr int64_t kStreamedAnyway = 4;       // tokens that every kernel streams
constexpr int64_t kOutputBytes = 1 << 20;
// What a cut must gain over the neutral one, and in which share of the rounds, to displace it.
constexpr int64_t kGainPercent = 2;
constexpr int64_t kWinsOfFour = 3;

// The region of tokens and, behind them, their products: far from the numbers that a host gives.
constexpr int64_t kRegion = int64_t{1} << 40;

int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

class TuneLinear final : public Step {
 public:
  explicit TuneLinear(const Params& p)
      : columns_(p.positive("columns")),
        rows_(p.positive("rows")),
        weights_(p.list("weights")),
        planes_(p.integer("planes")),
        choices_(p.pointer<int32_t>("choices")),
        places_(p.positive("places")),
        budget_(checked("budget", p.integer("budget"), kMost)),
        trials_told_(p.optional_pointer<int64_t>("trials")) {
    const int64_t layout =
        checked("layout", p.integer("layout"), static_cast<int64_t>(Layout::FLAT));
    nibbles_ = layout_spec(static_cast<Layout>(layout)).bits == 4;
    require_memory("rows", {rows_, columns_});
    if (weights_.empty()) throw Error("weights: must not be empty");
    if (planes_ < 0 || planes_ > 2) throw Error("planes: must lie between 0 and 2");
    inner_params_.set("count", std::string("T"));
    inner_params_.set("columns", columns_);
    inner_params_.set("layouts", std::vector<int64_t>{layout});
    inner_params_.set("rows", std::vector<int64_t>{rows_});
    inner_params_.set("biases", std::vector<int64_t>{0});
    inner_params_.set("residuals", std::vector<int64_t>{0});
    inner_params_.set("choices", reinterpret_cast<int64_t>(choices_));
    inner_params_.set("places", places_);
    if (planes_ > 0) {
      inner_params_.set("planes", planes_);
      inner_params_.set("region", kRegion);
    }
  }

  void plan(Workspace& workspace, const Extents&) override {
    workspace.need_region(kRegion, input_bytes() + output_bytes());
    make(weights_[0], kRegion, kRegion)->plan(workspace, {0, kLongestRun, 0});
  }

  void attach(const Workspace& workspace) override {
    input_ = workspace.region(kRegion);
    const int64_t output = reinterpret_cast<int64_t>(input_ + input_bytes());
    products_.clear();
    for (const int64_t weight : weights_) {
      products_.push_back(make(weight, reinterpret_cast<int64_t>(input_), output));
      products_.back()->attach(workspace);
    }
  }

  uint32_t begin(const Context& context) override {
    if (running_)
      record(now() - started_);
    else
      start(context);
    running_ = next_trial();
    if (!running_) return 0;
    choices_[place_] = candidates_[candidate()].cut;
    started_ = now();
    return product().begin(context_);
  }

  void chunk(const Context&, uint32_t index, int thread) override {
    product().chunk(context_, index, thread);
  }

  bool repeats() const override { return running_; }

 private:
  struct Candidate {
    int32_t cut;
    uint32_t chunks;
    int64_t run;
    bool streams;
    int64_t best = INT64_MAX;
    int64_t wins = 0;  // rounds in which it beat the neutral one

    bool same_work(const Candidate& other) const {
      return chunks == other.chunks && run == other.run && streams == other.streams;
    }
  };

  std::unique_ptr<Step> make(int64_t weight, int64_t input, int64_t output) const {
    Params params = inner_params_;
    params.set("weights", std::vector<int64_t>{weight});
    if (planes_ == 0) params.set("x", input);
    params.set("outs", std::vector<int64_t>{output});
    return linear_step("linear", params);
  }

  Step& product() { return *products_[static_cast<size_t>(trials_) % products_.size()]; }

  int64_t input_bytes() const {
    const int64_t nbytes = planes_ > 0
                               ? Quant::bytes(kLongestRun, columns_, static_cast<int>(planes_))
                               : kLongestRun * columns_ * 4;
    return align_up(nbytes, 64);
  }
  int64_t output_bytes() const { return std::min(kOutputBytes, kLongestRun * rows_ * 4); }

  void start(const Context& context) {
    std::memset(input_, 0, static_cast<size_t>(input_bytes()));
    std::fill_n(choices_, places_, 0);
    context_ = context;
    deadline_ = now() + budget_;
    trials_ = 0;
    place_ = -1;
    candidates_.clear();
  }

  // Moves on to the next trial, settling every place that has had enough of them.
  bool next_trial() {
    while (place_ < 0 || candidates_.empty() || settled()) {
      if (!candidates_.empty()) choices_[place_] = fastest();
      if (++place_ == places_ || now() >= deadline_) {
        if (trials_told_ != nullptr) *trials_told_ = trials_;
        return false;
      }
      enter();
    }
    return true;
  }

  // Finds the cuts that differ at this place; with fewer than two there is nothing to try.
  void enter() {
    const int64_t tokens = std::min(int64_t{1} << (2 * std::min<int64_t>(place_, 16)), kLongestRun);
    candidates_.clear();
    tried_ = spent_ = 0;
    if (tokens * rows_ * columns_ > kMostWork || tokens * rows_ * 4 > output_bytes()) {
      if (place_ > 0) choices_[place_] = choices_[place_ - 1];
      return;
    }
    context_.extents = {0, tokens, 0};
    const bool may_stream = nibbles_ && tokens > kStreamedAnyway;
    for (int32_t cut = 0; cut < kCutCount; ++cut) {
      choices_[place_] = cut;
      const int64_t run = std::min(tokens, kCuts[cut].run);
      const Candidate found{cut, product().begin(context_), run, may_stream && kCuts[cut].streams};
      const bool known = std::any_of(candidates_.begin(), candidates_.end(),
                                     [&](const Candidate& c) { return c.same_work(found); });
      if (!known) candidates_.push_back(found);
    }
    choices_[place_] = 0;
    if (candidates_.size() < 2) candidates_.clear();
  }

  size_t candidate() const { return static_cast<size_t>(tried_) % candidates_.size(); }
  int64_t rounds() const { return tried_ / static_cast<int64_t>(candidates_.size()); }

  void record(int64_t nanoseconds) {
    Candidate& tried = candidates_[candidate()];
    if (candidate() == 0) neutral_ = nanoseconds;
    tried.best = std::min(tried.best, nanoseconds);
    tried.wins += nanoseconds * 100 < neutral_ * (100 - kGainPercent);
    spent_ += nanoseconds;
    ++tried_;
    ++trials_;
  }

  bool settled() const {
    if (now() >= deadline_) return true;
    if (candidate() != 0 || rounds() < kLeastRounds) return false;
    return rounds() >= kMostRounds || spent_ >= kEnough;
  }

  // Other programs disturb single trials, so a cut must win where both ran one after the other.
  int32_t fastest() const {
    if (rounds() < kLeastRounds) return 0;
    const Candidate* best = &candidates_.front();
    for (const Candidate& c : candidates_)
      if (c.wins * 4 >= rounds() * kWinsOfFour && c.best < best->best) best = &c;
    return best->cut;
  }

  int64_t columns_;
  int64_t rows_;
  std::vector<int64_t> weights_;
  int64_t planes_;
  bool nibbles_ = false;
  int32_t* choices_;
  int64_t places_;
  int64_t budget_;
  int64_t* trials_told_;
  Params inner_params_;
  std::vector<std::unique_ptr<Step>> products_;  // one for each of the weights
  uint8_t* input_ = nullptr;

  // Of the run in progress.
  bool running_ = false;
  Context context_;
  int64_t deadline_ = 0;
  int64_t started_ = 0;
  int64_t trials_ = 0;
  int64_t place_ = -1;
  int64_t tried_ = 0;  // at this place
  int64_t spent_ = 0;
  int64_t neutral_ = 0;  // nanoseconds of this round's neutral trial
  std::vector<Candidate> candidates_;
};

}  // namespace

std::unique_ptr<Step> tuning_step(const std::string& kind, const Params& params) {
  if (kind == "tune_linear") return std::make_unique<TuneLinear>(params);
  return nullptr;
}

}  // namespace helios
