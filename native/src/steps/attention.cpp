// Paged attention: tiles of neighbouring tokens of one row against one key head, or against all of
// them where the queries are few.
//
// Where there are too few tiles to keep the threads busy (a few rows decoding over long histories),
// the spans of a tile's history are chunks of their own, and whoever finishes the last span of a
// tile folds them together in order. Either way the numbers are the same.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "steps/steps.h"

namespace helios {
namespace {

// Queries of a tile: the more, the less often keys and values are laid out anew; the fewer, the
// more tiles there are for threads to share.
constexpr int64_t kMostQueries = 144, kFewestQueries = 48;
constexpr int64_t kPartialBudget = 8 << 20;
constexpr int64_t kMostTokens = 1 << 20;
constexpr int64_t kMostHeads = 1 << 16;
// Heads of tiles whose spans may be chunks of their own.
constexpr int64_t kMostSplit = 4096;

// A plane of keys or values, in pages that AttentionTask describes.
//
// Their type is what is declared, but bfloat16 in the place of another one of 16 bits where it is
// wanted and the processor multiplies pairs of it. Rounded once, when they are written, the numbers
// need no conversion whenever they are read.
struct Paging {
  explicit Paging(const Params& p)
      : heads(p.positive("key_heads")),
        dim(p.positive("dim")),
        pages(p.positive("pages")),
        page_tokens(p.positive("page_tokens")),
        table(p.pointer<const int32_t>("page_table")),
        table_rows(p.positive("table_rows")),
        table_columns(p.positive("table_columns")),
        declared(dtype_of(p, "dtype")),
        bfloat16(p.integer("bfloat16") != 0) {
    if (declared != DType::F16 && declared != DType::BF16 && declared != DType::F32)
      throw Error("dtype: a cache holds F16, BF16 or F32");
    if (dim > kWidestHead) throw Error("dim: heads wider than 512 are not supported");
    require_memory("pages", {pages, page_tokens, heads, dim, 4});
    require_memory("table_rows", {table_rows, table_columns, 4});
  }

  static constexpr int64_t kWidestHead = 512;

  // Whether lanes are pairs of bfloat16 numbers.
  bool pairs(const Kernels& kernels) const {
    return bfloat16 && kernels.pairs && declared != DType::F32 && dim % 2 == 0 &&
           page_tokens % 2 == 0;
  }
  DType type(const Kernels& kernels) const { return pairs(kernels) ? DType::BF16 : declared; }
  int64_t head_bytes() const { return page_tokens * dim * dtype_bytes(declared); }
  int64_t page_bytes() const { return heads * head_bytes(); }
  // Positions that a row of the table can hold.
  int64_t positions() const { return capped_product(table_columns, page_tokens); }
  // The page of a position that the table is known to hold.
  int64_t page(int64_t slot, int64_t position) const {
    return table[slot * table_columns + position / page_tokens];
  }

  int64_t heads, dim, pages, page_tokens;
  const int32_t* table;
  int64_t table_rows, table_columns;
  DType declared;
  bool bfloat16;
};

struct Tile {
  int32_t token;     // first packed token
  int32_t count;     // tokens
  int64_t first;     // oldest position any of them sees
  int64_t last;      // newest
  int32_t slot;
  int32_t span;      // first span, and how many
  int32_t spans;
  int32_t heads;     // key heads taken at once
  int32_t chunk;     // number of its first chunk
  int64_t partial;   // and of its first partial state
};

// What a chunk works on: key heads from `head` on, over all of a tile's history or one span of it.
struct Piece {
  size_t tile;
  int64_t head;
  int64_t span;
};

class PagedAttention final : public Step {
 public:
  explicit PagedAttention(const Params& p)
      : count_(count_of(p)),
        q_(p.pointer<const float>("q")),
        rows_(p.pointer<const int32_t>("rows")),
        positions_(p.pointer<const int32_t>("positions")),
        slots_(p.pointer<const int32_t>("slots")),
        keys_(p.pointer<const uint8_t>("keys")),
        values_(p.pointer<const uint8_t>("values")),
        sinks_(p.optional_pointer<const float>("sinks")),
        out_(p.optional_pointer<float>("out")),
        heads_(p.positive("heads")),
        paging_(p),
        key_heads_(paging_.heads),
        dim_(paging_.dim),
        scale_(static_cast<float>(p.number("scale"))),
        window_(p.integer("window")),
        softcap_(static_cast<float>(p.number("softcap"))),
        region_(p.integer("region", -1)) {
    if (heads_ > kMostHeads) throw Error("heads: more than 65,536 are not supported");
    if (heads_ % key_heads_ != 0) throw Error("heads: must be a multiple of the key heads");
    if (region_ >= 0 && dim_ % 32 != 0) throw Error("region: needs heads of a multiple of 32");
    if (region_ < 0 && out_ == nullptr) throw Error("out: needs an address without a region");
    quant_.planes = planes_of(p);
    quant_.groups = heads_ * dim_ / 32;
    group_ = heads_ / key_heads_;
    most_queries_ = std::max(kMostQueries, group_);
    padded_ = align_up(dim_, 16);
  }

