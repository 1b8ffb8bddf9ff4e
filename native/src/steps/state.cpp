// Steps over state rows and continuation pages.
#include <cstring>

#include "steps/steps.h"

namespace helios {
namespace {

// state[rows[b]] = value[b], or zero without a value. Rows are `bytes` wide.
class StateWrite final : public RowStep {
 public:
  explicit StateWrite(const Params& p)
      : RowStep(count_of(p), p.positive("bytes") / 4),
        state_(p.pointer<uint8_t>("state")),
        index_(p.pointer<const int32_t>("rows")),
        value_(p.optional_pointer<const uint8_t>("value")),
        bytes_(p.positive("bytes")),
        limit_(p.positive("state_rows")) {
    require_memory("state_rows", {limit_, bytes_});
  }

  uint32_t begin(const Context& context) override {
    for (int64_t b = 0; b < count_.of(context.extents); ++b) checked("rows", index_[b], limit_);
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    const size_t n = static_cast<size_t>(bytes_);
    for (int64_t b = begin; b < end; ++b) {
      uint8_t* to = state_ + index_[b] * bytes_;
      if (value_ == nullptr)
        std::memset(to, 0, n);
      else
        std::memcpy(to, value_ + b * bytes_, n);
    }
  }

 private:
  uint8_t* state_;
  const int32_t* index_;
  const uint8_t* value_;
  int64_t bytes_;
  int64_t limit_;
};

// state[rows[b], column[b]] += value[b]; without columns the state is one-dimensional, without
// values 1 is added.
class StateAdd final : public Step {
 public:
  explicit StateAdd(const Params& p)
      : count_(count_of(p)),
        state_(p.pointer<int32_t>("state")),
        index_(p.pointer<const int32_t>("rows")),
        column_(p.optional_pointer<const int32_t>("column")),
        value_(p.optional_pointer<const int32_t>("value")),
        limit_(p.positive("state_rows")),
        columns_(p.positive("columns")) {
    require_memory("state_rows", {limit_, columns_, 4});
  }

  void plan(Workspace&, const Extents&) override {}
  void attach(const Workspace&) override {}
  uint32_t begin(const Context&) override { return 1; }

  void chunk(const Context& context, uint32_t, int) override {
    for (int64_t b = 0; b < count_.of(context.extents); ++b) {
      const int64_t row = checked("rows", index_[b], limit_);
      const int64_t column = column_ == nullptr ? 0 : checked("tokens", column_[b], columns_);
      int32_t& sum = state_[row * columns_ + column];
      const int32_t value = value_ == nullptr ? 1 : value_[b];
      sum = static_cast<int32_t>(static_cast<uint32_t>(sum) + static_cast<uint32_t>(value));
    }
  }

 private:
  Count count_;
  int32_t* state_;
  const int32_t* index_;
  const int32_t* column_;
  const int32_t* value_;
  int64_t limit_, columns_;
};

class CurrentPage final : public Step {
 public:
  explicit CurrentPage(const Params& p)
      : count_(count_of(p)),
        slots_(p.pointer<const int32_t>("slots")),
        endpoints_(p.pointer<const int32_t>("endpoints")),
        selector_(p.pointer<const int32_t>("selector")),
        table_(p.pointer<const int32_t>("page_table")),
        out_(p.pointer<int32_t>("out")),
        table_rows_(p.positive("table_rows")),
        table_columns_(p.positive("table_columns")),
        page_tokens_(p.positive("page_tokens")) {
    require_memory("table_rows", {table_rows_, table_columns_, 4});
  }

  void plan(Workspace&, const Extents&) override {}
  void attach(const Workspace&) override {}
  uint32_t begin(const Context&) override { return 1; }

  void chunk(const Context& context, uint32_t, int) override {
    for (int64_t b = 0; b < count_.of(context.extents); ++b) {
      if (selector_[b] < 0 || (endpoints_[b] >= 0 && endpoints_[b] % page_tokens_ == 0)) {
        out_[b] = -1;
        continue;
      }
      const int64_t slot = checked("slots", slots_[b], table_rows_);
      const int64_t limit = capped_product(table_columns_, page_tokens_);
      const int64_t page = checked("endpoints", endpoints_[b], limit) / page_tokens_;
      out_[b] = table_[slot * table_columns_ + page];
    }
  }

 private:
  Count count_;
  const int32_t* slots_;
  const int32_t* endpoints_;
  const int32_t* selector_;
  const int32_t* table_;
  int32_t* out_;
  int64_t table_rows_, table_columns_, page_tokens_;
};

// to[to_row[b]] = from[from_row[b]], pages of `bytes` bytes, where both rows are not negative.
class PageCopy final : public RowStep {
 public:
  explicit PageCopy(const Params& p)
      : RowStep(count_of(p), p.positive("bytes") / 4),
        from_(p.pointer<const uint8_t>("from")),
        to_(p.pointer<uint8_t>("to")),
        from_row_(p.pointer<const int32_t>("from_row")),
        to_row_(p.pointer<const int32_t>("to_row")),
        from_limit_(p.integer("from_rows")),
        to_limit_(p.integer("to_rows")),
        bytes_(p.positive("bytes")) {}

  uint32_t begin(const Context& context) override {
    for (int64_t b = 0; b < count_.of(context.extents); ++b)
      if (from_row_[b] >= 0 && to_row_[b] >= 0) {
        checked("page", from_row_[b], from_limit_);
        checked("page", to_row_[b], to_limit_);
      }
    return RowStep::begin(context);
  }

 protected:
  void rows(const Context&, int64_t begin, int64_t end, int) override {
    for (int64_t b = begin; b < end; ++b)
      if (from_row_[b] >= 0 && to_row_[b] >= 0)
        std::memcpy(to_ + to_row_[b] * bytes_, from_ + from_row_[b] * bytes_,
                    static_cast<size_t>(bytes_));
  }

 private:
  const uint8_t* from_;
  uint8_t* to_;
  const int32_t* from_row_;
  const int32_t* to_row_;
  int64_t from_limit_, to_limit_, bytes_;
};

}  // namespace

std::unique_ptr<Step> state_step(const std::string& kind, const Params& params) {
  if (kind == "state_write") return std::make_unique<StateWrite>(params);
  if (kind == "state_add") return std::make_unique<StateAdd>(params);
  if (kind == "current_page") return std::make_unique<CurrentPage>(params);
  if (kind == "page_copy") return std::make_unique<PageCopy>(params);
  return nullptr;
}

}  // namespace helios
