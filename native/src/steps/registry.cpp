#include "steps/steps.h"

namespace helios {

std::unique_ptr<Step> make_step(const std::string& kind, const Params& params) {
  for (const auto family : {integer_step, network_step, linear_step, attention_step, state_step,
                            sampling_step, late_step, tuning_step})
    if (std::unique_ptr<Step> step = family(kind, params)) return step;
  throw Error("kind: unknown step '" + kind + "'");
}

Count count_of(const Params& params, const std::string& name) {
  if (!params.is_text(name)) {
    const int64_t constant = params.positive(name);
    if (constant > INT32_MAX) throw Error(name + ": is beyond any length");
    return {0, constant};
  }
  const std::string& extent = params.text(name);
  if (extent != "B" && extent != "T" && extent != "S")
    throw Error(name + ": unknown extent '" + extent + "'; known are B, T and S");
  return {extent[0], 0};
}

DType dtype_of(const Params& params, const std::string& name) {
  const int64_t value = params.integer(name);
  if (value < 1 || value > 8) throw Error(name + ": unknown element type " + std::to_string(value));
  return static_cast<DType>(value);
}

int planes_of(const Params& params, const std::string& name) {
  const int64_t planes = params.integer(name, 1);
  if (planes != 1 && planes != 2) throw Error(name + ": must be 1 or 2");
  return static_cast<int>(planes);
}

int64_t dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::F16:
    case DType::BF16: return 2;
    case DType::U64:
    case DType::I64: return 8;
    case DType::U8: return 1;
    default: return 4;
  }
}

void require_memory(const char* what, std::initializer_list<int64_t> sizes) {
  int64_t nbytes = 1;
  for (const int64_t size : sizes) nbytes = capped_product(nbytes, size);
  if (nbytes >= kMost) throw Error(std::string(what) + ": no machine has memory for so many");
}

int64_t checked(const char* what, int64_t index, int64_t limit) {
  if (index < 0 || index >= limit)
    throw Error(std::string(what) + ": must lie between 0 and " + std::to_string(limit - 1) +
                ", got " + std::to_string(index));
  return index;
}

}  // namespace helios
