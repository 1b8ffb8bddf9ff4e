// Page-aligned memory, zeroed, on huge pages where the system grants them.
#pragma once

#include "common.h"

namespace helios {

class Memory {
 public:
  explicit Memory(int64_t nbytes);
  ~Memory();
  Memory(Memory&& other) noexcept : data_(other.data_), nbytes_(other.nbytes_) {
    other.data_ = nullptr;
    other.nbytes_ = 0;
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Memory& operator=(Memory&&) = delete;

  uint8_t* data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }

 private:
  uint8_t* data_ = nullptr;
  int64_t nbytes_ = 0;
};

}  // namespace helios