  void plan(Workspace& workspace, const Extents& capacity) override {
    const int64_t tokens = count_.of(capacity);
    if (tokens > kMostTokens) throw Error("count: more tokens than any step holds");
    tiles_.resize(static_cast<size_t>(tokens));
    const int64_t units = std::min<int64_t>(tokens * key_heads_, kMostSplit);
    pending_ = std::make_unique<std::atomic<int32_t>[]>(static_cast<size_t>(units));
    workspace.need_thread_bytes(4 * (align_up(state_floats(most_queries_), 16) +
                                     attention_scratch(most_queries_, dim_)) +
                                most_queries_ * 12 + dim_ * 4 + 256);
    const int64_t spans = ceil_div(paging_.positions(), kSpan);
    partial_bytes_ = std::min(
        kPartialBudget, capped_product(tokens * heads_ * (padded_ + 2) * 4, spans));
    workspace.need_region(kPartialRegion, partial_bytes_);
    if (region_ >= 0)
      workspace.need_region(region_, Quant::bytes(tokens, heads_ * dim_, quant_.planes));
  }

  void attach(const Workspace& workspace) override {
    workspace_ = &workspace;
    partials_ = reinterpret_cast<float*>(workspace.region(kPartialRegion));
    if (region_ >= 0) quant_.base = workspace.region(region_);
  }

  uint32_t begin(const Context& context) override {
    const int64_t tokens = count_.of(context.extents);
    const int64_t busy = 4 * context.threads;  // as many chunks keep every thread busy to the end
    const int64_t queries =
        tokens * heads_ >= busy * kMostQueries ? kMostQueries : kFewestQueries;
    tile_count_ = 0;
    for (int64_t t = 0; t < tokens;)
      t = add_tile(context, t, tokens, std::max<int64_t>(1, queries / group_));
    const int64_t units = static_cast<int64_t>(tile_count_) * key_heads_;
    int64_t spans = 0, widest = 0;
    for (size_t i = 0; i < tile_count_; ++i) {
      spans += tiles_[i].spans;
      widest = std::max<int64_t>(widest, tiles_[i].count);
    }
    partial_floats_ = state_floats(widest * group_);
    split_ = context.threads > 1 && units < std::min(busy, kMostSplit) &&
             spans > static_cast<int64_t>(tile_count_) &&
             spans * key_heads_ * partial_floats_ * 4 <= partial_bytes_;
    // Heads of one token lie side by side in memory: they stay together unless threads would idle.
    const int64_t apart = split_ ? spans : static_cast<int64_t>(tile_count_);
    const bool together = apart >= context.threads;
    int64_t chunks = 0, spans_before = 0;
    for (size_t i = 0; i < tile_count_; ++i) {
      Tile& tile = tiles_[i];
      const bool fit = queries_of(tile) * key_heads_ <= most_queries_;
      tile.heads = static_cast<int32_t>(together && fit ? key_heads_ : 1);
      tile.chunk = static_cast<int32_t>(chunks);
      tile.partial = spans_before * key_heads_;
      const int64_t groups = key_heads_ / tile.heads;
      chunks += split_ ? groups * tile.spans : groups;
      spans_before += tile.spans;
      if (split_)
        for (int64_t g = 0; g < groups; ++g)
          pending_[i * key_heads_ + g].store(tile.spans, std::memory_order_relaxed);
    }
    chunks_ = static_cast<uint32_t>(chunks);
    return chunks_;
  }

