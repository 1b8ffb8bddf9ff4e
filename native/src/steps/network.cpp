// Steps of the network other than matrix products and attention, row by row.
#include <cmath>
#include <vector>

#include "steps/steps.h"

namespace helios {
namespace {

// Where a step leaves its rows quantised for the matrix products that follow, if anywhere.
class QuantTarget {
 public:
  QuantTarget(const Params& p, int64_t columns)
      : id_(p.integer("region", -1)), columns_(columns) {
    if (id_ < 0) return;
    quant_.planes = planes_of(p);
    quant_.groups = columns / 32;
    if (columns % 32 != 0) throw Error("columns: quantised rows need a multiple of 32");
  }
  void plan(Workspace& workspace, int64_t tokens) const {
    if (id_ >= 0) workspace.need_region(id_, Quant::bytes(tokens, columns_, quant_.planes));
  }
  void attach(const Workspace& workspace) {
    if (id_ >= 0) quant_.base = workspace.region(id_);
  }
  void row(const Context& context, const float* x, int64_t token) const {
    if (id_ >= 0) context.kernels->quantise(x, quant_, token, 0, quant_.groups);
  }

 private:
  int64_t id_;
  int64_t columns_;
  Quant quant_;
};

class Embedding final : public RowStep {
 public:
  explicit Embedding(const Params& p)
      : RowStep(count_of(p), p.positive("columns") * 4),
        tokens_(p.pointer<const int32_t>("tokens")),
        out_(p.pointer<float>("out")),
        scale_(static_cast<float>(p.number("scale"))),
        table_{p.pointer<const uint8_t>("weight"),
               layout_named(p.text("layout")).layout, p.positive("vocabulary"),
               p.positive("columns")} {}

  uint32_t begin(const Context& context) override {
    for (int64_t t = 0; t < count_.of(context.extents); ++t)
      checked("tokens", tokens_[t], table_.rows);
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    for (int64_t t = begin; t < end; ++t) {
      float* row = out_ + t * table_.columns;
      unpack_row(table_, tokens_[t], row);
      if (scale_ != 1.0f) context.kernels->scale(row, scale_, row, table_.columns);
    }
  }

 private:
  const int32_t* tokens_;
  float* out_;
  float scale_;
  Matrix table_;
};

int64_t repeat_of(const Params& p) { return p.has("repeat") ? p.positive("repeat") : 1; }

// RMS norm, quantisation, or the first followed by the second.
class Normalise final : public RowStep {
 public:
  Normalise(const Params& p, bool norm)
      : RowStep(count_of(p), capped_product(repeat_of(p), p.positive("columns"))),
        x_(p.pointer<const float>("x")),
        weight_(norm ? p.pointer<const float>("weight") : nullptr),
        out_(p.optional_pointer<float>("out")),
        columns_(p.positive("columns")),
        repeat_(repeat_of(p)),
        epsilon_(norm ? static_cast<float>(p.number("epsilon")) : 0.0f),
        target_(p, columns_) {
    quantum_ = kQuantTile;
    if (repeat_ > 1 && p.has("region")) throw Error("repeat: must be 1 for quantised rows");
  }

  void plan(Workspace& workspace, const Extents& capacity) override {
    target_.plan(workspace, count_.of(capacity));
    workspace.need_thread_bytes(columns_ * 4);
  }
  void attach(const Workspace& workspace) override {
    workspace_ = &workspace;
    target_.attach(workspace);
  }

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int thread) override {
    float* scratch = reinterpret_cast<float*>(workspace_->of_thread(thread));
    for (int64_t t = begin * repeat_; t < end * repeat_; ++t) {
      const float* y = x_ + t * columns_;
      if (weight_ != nullptr) {
        float* normed = out_ != nullptr ? out_ + t * columns_ : scratch;
        context.kernels->rms_norm(y, weight_, epsilon_, normed, columns_);
        y = normed;
      }
      target_.row(context, y, t);
    }
  }

 private:
  const float* x_;
  const float* weight_;
  float* out_;
  int64_t columns_;
  int64_t repeat_;  // rows of `columns` per row of the leading dimension
  float epsilon_;
  QuantTarget target_;
  const Workspace* workspace_ = nullptr;
};

// Cosines and sines of every token's angles, shared by all layers that rotate alike.
class RopeTable final : public RowStep {
 public:
  explicit RopeTable(const Params& p)
      : RowStep(count_of(p), p.positive("pairs") * 40),
        positions_(p.pointer<const int32_t>("positions")),
        frequencies_(p.pointer<const float>("frequencies")),
        pairs_(p.positive("pairs")),
        magnitude_(p.number("magnitude")),
        region_(p.integer("table")) {}

