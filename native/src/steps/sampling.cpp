// From logits to tokens: penalties, grammar masks, sampling, log-probabilities.
//
// The most likely tokens are found by selection over the bits of their logits, in a few passes,
// never by sorting the vocabulary.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "philox.h"
#include "steps/steps.h"

namespace helios {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

class ProcessLogits final : public RowStep {
 public:
  explicit ProcessLogits(const Params& p)
      : RowStep(count_of(p), p.positive("vocabulary")),
        logits_(p.pointer<const float>("logits")),
        slots_(p.pointer<const int32_t>("slots")),
        prompt_(p.pointer<const int32_t>("prompt_histogram")),
        output_(p.pointer<const int32_t>("output_histogram")),
        repetition_(p.pointer<const float>("repetition")),
        presence_(p.pointer<const float>("presence")),
        frequency_(p.pointer<const float>("frequency")),
        bias_tokens_(p.pointer<const int32_t>("bias_tokens")),
        bias_values_(p.pointer<const float>("bias_values")),
        minimum_output_(p.pointer<const int32_t>("minimum_output")),
        output_count_(p.pointer<const int32_t>("output_count")),
        eos_(p.pointer<const int32_t>("eos_tokens")),
        out_(p.pointer<float>("out")),
        vocabulary_(p.positive("vocabulary")),
        biases_(p.positive("biases")),
        eos_count_(p.positive("eos_count")),
        state_rows_(p.positive("state_rows")) {}

  uint32_t begin(const Context& context) override {
    for (int64_t s = 0; s < count_.of(context.extents); ++s)
      checked("slots", slots_[s], state_rows_);
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    for (int64_t s = begin; s < end; ++s) {
      float* row = out_ + s * vocabulary_;
      std::memcpy(row, logits_ + s * vocabulary_, static_cast<size_t>(vocabulary_) * 4);
      add_biases(s, row);
      if (output_count_[s] < minimum_output_[s]) forbid_end(s, row);
      if (repetition_[s] != 1.0f) penalise_repetition(s, row);
      if (presence_[s] != 0.0f || frequency_[s] != 0.0f) penalise_output(s, row);
    }
  }

 private:
  void add_biases(int64_t s, float* row) const {
    for (int64_t i = s * biases_; i < (s + 1) * biases_; ++i)
      if (bias_tokens_[i] >= 0 && bias_tokens_[i] < vocabulary_)
        row[bias_tokens_[i]] += bias_values_[i];
  }

  void forbid_end(int64_t s, float* row) const {
    for (int64_t i = s * eos_count_; i < (s + 1) * eos_count_; ++i)
      if (eos_[i] >= 0 && eos_[i] < vocabulary_) row[eos_[i]] = kForbidden;
  }

  void penalise_repetition(int64_t s, float* row) const {
    const int32_t* prompt = prompt_ + slots_[s] * vocabulary_;
    const int32_t* output = output_ + slots_[s] * vocabulary_;
    for (int64_t v = 0; v < vocabulary_; ++v)
      if ((prompt[v] | output[v]) > 0)
        row[v] = row[v] > 0.0f ? row[v] / repetition_[s] : row[v] * repetition_[s];
  }

  void penalise_output(int64_t s, float* row) const {
    const int32_t* output = output_ + slots_[s] * vocabulary_;
    for (int64_t v = 0; v < vocabulary_; ++v)
      if (output[v] > 0)
        row[v] -= frequency_[s] * static_cast<float>(output[v]) + presence_[s];
  }

  const float* logits_;
  const int32_t* slots_;
  const int32_t* prompt_;
  const int32_t* output_;
  const float* repetition_;
  const float* presence_;
  const float* frequency_;
  const int32_t* bias_tokens_;
  const float* bias_values_;
  const int32_t* minimum_output_;
  const int32_t* output_count_;
  const int32_t* eos_;
  float* out_;
  int64_t vocabulary_, biases_, eos_count_, state_rows_;
};

class MaskLogits final : public RowStep {
 public:
  explicit MaskLogits(const Params& p)
      : RowStep(count_of(p), p.positive("vocabulary")),
        logits_(p.pointer<const float>("logits")),
        sampled_(p.pointer<const int32_t>("sampled_rows")),
        mask_(p.pointer<const uint32_t>("mask")),
        active_(p.pointer<const int32_t>("active")),
        out_(p.pointer<float>("out")),
        vocabulary_(p.positive("vocabulary")),
        words_(p.positive("words")) {
    if (words_ * 32 < vocabulary_) throw Error("words: too few for the vocabulary");
  }