  // The newest tiles, which see the longest histories, come first.
  void chunk(const Context& context, uint32_t index, int thread) override {
    const Piece piece = piece_of(chunks_ - 1 - index);
    const Tile& tile = tiles_[piece.tile];
    const ThreadMemory memory = of_thread(thread);
    float* state = split_ ? partial(tile, piece.head, piece.span) : memory.state;
    AttentionTask task = task_of(*context.kernels, piece), next;
    if (index + 1 < chunks_) {  // most likely this thread's next
      next = task_of(*context.kernels, piece_of(chunks_ - 2 - index));
      task.next = &next;
    }
    attend(context, tile, piece.head, task, state, memory);
    if (!split_) return finish(context, tile, piece.head, state, memory);
    const int64_t group = piece.head / tile.heads;
    if (pending_[piece.tile * key_heads_ + group].fetch_sub(1, std::memory_order_acq_rel) == 1)
      fold(context, tile, piece.head, memory);
  }

 private:
  static constexpr int64_t kPartialRegion = 1 << 20;

  struct ThreadMemory {
    float* state;
    float* scratch;
    const float** pointers;
    int32_t* positions;
    float* row;
  };

  // For one key head.
  int64_t queries_of(const Tile& tile) const { return tile.count * group_; }

  // A state is maximum[n], total[n], output[n][padded].
  int64_t state_floats(int64_t n) const { return n * (padded_ + 2); }

  float* partial(const Tile& tile, int64_t head, int64_t span) const {
    return partials_ + (tile.partial + span * key_heads_ + head) * partial_floats_;
  }

  void clear(float* state, int64_t n) const {
    std::fill_n(state, n, -std::numeric_limits<float>::infinity());
    std::fill_n(state + n, n * (padded_ + 1), 0.0f);
  }

  ThreadMemory of_thread(int thread) const {
    const int64_t n = most_queries_;
    float* base = reinterpret_cast<float*>(workspace_->of_thread(thread));
    float* scratch = base + align_up(state_floats(n), 16);
    float* after = scratch + attention_scratch(n, dim_);
    const float** pointers = reinterpret_cast<const float**>(after);
    int32_t* positions = reinterpret_cast<int32_t*>(pointers + n);
    return {base, scratch, pointers, positions, reinterpret_cast<float*>(positions + n)};
  }

  Piece piece_of(uint32_t chunk) const {
    const auto after = std::upper_bound(
        tiles_.begin(), tiles_.begin() + static_cast<int64_t>(tile_count_), chunk,
        [](uint32_t at, const Tile& tile) { return at < static_cast<uint32_t>(tile.chunk); });
    const size_t i = static_cast<size_t>(after - tiles_.begin()) - 1;
    const int64_t inside = chunk - static_cast<uint32_t>(tiles_[i].chunk);
    const int64_t groups = key_heads_ / tiles_[i].heads;
    return {i, inside % groups * tiles_[i].heads, inside / groups};
  }

  // Groups token t with the tokens after it that continue its row; returns the token after them.
  int64_t add_tile(const Context& context, int64_t t, int64_t tokens, int64_t most) {
    const int64_t row = checked("rows", rows_[t], context.extents.rows);
    const int64_t slot = checked("slots", slots_[row], paging_.table_rows);
    int64_t count = 1;
    while (count < most && t + count < tokens && rows_[t + count] == row &&
           positions_[t + count] == positions_[t] + count)
      ++count;
    const int64_t position = positions_[t];
    const int64_t last = checked("positions", position + count - 1, paging_.positions());
    checked("positions", position, last + 1);
    const int64_t first = window_ > 0 ? std::max<int64_t>(0, position - window_ + 1) : 0;
    const int64_t length = paging_.page_tokens;
    for (int64_t at = first / length * length; at <= last; at += length)
      checked("page_table", paging_.page(slot, at), paging_.pages);
    const int64_t span = first / kSpan;
    tiles_[tile_count_++] = {static_cast<int32_t>(t), static_cast<int32_t>(count), first, last,
                             static_cast<int32_t>(slot), static_cast<int32_t>(span),
                             static_cast<int32_t>(last / kSpan - span + 1), 1, 0, 0};
    return t + count;
  }

