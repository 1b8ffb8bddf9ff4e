// Matrix products: several weights that share their input, with what follows them.
//
// The work of a step is its output rows in units of 32 (two blocks; also the group in which a
// result is quantised) times its tokens in runs. Each chunk is some units of one run. How they are
// cut is a choice of tuning (cuts.h) and changes no number: see kernels/matmul.inl.
#include <algorithm>
#include <cstring>
#include <vector>

#include "steps/cuts.h"
#include "steps/steps.h"

namespace helios {
namespace {

constexpr int64_t kTilePitch = 32;
// Multiply-accumulates below which a chunk is not worth claiming.
constexpr int64_t kLeastWork = 64 * 1024;

struct Output {
  Matrix weight;
  const float* bias;
  const float* residual;
  float* out;
};

class Linear final : public Step {
 public:
  explicit Linear(const Params& p)
      : count_(count_of(p)),
        columns_(p.positive("columns")),
        x_(p.optional_pointer<const float>("x")),
        region_(p.integer("region", -1)),
        gate_(p.integer("gate", -1)),
        out_region_(p.integer("out_region", -1)),
        choices_(p.optional_pointer<const int32_t>("choices")),
        places_(choices_ == nullptr ? 0 : p.positive("places")) {
    quant_.planes = planes_of(p);
    target_.planes = planes_of(p, "out_planes");
    read_outputs(p);
    if (region_ < 0 && x_ == nullptr) throw Error("x: needs an address without a region");
    if (gate_ >= 3) throw Error("gate: unknown function " + std::to_string(gate_));
    if (gate_ >= 0 && outputs_.size() != 2) throw Error("gate: needs two outputs");
    if (gate_ < 0 && out_region_ >= 0) throw Error("out_region: needs a gate");
    quant_.groups = columns_ / 32;
    target_.groups = outputs_[0].weight.rows / 32;
    if (out_region_ >= 0 && outputs_[0].weight.rows % 32 != 0)
      throw Error("out_region: quantised rows need a multiple of 32");
    const size_t walked = gate_ >= 0 ? 1 : outputs_.size();
    for (size_t i = 0; i < walked; ++i)
      units_ += units_of(outputs_[i]);
  }

  void plan(Workspace& workspace, const Extents& capacity) override {
    workspace.need_thread_bytes(tiles_bytes() + columns_ * (region_ >= 0 ? 32 : 64));
    const int64_t tokens = count_.of(capacity);
    if (region_ >= 0)
      workspace.need_region(region_, Quant::bytes(tokens, columns_, quant_.planes));
    if (out_region_ >= 0)
      workspace.need_region(
          out_region_, Quant::bytes(tokens, outputs_[0].weight.rows, target_.planes));
  }

  void attach(const Workspace& workspace) override {
    workspace_ = &workspace;
    if (region_ >= 0) quant_.base = workspace.region(region_);
    if (out_region_ >= 0) target_.base = workspace.region(out_region_);
  }

  uint32_t begin(const Context& context) override {
    tokens_ = count_.of(context.extents);
    if (tokens_ <= 0) return 0;
    const Cut& cut = choose(tokens_);
    run_ = cut.run;
    streams_ = cut.streams;
    runs_ = ceil_div(tokens_, run_);
    const int64_t pairs = gate_ >= 0 ? 2 : 1;
    const int64_t work = kUnitBlocks * pairs * kBlockRows * columns_ *
                         std::clamp<int64_t>(tokens_, 4, run_);
    const int64_t fair = ceil_div(units_ * runs_, context.threads * cut.per_thread);
    const int64_t least = ceil_div(kLeastWork, work);
    per_chunk_ = std::clamp(std::max(least, std::min<int64_t>(fair, 64)), int64_t{1}, units_);
    chunks_per_run_ = ceil_div(units_, per_chunk_);
    return static_cast<uint32_t>(runs_ * chunks_per_run_);
  }

  void chunk(const Context& context, uint32_t index, int thread) override {
    const int64_t begin = index / chunks_per_run_ * run_;
    const int64_t end = std::min(tokens_, begin + run_);
    const int64_t first = index % chunks_per_run_ * per_chunk_;
    const int64_t last = std::min(units_, first + per_chunk_);
    for (int64_t unit = first; unit < last; ++unit) run_unit(context, unit, begin, end, thread);
  }

 private:
  void read_outputs(const Params& p) {
    const auto& weights = p.list("weights");
    const auto& layouts = p.list("layouts");
    const auto& rows = p.list("rows");
    const auto& biases = p.list("biases");
    const auto& residuals = p.list("residuals");
    const auto& outs = p.list("outs");
    const size_t n = weights.size();
    if (n == 0 || layouts.size() != n || rows.size() != n || biases.size() != n ||
        residuals.size() != n || outs.size() != n)
      throw Error("weights: the lists of outputs differ in length");
    for (size_t i = 0; i < n; ++i) {
      const Layout layout = static_cast<Layout>(
          checked("layouts", layouts[i], static_cast<int64_t>(Layout::FLAT)));
      if (rows[i] < 1 || rows[i] > kMost) throw Error("rows: must be positive, and possible");
      require_memory("rows", {rows[i], columns_});
      if (outs[i] == 0 && gate_ < 0) throw Error("outs: needs an address");
      if (weights[i] == 0) throw Error("weights: needs an address");
      const bool integer = layout_spec(layout).group != 0;
      if (integer && columns_ % 32 != 0) throw Error("columns: must be a multiple of 32");
      if (region_ >= 0 && !integer) throw Error("layouts: a float layout takes float activations");
      outputs_.push_back({{reinterpret_cast<const uint8_t*>(weights[i]), layout, rows[i], columns_},
                          reinterpret_cast<const float*>(biases[i]),
                          reinterpret_cast<const float*>(residuals[i]),
                          reinterpret_cast<float*>(outs[i])});
    }
    if (gate_ >= 0 && n == 2 && rows[0] != rows[1]) throw Error("rows: gate and up differ");
  }