  uint32_t begin(const Context& context) override {
    for (int64_t s = 0; s < count_.of(context.extents); ++s)
      checked("sampled_rows", sampled_[s], context.extents.rows);
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    for (int64_t s = begin; s < end; ++s) {
      float* row = out_ + s * vocabulary_;
      const float* from = logits_ + s * vocabulary_;
      if (row != from) std::memcpy(row, from, static_cast<size_t>(vocabulary_) * 4);
      if (active_[sampled_[s]] == 0) continue;
      const uint32_t* mask = mask_ + sampled_[s] * words_;
      for (int64_t v = 0; v < vocabulary_; ++v)
        if ((mask[v / 32] >> (v % 32) & 1u) == 0) row[v] = kForbidden;
    }
  }

 private:
  const float* logits_;
  const int32_t* sampled_;
  const uint32_t* mask_;
  const int32_t* active_;
  float* out_;
  int64_t vocabulary_, words_;
};

// Larger floats have larger keys; equal floats (both zeros too) have equal keys.
uint32_t key_of(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value + 0.0f);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

// One entry per token still in the running, in token order.
struct Candidate {
  int32_t token;
  uint32_t key;
  float weight;
};

// Keeps the fewest candidates of largest key whose measure reaches `goal`; ties go to the smaller
// token. Measure is 1 each, or the weight. Keys are narrowed by 11, 11 and 10 bits.
template <class Measure>
int64_t keep_top(Candidate* c, int64_t n, double goal, double* buckets, Measure measure) {
  uint32_t prefix = 0, known = 0;
  double above = 0.0;
  for (const auto& [shift, bits] : {std::pair{21, 11}, std::pair{10, 11}, std::pair{0, 10}}) {
    const uint32_t width = (1u << bits) - 1u;
    std::fill_n(buckets, width + 1u, 0.0);
    for (int64_t i = 0; i < n; ++i)
      if ((c[i].key & known) == prefix) buckets[c[i].key >> shift & width] += measure(c[i]);
    int64_t bucket = width;
    for (; bucket > 0 && above + buckets[bucket] < goal; --bucket) above += buckets[bucket];
    prefix |= static_cast<uint32_t>(bucket) << shift;
    known |= width << shift;
  }
  int64_t kept = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (c[i].key < prefix || (c[i].key == prefix && above >= goal)) continue;
    if (c[i].key == prefix) above += measure(c[i]);
    c[kept++] = c[i];
  }
  return kept;
}

class Sample final : public RowStep {
 public:
  explicit Sample(const Params& p)
      : RowStep(count_of(p), p.positive("vocabulary") * 4),
        logits_(p.pointer<const float>("logits")),
        temperature_(p.pointer<const float>("temperature")),
        top_k_(p.pointer<const int32_t>("top_k")),
        top_p_(p.pointer<const float>("top_p")),
        min_p_(p.pointer<const float>("min_p")),
        seed_(p.pointer<const uint64_t>("seed")),
        position_(p.pointer<const int32_t>("position")),
        out_(p.pointer<int32_t>("out")),
        vocabulary_(p.positive("vocabulary")) {}

  void plan(Workspace& workspace, const Extents&) override {
    workspace.need_thread_bytes(kBuckets * 8 + vocabulary_ * 16);
  }
  void attach(const Workspace& workspace) override { workspace_ = &workspace; }

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int thread) override {
    for (int64_t s = begin; s < end; ++s) {
      const float* row = logits_ + s * vocabulary_;
      out_[s] = temperature_[s] == 0.0f
                    ? static_cast<int32_t>(context.kernels->argmax(row, vocabulary_))
                    : draw(context, s, row, thread);
    }
  }

 private:
  static constexpr int64_t kBuckets = 2048;

  int32_t draw(const Context& context, int64_t s, const float* row, int thread) const {
    double* buckets = reinterpret_cast<double*>(workspace_->of_thread(thread));
    float* weights = reinterpret_cast<float*>(buckets + kBuckets);
    Candidate* c = reinterpret_cast<Candidate*>(weights + vocabulary_);
    const float top = context.kernels->largest(row, vocabulary_);
    context.kernels->sum_exp(row, top, 1.0f / temperature_[s], weights, vocabulary_);
    int64_t n = 0;
    for (int64_t v = 0; v < vocabulary_; ++v)
      if (row[v] != kForbidden) c[n++] = {static_cast<int32_t>(v), key_of(row[v]), weights[v]};
    if (n == 0) return 0;
    if (top_k_[s] > 0 && top_k_[s] < n)
      n = keep_top(c, n, top_k_[s], buckets, [](const Candidate&) { return 1.0; });
    if (n > 0 && top_p_[s] < 1.0f)
      n = keep_top(c, n, static_cast<double>(top_p_[s]) * mass(c, n), buckets,
                   [](const Candidate& x) { return static_cast<double>(x.weight); });
    n = keep_likely(c, n, min_p_[s]);
    // Settings or logits that are no numbers may leave nothing.
    if (n == 0) return static_cast<int32_t>(context.kernels->argmax(row, vocabulary_));
    return pick(c, n, uniform(seed_[s], static_cast<uint32_t>(position_[s])));
  }

  static double mass(const Candidate* c, int64_t n) {
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) total += static_cast<double>(c[i].weight);
    return total;
  }

  // The largest weight is 1: logits were shifted by the largest.
  static int64_t keep_likely(Candidate* c, int64_t n, float least) {
    if (least <= 0.0f) return n;
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i)
      if (c[i].weight >= least) c[kept++] = c[i];
    return kept;
  }

  // Inverse transform in token order.
  static int32_t pick(const Candidate* c, int64_t n, double u) {
    const double goal = u * mass(c, n);
    double reached = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      reached += static_cast<double>(c[i].weight);
      if (reached > goal) return c[i].token;
    }
    return c[n - 1].token;
  }

  const float* logits_;
  const float* temperature_;
  const int32_t* top_k_;
  const float* top_p_;
  const float* min_p_;
  const uint64_t* seed_;
  const int32_t* position_;
  int32_t* out_;
  int64_t vocabulary_;
  const Workspace* workspace_ = nullptr;
};