  // All of a piece's task but for what is the thread's own.
  AttentionTask task_of(const Kernels& kernels, const Piece& piece) const {
    const Tile& tile = tiles_[piece.tile];
    AttentionTask task{};
    task.count = static_cast<int>(queries_of(tile));
    task.heads = tile.heads;
    task.dim = static_cast<int>(dim_);
    task.first = tile.first;
    task.last = tile.last;
    if (split_) {
      const int64_t begin = (tile.span + piece.span) * kSpan;
      task.first = std::max(tile.first, begin);
      task.last = std::min(tile.last, begin + kSpan - 1);
    }
    task.window = window_;
    task.scale = scale_;
    task.softcap = softcap_;
    task.pages = paging_.table + tile.slot * paging_.table_columns;
    task.page_tokens = paging_.page_tokens;
    task.page_stride = paging_.page_bytes();
    task.head_stride = paging_.head_bytes();
    task.keys = keys_ + piece.head * task.head_stride;
    task.values = values_ + piece.head * task.head_stride;
    task.type = paging_.type(kernels);
    task.pairs = paging_.pairs(kernels);
    return task;
  }

  // Calls body with every query's number among the heads from `head` on, its token, and its head.
  template <class Body>
  void for_queries(const Tile& tile, int64_t head, Body body) const {
    int64_t i = 0;
    for (int64_t h = head; h < head + tile.heads; ++h)
      for (int64_t t = tile.token; t < tile.token + tile.count; ++t)
        for (int64_t g = 0; g < group_; ++g) body(i++, t, h * group_ + g);
  }

  void attend(const Context& context, const Tile& tile, int64_t head, AttentionTask task,
              float* state, const ThreadMemory& memory) const {
    const int64_t count = queries_of(tile), n = tile.heads * count;
    for_queries(tile, head, [&](int64_t i, int64_t token, int64_t h) {
      memory.pointers[i] = q_ + (token * heads_ + h) * dim_;
      if (i < count) memory.positions[i] = positions_[token];
    });
    clear(state, n);
    task.queries = memory.pointers;
    task.positions = memory.positions;
    task.maximum = state;
    task.total = state + n;
    task.output = state + 2 * n;
    task.scratch = memory.scratch;
    context.kernels->attend(task);
  }

  void fold(const Context& context, const Tile& tile, int64_t head,
            const ThreadMemory& memory) const {
    const int64_t n = tile.heads * queries_of(tile);
    float* state = memory.state;
    clear(state, n);
    for (int64_t span = 0; span < tile.spans; ++span) {
      const float* other = partial(tile, head, span);
      context.kernels->merge(state, state + n, state + 2 * n, other, other + n, other + 2 * n, n,
                             padded_);
    }
    finish(context, tile, head, state, memory);
  }

  void finish(const Context& context, const Tile& tile, int64_t head, const float* state,
              const ThreadMemory& memory) const {
    const int64_t n = tile.heads * queries_of(tile);
    for_queries(tile, head, [&](int64_t i, int64_t token, int64_t h) {
      float* y = out_ != nullptr ? out_ + (token * heads_ + h) * dim_ : memory.row;
      context.kernels->normalise(state[i], state[n + i], state + 2 * n + i * padded_,
                                 sinks_ == nullptr ? nullptr : sinks_ + h, y, dim_);
      if (region_ >= 0)
        context.kernels->quantise(y, quant_, token, h * dim_ / 32, dim_ / 32);
    });
  }

