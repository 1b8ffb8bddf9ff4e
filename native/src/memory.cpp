#include "memory.h"

#include <sys/mman.h>

namespace helios {

Memory::Memory(int64_t nbytes) : nbytes_(nbytes) {
  if (nbytes < 0) throw Error("nbytes: memory can't have a negative size");
  if (nbytes == 0) return;
  void* mapped = mmap(nullptr, static_cast<size_t>(nbytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    throw Error("nbytes: the system has no " + std::to_string(nbytes) + " bytes to give");
  data_ = static_cast<uint8_t*>(mapped);
#ifdef MADV_HUGEPAGE
  if (nbytes >= (4 << 20)) madvise(mapped, static_cast<size_t>(nbytes), MADV_HUGEPAGE);
#endif
}

Memory::~Memory() {
  if (data_ != nullptr) munmap(data_, static_cast<size_t>(nbytes_));
}

}  // namespace helios
