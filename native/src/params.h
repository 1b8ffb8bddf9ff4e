// The parameters of a step as the host sends them: named integers, numbers, texts and lists.
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "common.h"

namespace helios {

class Params {
 public:
  using Value = std::variant<int64_t, double, std::string, std::vector<int64_t>>;

  void set(const std::string& name, Value value) { values_[name] = std::move(value); }
  bool has(const std::string& name) const { return values_.contains(name); }
  bool is_text(const std::string& name) const {
    return std::holds_alternative<std::string>(find(name));
  }

  // Each raises Error if the parameter is missing, of another kind or out of range.
  int64_t integer(const std::string& name) const;
  int64_t integer(const std::string& name, int64_t fallback) const;
  int64_t positive(const std::string& name) const;
  double number(const std::string& name) const;
  const std::string& text(const std::string& name) const;
  const std::vector<int64_t>& list(const std::string& name) const;

  // Addresses arrive as integers; an address of 0 is refused unless it is optional.
  template <class T>
  T* pointer(const std::string& name) const {
    return reinterpret_cast<T*>(address(name, false));
  }
  template <class T>
  T* optional_pointer(const std::string& name) const {
    return reinterpret_cast<T*>(address(name, true));
  }

 private:
  int64_t address(const std::string& name, bool optional) const;
  const Value& find(const std::string& name) const;

  std::map<std::string, Value> values_;
};

}  // namespace helios
