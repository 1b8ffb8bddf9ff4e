// Programs of any steps with any parameters: loaded or refused, never run, so that numbers may
// stand for addresses. A step says itself which parameters it lacks and of what kind they are.
#include <string>

#include "executor.h"
#include "input.h"

using namespace helios;

namespace {

constexpr const char* kKinds[] = {
    "token_rows",      "resolve_tokens", "last_tokens",     "gather",
    "add_integers",    "ones",           "copy",            "embedding",
    "rms_norm",        "quantise",       "rope_table",      "rope",
    "gated_activation", "add",           "scale",           "softcap",
    "linear",          "paged_attention", "cache_write",    "state_write",
    "state_add",       "current_page",   "page_copy",       "process_logits",
    "mask_logits",     "sample",         "log_probability", "top_log_probabilities",
    "await_input",     "tune_linear",    "unheard_of"};
constexpr const char* kOptional[] = {"region",     "out_region", "gate",   "planes",
                                     "out_planes", "repeat",     "choices"};
constexpr const char* kTexts[] = {"B",     "T",      "S",   "W4G32", "W4G32F", "W8G32", "W8G32M",
                                  "W8G16", "W8G16M", "F16", "BF16",  "F32",    "FLAT",  "other"};
constexpr int64_t kWidths[] = {1, 2, 3, 32, 64, 96, 256};
constexpr double kNumbers[] = {0.0, 1.0, -0.5, 1e300, -1e-300, __builtin_inf(), __builtin_nan("")};
// More than any step reads.
constexpr int kMostParameters = 64;

int64_t integer(fuzz::Input& input) {
  return input.below(3) == 0 ? input.one_of(kWidths) : input.size(9);
}

Params::Value list(fuzz::Input& input, int64_t length) {
  std::vector<int64_t> values;
  for (int64_t i = 0; i < length; ++i) values.push_back(integer(input));
  return values;
}

// Gives the parameter that a refusal names; false if the refusal is about its value.
bool supply(Params& params, const std::string& refusal, fuzz::Input& input, int64_t length) {
  const std::string name = refusal.substr(0, refusal.find(": "));
  const auto says = [&](const char* words) { return refusal.find(words) != std::string::npos; };
  if (says("must be an integer"))
    params.set(name, integer(input));
  else if (says("must be a number"))
    params.set(name, input.one_of(kNumbers));
  else if (says("must be a text"))
    params.set(name, std::string(input.one_of(kTexts)));
  else if (says("must be a list"))
    params.set(name, list(input, input.below(16) == 0 ? length + 1 : length));
  else if (!says("lacks"))
    return false;
  else if (input.below(4) == 0)
    params.set(name, std::string(input.one_of(kTexts)));
  else
    params.set(name, integer(input));
  return true;
}

StepSpec step(fuzz::Input& input) {
  const std::string kind = input.one_of(kKinds);
  const int64_t length = 1 + input.below(3);
  Params params;
  for (const char* name : kOptional)
    if (input.below(4) == 0) params.set(name, input.below(8) == 0 ? int64_t{-1} : integer(input));
  for (int i = 0; i < kMostParameters; ++i) {
    try {
      make_step(kind, params);
      break;
    } catch (const Error& error) {
      if (!supply(params, error.what(), input, length)) break;
    }
  }
  return {kind, params};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Input input(data, size);
  Executor executor(1);
  const Extents capacity{input.size(64), input.size(64), input.size(64)};
  std::vector<StepSpec> steps;
  for (int64_t i = input.below(3); i >= 0; --i) steps.push_back(step(input));
  try {
    const int64_t program = executor.load(steps, capacity);
    executor.unload(program);
    executor.unload(program);
  } catch (const Error&) {
  }
  return 0;
}
