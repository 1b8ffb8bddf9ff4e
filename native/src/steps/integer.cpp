// Steps over the packed layout: which token belongs to which row, gathers and copies.
#include <algorithm>
#include <cstring>

#include "steps/steps.h"

namespace helios {
namespace {

// A step that is too small to share.
class SerialStep : public Step {
 public:
  void plan(Workspace&, const Extents&) override {}
  void attach(const Workspace&) override {}
  uint32_t begin(const Context&) override { return 1; }
};

class TokenRows final : public SerialStep {
 public:
  explicit TokenRows(const Params& p)
      : query_length_(p.pointer<const int32_t>("query_length")),
        endpoints_(p.pointer<const int32_t>("endpoints")),
        rows_(p.pointer<int32_t>("rows")),
        positions_(p.pointer<int32_t>("positions")),
        tokens_(count_of(p, "tokens")) {}

  void chunk(const Context& context, uint32_t, int) override {
    const int64_t tokens = tokens_.of(context.extents);
    int64_t t = 0;
    for (int64_t b = 0; b < context.extents.rows; ++b)
      for (int32_t i = 0; i < query_length_[b]; ++i, ++t) {
        checked("query_length", t, tokens);
        rows_[t] = static_cast<int32_t>(b);
        positions_[t] =
            static_cast<int32_t>(static_cast<uint32_t>(endpoints_[b]) + static_cast<uint32_t>(i));
      }
    if (t != tokens)
      throw Error("query_length: the rows own " + std::to_string(t) + " tokens of " +
                  std::to_string(tokens));
  }

 private:
  const int32_t* query_length_;
  const int32_t* endpoints_;
  int32_t* rows_;
  int32_t* positions_;
  Count tokens_;
};

class ResolveTokens final : public SerialStep {
 public:
  explicit ResolveTokens(const Params& p)
      : tokens_(p.pointer<const int32_t>("tokens")),
        rows_(p.pointer<const int32_t>("rows")),
        pending_(p.pointer<const int32_t>("pending")),
        out_(p.pointer<int32_t>("out")),
        count_(count_of(p)) {}

  void chunk(const Context& context, uint32_t, int) override {
    for (int64_t t = 0; t < count_.of(context.extents); ++t)
      out_[t] = tokens_[t] >= 0
                    ? tokens_[t]
                    : pending_[checked("rows", rows_[t], context.extents.rows)];
  }

 private:
  const int32_t* tokens_;
  const int32_t* rows_;
  const int32_t* pending_;
  int32_t* out_;
  Count count_;
};

class LastTokens final : public SerialStep {
 public:
  explicit LastTokens(const Params& p)
      : query_length_(p.pointer<const int32_t>("query_length")),
        sampled_(p.pointer<const int32_t>("sampled_rows")),
        out_(p.pointer<int32_t>("out")) {}

  void chunk(const Context& context, uint32_t, int) override {
    // Sampled rows come in ascending order as a rule; start over where they don't.
    int64_t b = 0, end = 0;
    for (int64_t s = 0; s < context.extents.sampled; ++s) {
      const int64_t row = checked("sampled_rows", sampled_[s], context.extents.rows);
      if (row < b) b = end = 0;
      for (; b <= row; ++b) end += query_length_[b];
      out_[s] = static_cast<int32_t>(end - 1);
    }
  }

 private:
  const int32_t* query_length_;
  const int32_t* sampled_;
  int32_t* out_;
};

// out[i] = source[index[i]], rows of `bytes` bytes. Also reads state.
class Gather final : public RowStep {
 public:
  explicit Gather(const Params& p)
      : RowStep(count_of(p), p.positive("bytes") / 4),
        source_(p.pointer<const uint8_t>("source")),
        index_(p.pointer<const int32_t>("index")),
        out_(p.pointer<uint8_t>("out")),
        bytes_(p.positive("bytes")),
        source_rows_(count_of(p, "source_count")) {}

  uint32_t begin(const Context& context) override {
    const int64_t limit = source_rows_.of(context.extents);
    for (int64_t i = 0; i < count_.of(context.extents); ++i) checked("index", index_[i], limit);
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(out_ + i * bytes_, source_ + index_[i] * bytes_, static_cast<size_t>(bytes_));
  }

 private:
  const uint8_t* source_;
  const int32_t* index_;
  uint8_t* out_;
  int64_t bytes_;
  Count source_rows_;
};

class AddIntegers final : public SerialStep {
 public:
  explicit AddIntegers(const Params& p)
      : left_(p.pointer<const int32_t>("left")),
        right_(p.pointer<const int32_t>("right")),
        out_(p.pointer<int32_t>("out")),
        count_(count_of(p)) {}

  void chunk(const Context& context, uint32_t, int) override {
    for (int64_t i = 0; i < count_.of(context.extents); ++i)
      out_[i] = static_cast<int32_t>(static_cast<uint32_t>(left_[i]) +
                                     static_cast<uint32_t>(right_[i]));
  }

 private:
  const int32_t* left_;
  const int32_t* right_;
  int32_t* out_;
  Count count_;
};

class Ones final : public SerialStep {
 public:
  explicit Ones(const Params& p) : out_(p.pointer<int32_t>("out")), count_(count_of(p)) {}

  void chunk(const Context& context, uint32_t, int) override {
    std::fill_n(out_, count_.of(context.extents), 1);
  }

 private:
  int32_t* out_;
  Count count_;
};

// Rows of `bytes` bytes from one pitch to another: completion stores, views that need a copy.
class Copy final : public RowStep {
 public:
  explicit Copy(const Params& p)
      : RowStep(count_of(p), p.positive("bytes") / 4),
        source_(p.pointer<const uint8_t>("source")),
        out_(p.pointer<uint8_t>("out")),
        bytes_(p.positive("bytes")),
        source_pitch_(p.positive("source_pitch")) {}

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    for (int64_t i = begin; i < end; ++i)
      std::memcpy(out_ + i * bytes_, source_ + i * source_pitch_, static_cast<size_t>(bytes_));
  }

 private:
  const uint8_t* source_;
  uint8_t* out_;
  int64_t bytes_;
  int64_t source_pitch_;
};

}  // namespace

std::unique_ptr<Step> integer_step(const std::string& kind, const Params& params) {
  if (kind == "token_rows") return std::make_unique<TokenRows>(params);
  if (kind == "resolve_tokens") return std::make_unique<ResolveTokens>(params);
  if (kind == "last_tokens") return std::make_unique<LastTokens>(params);
  if (kind == "gather") return std::make_unique<Gather>(params);
  if (kind == "add_integers") return std::make_unique<AddIntegers>(params);
  if (kind == "ones") return std::make_unique<Ones>(params);
  if (kind == "copy") return std::make_unique<Copy>(params);
  return nullptr;
}

}  // namespace helios