double log_total(const Context& context, const float* row, int64_t n, float top) {
  return std::log(context.kernels->sum_exp(row, top, 1.0f, nullptr, n));
}

class LogProbability final : public RowStep {
 public:
  explicit LogProbability(const Params& p)
      : RowStep(count_of(p), p.positive("vocabulary") * 2),
        logits_(p.pointer<const float>("logits")),
        tokens_(p.pointer<const int32_t>("tokens")),
        out_(p.pointer<float>("out")),
        vocabulary_(p.positive("vocabulary")) {}

  uint32_t begin(const Context& context) override {
    for (int64_t a = 0; a < count_.of(context.extents); ++a)
      if (tokens_[a] >= 0) checked("tokens", tokens_[a], vocabulary_);
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    for (int64_t a = begin; a < end; ++a) {
      const float* row = logits_ + a * vocabulary_;
      if (tokens_[a] < 0) {
        out_[a] = 0.0f;
        continue;
      }
      const float top = context.kernels->largest(row, vocabulary_);
      out_[a] = static_cast<float>(static_cast<double>(row[tokens_[a]] - top) -
                                   log_total(context, row, vocabulary_, top));
    }
  }

 private:
  const float* logits_;
  const int32_t* tokens_;
  float* out_;
  int64_t vocabulary_;
};

class TopLogProbabilities final : public RowStep {
 public:
  explicit TopLogProbabilities(const Params& p)
      : RowStep(count_of(p), p.positive("vocabulary") * 2),
        logits_(p.pointer<const float>("logits")),
        wanted_(p.pointer<const int32_t>("wanted")),
        tokens_(p.pointer<int32_t>("tokens")),
        values_(p.pointer<float>("values")),
        vocabulary_(p.positive("vocabulary")),
        maximum_(p.positive("maximum")) {}

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    for (int64_t a = begin; a < end; ++a) {
      int32_t* tokens = tokens_ + a * maximum_;
      float* values = values_ + a * maximum_;
      std::fill_n(tokens, maximum_, -1);
      std::fill_n(values, maximum_, kForbidden);
      const int64_t n = std::min<int64_t>({wanted_[a], maximum_, vocabulary_});
      if (n <= 0) continue;
      const float* row = logits_ + a * vocabulary_;
      select(row, n, tokens, values);
      const float top = values[0];
      const double total = log_total(context, row, vocabulary_, top);
      for (int64_t i = 0; i < n; ++i)
        values[i] = static_cast<float>(static_cast<double>(values[i] - top) - total);
    }
  }

 private:
  // Insertion into a short sorted list; later tokens go behind equal ones.
  void select(const float* row, int64_t n, int32_t* tokens, float* values) const {
    int64_t held = 0;
    for (int64_t v = 0; v < vocabulary_; ++v) {
      if (held == n && !(row[v] > values[n - 1])) continue;
      int64_t at = held < n ? held++ : n - 1;
      for (; at > 0 && row[v] > values[at - 1]; --at) {
        values[at] = values[at - 1];
        tokens[at] = tokens[at - 1];
      }
      values[at] = row[v];
      tokens[at] = static_cast<int32_t>(v);
    }
  }

  const float* logits_;
  const int32_t* wanted_;
  int32_t* tokens_;
  float* values_;
  int64_t vocabulary_, maximum_;
};

}  // namespace

std::unique_ptr<Step> sampling_step(const std::string& kind, const Params& params) {
  if (kind == "process_logits") return std::make_unique<ProcessLogits>(params);
  if (kind == "mask_logits") return std::make_unique<MaskLogits>(params);
  if (kind == "sample") return std::make_unique<Sample>(params);
  if (kind == "log_probability") return std::make_unique<LogProbability>(params);
  if (kind == "top_log_probabilities") return std::make_unique<TopLogProbabilities>(params);
  return nullptr;
}

}  // namespace helios