  const Cut& choose(int64_t tokens) const {
    if (choices_ == nullptr) return kCuts[0];
    return kCuts[checked("choices", choices_[choice_place(tokens, places_)], kCutCount)];
  }

  static constexpr int64_t kUnitBlocks = 2;
  static int64_t units_of(const Output& output) {
    return ceil_div(output.weight.blocks(), kUnitBlocks);
  }
  static constexpr int64_t tiles_bytes() { return 2 * kLongestRun * kTilePitch * 4; }

  void run_unit(const Context& context, int64_t unit, int64_t begin, int64_t end, int thread) {
    float* tile = reinterpret_cast<float*>(workspace_->of_thread(thread));
    if (gate_ >= 0) return run_gate(context, unit, begin, end, tile);
    size_t i = 0;
    while (unit >= units_of(outputs_[i])) unit -= units_of(outputs_[i++]);
    const Output& output = outputs_[i];
    product(context, output, unit, begin, end, tile, tile);
    write(context, output, unit, begin, end, tile, output.bias, output.residual);
  }

  // function(gate) * up.
  void run_gate(const Context& context, int64_t unit, int64_t begin, int64_t end, float* tile) {
    float* other = tile + kLongestRun * kTilePitch;
    for (int i = 0; i < 2; ++i) {
      float* to = i == 0 ? tile : other;
      product(context, outputs_[i], unit, begin, end, to, tile);
      if (outputs_[i].bias != nullptr) add_bias(context, outputs_[i], unit, end - begin, to);
    }
    context.kernels->gate(static_cast<Gate>(gate_), tile, other, tile, (end - begin) * kTilePitch);
    if (outputs_[0].out != nullptr)
      write(context, outputs_[0], unit, begin, end, tile, nullptr, nullptr);
    if (out_region_ >= 0)
      for (int64_t t = begin; t < end; ++t)
        context.kernels->quantise(tile + (t - begin) * kTilePitch, target_, t, unit, 1);
  }

  void product(const Context& context, const Output& output, int64_t unit, int64_t begin,
               int64_t end, float* to, float* tiles) const {
    uint8_t* scratch = reinterpret_cast<uint8_t*>(tiles) + tiles_bytes();
    const int64_t nbytes = block_bytes(layout_spec(output.weight.layout), columns_);
    const int64_t first = unit * kUnitBlocks;
    const int blocks =
        static_cast<int>(std::min(kUnitBlocks, output.weight.blocks() - first));
    Block view{output.weight.base + first * nbytes, output.weight.layout, columns_, streams_};
    if (region_ >= 0)
      return context.kernels->dot(view, blocks, quant_, begin, end, to, kTilePitch, scratch);
    for (int i = 0; i < blocks; ++i, view.base += nbytes)
      context.kernels->dot_float(view, x_ + begin * columns_, columns_, end - begin,
                                 to + i * kBlockRows, kTilePitch,
                                 reinterpret_cast<float*>(scratch));
  }

  // Output rows of a unit, at most 32.
  static int lanes_of(const Output& output, int64_t unit) {
    return static_cast<int>(
        std::min<int64_t>(kTilePitch, output.weight.rows - unit * kTilePitch));
  }

  static void write(const Context& context, const Output& output, int64_t unit, int64_t begin,
                    int64_t end, const float* tile, const float* bias, const float* residual) {
    const int64_t n = unit * kTilePitch;
    const int64_t stride = output.weight.rows;
    const int lanes = lanes_of(output, unit);
    const int64_t at = begin * stride + n;
    context.kernels->store_block(tile, kTilePitch, end - begin, lanes,
                                 bias == nullptr ? nullptr : bias + n,
                                 residual == nullptr ? nullptr : residual + at, output.out + at,
                                 stride);
  }

  static void add_bias(const Context& context, const Output& output, int64_t unit, int64_t count,
                       float* tile) {
    const int64_t n = unit * kTilePitch;
    const int lanes = lanes_of(output, unit);
    context.kernels->store_block(tile, kTilePitch, count, lanes, output.bias + n, nullptr, tile,
                                 kTilePitch);
  }

  Count count_;
  int64_t columns_;
  const float* x_;
  int64_t region_;
  int64_t gate_;
  int64_t out_region_;
  const int32_t* choices_;
  int64_t places_;
  Quant quant_;
  Quant target_;
  std::vector<Output> outputs_;
  const Workspace* workspace_ = nullptr;
  int64_t units_ = 0;

  // Of the run in progress.
  int64_t tokens_ = 0;
  int64_t run_ = kLongestRun;
  bool streams_ = false;
  int64_t runs_ = 0;
  int64_t per_chunk_ = 1;
  int64_t chunks_per_run_ = 1;
};

}  // namespace

std::unique_ptr<Step> linear_step(const std::string& kind, const Params& params) {
  if (kind == "linear") return std::make_unique<Linear>(params);
  return nullptr;
}

}  // namespace helios
