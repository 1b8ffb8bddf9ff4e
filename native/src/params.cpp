#include "params.h"

namespace helios {

const Params::Value& Params::find(const std::string& name) const {
  const auto found = values_.find(name);
  if (found == values_.end()) throw Error(name + ": the step lacks this parameter");
  return found->second;
}

int64_t Params::integer(const std::string& name) const {
  if (const int64_t* value = std::get_if<int64_t>(&find(name))) return *value;
  throw Error(name + ": must be an integer");
}

int64_t Params::integer(const std::string& name, int64_t fallback) const {
  return has(name) ? integer(name) : fallback;
}

int64_t Params::positive(const std::string& name) const {
  const int64_t value = integer(name);
  if (value < 1) throw Error(name + ": must be positive, got " + std::to_string(value));
  if (value > kMost) throw Error(name + ": is beyond any size, got " + std::to_string(value));
  return value;
}

double Params::number(const std::string& name) const {
  const Value& value = find(name);
  if (const double* number = std::get_if<double>(&value)) return *number;
  if (const int64_t* whole = std::get_if<int64_t>(&value)) return static_cast<double>(*whole);
  throw Error(name + ": must be a number");
}

const std::string& Params::text(const std::string& name) const {
  if (const std::string* value = std::get_if<std::string>(&find(name))) return *value;
  throw Error(name + ": must be a text");
}

const std::vector<int64_t>& Params::list(const std::string& name) const {
  if (const auto* value = std::get_if<std::vector<int64_t>>(&find(name))) return *value;
  throw Error(name + ": must be a list of integers");
}

int64_t Params::address(const std::string& name, bool optional) const {
  const int64_t value = optional ? integer(name, 0) : integer(name);
  if (value == 0 && !optional) throw Error(name + ": needs an address");
  return value;
}

}  // namespace helios