  Count count_;
  const float* q_;
  const int32_t* rows_;
  const int32_t* positions_;
  const int32_t* slots_;
  const uint8_t* keys_;
  const uint8_t* values_;
  const float* sinks_;
  float* out_;
  int64_t heads_;
  Paging paging_;
  int64_t key_heads_, dim_;
  float scale_;
  int64_t window_;
  float softcap_;
  int64_t region_;
  Quant quant_;
  int64_t group_ = 1;
  int64_t most_queries_ = kMostQueries;
  int64_t padded_ = 16;
  int64_t partial_bytes_ = 0;
  int64_t partial_floats_ = 0;
  const Workspace* workspace_ = nullptr;
  float* partials_ = nullptr;
  std::vector<Tile> tiles_;
  size_t tile_count_ = 0;
  std::unique_ptr<std::atomic<int32_t>[]> pending_;
  uint32_t chunks_ = 0;
  bool split_ = false;
};

// Stores keys or values of new tokens in their pages.
class CacheWrite final : public RowStep {
 public:
  explicit CacheWrite(const Params& p)
      : RowStep(count_of(p), capped_product(p.positive("key_heads"), p.positive("dim"))),
        x_(p.pointer<const float>("x")),
        rows_(p.pointer<const int32_t>("rows")),
        positions_(p.pointer<const int32_t>("positions")),
        slots_(p.pointer<const int32_t>("slots")),
        plane_(p.pointer<uint8_t>("plane")),
        keys_(p.integer("keys") != 0),
        paging_(p) {}

  uint32_t begin(const Context& context) override {
    for (int64_t t = 0; t < count_.of(context.extents); ++t) {
      const int64_t row = checked("rows", rows_[t], context.extents.rows);
      const int64_t slot = checked("slots", slots_[row], paging_.table_rows);
      const int64_t position = checked("positions", positions_[t], paging_.positions());
      checked("page_table", paging_.page(slot, position), paging_.pages);
    }
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context& context, int64_t begin, int64_t end, int) override {
    const Kernels& kernels = *context.kernels;
    const bool pairs = paging_.pairs(kernels);
    const int64_t dim = paging_.dim, length = paging_.page_tokens;
    const int64_t row_bytes = dim * dtype_bytes(paging_.declared);
    alignas(64) uint8_t head[Paging::kWidestHead * 4];
    for (int64_t t = begin; t < end; ++t) {
      const int64_t inside = positions_[t] % length;
      uint8_t* page = plane_ + paging_.page(slots_[rows_[t]], positions_[t]) * paging_.page_bytes();
      for (int64_t h = 0; h < paging_.heads; ++h, page += paging_.head_bytes()) {
        kernels.to_cache(paging_.type(kernels), x_ + (t * paging_.heads + h) * dim, head, dim);
        if (keys_ && pairs)
          scatter<uint32_t>(head, dim / 2, page, inside, length);
        else if (keys_ && paging_.declared == DType::F32)
          scatter<uint32_t>(head, dim, page, inside, length);
        else if (keys_)
          scatter<uint16_t>(head, dim, page, inside, length);
        else if (pairs)
          scatter<uint16_t>(head, dim, page, inside / 2 * dim * 2 + inside % 2, 2);
        else
          std::memcpy(page + inside * row_bytes, head, static_cast<size_t>(row_bytes));
      }
    }
  }

 private:
  // Numbers, or pairs of them, to every `stride`-th place from the first.
  template <class Unit>
  static void scatter(const uint8_t* from, int64_t count, uint8_t* to, int64_t first,
                      int64_t stride) {
    const Unit* units = reinterpret_cast<const Unit*>(from);
    Unit* out = reinterpret_cast<Unit*>(to) + first;
    for (int64_t i = 0; i < count; ++i) out[i * stride] = units[i];
  }

  const float* x_;
  const int32_t* rows_;
  const int32_t* positions_;
  const int32_t* slots_;
  uint8_t* plane_;
  bool keys_;
  Paging paging_;
};

}  // namespace

std::unique_ptr<Step> attention_step(const std::string& kind, const Params& params) {
  if (kind == "paged_attention") return std::make_unique<PagedAttention>(params);
  if (kind == "cache_write") return std::make_unique<CacheWrite>(params);
  return nullptr;
}

}  // namespace helios
