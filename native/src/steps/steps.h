// The families of steps: each builds the steps of its kinds, or returns null for another's.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>

#include "executor.h"

namespace helios {

std::unique_ptr<Step> integer_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> network_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> linear_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> attention_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> state_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> sampling_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> late_step(const std::string& kind, const Params& params);
std::unique_ptr<Step> tuning_step(const std::string& kind, const Params& params);

// `count` is one of "B", "T", "S", or an integer.
Count count_of(const Params& params, const std::string& name = "count");
DType dtype_of(const Params& params, const std::string& name);
int64_t dtype_bytes(DType dtype);
// Bytes of a quantised activation: 1 or 2.
int planes_of(const Params& params, const std::string& name = "planes");
// Refuses a shape that no memory holds, so that no offset into it overflows. No size is negative.
void require_memory(const char* what, std::initializer_list<int64_t> sizes);
// Refuses an index that the host or an earlier step got wrong.
int64_t checked(const char* what, int64_t index, int64_t limit);

}  // namespace helios