  void plan(Workspace& workspace, const Extents& capacity) override {
    workspace.need_region(region_, capped_product(count_.of(capacity) * 8, pairs_));
  }
  void attach(const Workspace& workspace) override {
    table_ = reinterpret_cast<float*>(workspace.region(region_));
  }

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    for (int64_t t = begin; t < end; ++t) {
      float* row = table_ + t * pairs_ * 2;
      for (int64_t f = 0; f < pairs_; ++f) {
        // The angle is rounded to single precision, as every published implementation has it.
        const double angle = static_cast<float>(positions_[t]) * frequencies_[f];
        row[f] = static_cast<float>(std::cos(angle) * magnitude_);
        row[pairs_ + f] = static_cast<float>(std::sin(angle) * magnitude_);
      }
    }
  }

 private:
  const int32_t* positions_;
  const float* frequencies_;
  int64_t pairs_;
  double magnitude_;
  int64_t region_;
  float* table_ = nullptr;
};

class Rope final : public RowStep {
 public:
  explicit Rope(const Params& p)
      : RowStep(count_of(p), capped_product(p.positive("heads"), p.positive("dim"))),
        x_(p.pointer<const float>("x")),
        out_(p.pointer<float>("out")),
        heads_(p.positive("heads")),
        dim_(p.positive("dim")),
        pairs_(p.positive("pairs")),
        interleaved_(p.integer("interleaved") != 0),
        region_(p.integer("table")) {
    if (2 * pairs_ > dim_) throw Error("pairs: more angles than the head has pairs");
  }

  void attach(const Workspace& workspace) override {
    table_ = reinterpret_cast<const float*>(workspace.region(region_));
  }

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    for (int64_t t = begin; t < end; ++t)
      for (int64_t h = 0; h < heads_; ++h) {
        const int64_t at = (t * heads_ + h) * dim_;
        context.kernels->rope(x_ + at, table_ + t * pairs_ * 2, pairs_, interleaved_, dim_,
                              out_ + at);
      }
  }

 private:
  const float* x_;
  float* out_;
  int64_t heads_, dim_, pairs_;
  bool interleaved_;
  int64_t region_;
  const float* table_ = nullptr;
};

class GatedActivation final : public RowStep {
 public:
  explicit GatedActivation(const Params& p)
      : RowStep(count_of(p), p.positive("columns") * 8),
        gate_(p.pointer<const float>("gate")),
        up_(p.pointer<const float>("up")),
        out_(p.pointer<float>("out")),
        columns_(p.positive("columns")),
        function_(static_cast<Gate>(checked("function", p.integer("function"), 3))) {}

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * columns_;
      context.kernels->gate(function_, gate_ + at, up_ + at, out_ + at, columns_);
    }
  }

 private:
  const float* gate_;
  const float* up_;
  float* out_;
  int64_t columns_;
  Gate function_;
};

class Elementwise final : public RowStep {
 public:
  enum class Function { ADD, SCALE, SOFTCAP };

  Elementwise(const Params& p, Function function)
      : RowStep(count_of(p), p.positive("columns") * (function == Function::SOFTCAP ? 8 : 1)),
        x_(p.pointer<const float>(function == Function::ADD ? "left" : "x")),
        right_(function == Function::ADD ? p.pointer<const float>("right") : nullptr),
        out_(p.pointer<float>("out")),
        columns_(p.positive("columns")),
        factor_(function == Function::ADD ? 0.0f : static_cast<float>(p.number("factor"))),
        function_(function) {}

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    const Kernels& k = *context.kernels;
    for (int64_t t = begin; t < end; ++t) {
      const int64_t at = t * columns_;
      switch (function_) {
        case Function::ADD: k.add(x_ + at, right_ + at, out_ + at, columns_); break;
        case Function::SCALE: k.scale(x_ + at, factor_, out_ + at, columns_); break;
        case Function::SOFTCAP: k.softcap(x_ + at, factor_, out_ + at, columns_); break;
      }
    }
  }

 private:
  const float* x_;
  const float* right_;
  float* out_;
  int64_t columns_;
  float factor_;
  Function function_;
};

}  // namespace

std::unique_ptr<Step> network_step(const std::string& kind, const Params& params) {
  using Function = Elementwise::Function;
  if (kind == "embedding") return std::make_unique<Embedding>(params);
  if (kind == "rms_norm") return std::make_unique<Normalise>(params, true);
  if (kind == "quantise") return std::make_unique<Normalise>(params, false);
  if (kind == "rope_table") return std::make_unique<RopeTable>(params);
  if (kind == "rope") return std::make_unique<Rope>(params);
  if (kind == "gated_activation") return std::make_unique<GatedActivation>(params);
  if (kind == "add") return std::make_unique<Elementwise>(params, Function::ADD);
  if (kind == "scale") return std::make_unique<Elementwise>(params, Function::SCALE);
  if (kind == "softcap") return std::make_unique<Elementwise>(params, Function::SOFTCAP);
  return nullptr;
}

}  // namespace helios
