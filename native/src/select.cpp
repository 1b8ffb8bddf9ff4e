// Which kernels run: chosen once, by the processor or by HELIOS_ISA.
#include <algorithm>
#include <cstdlib>

#include "cpu.h"
#include "kernels.h"

namespace helios {

extern const Kernels kernels_baseline;
#if defined(__x86_64__)
extern const Kernels kernels_avx2;
extern const Kernels kernels_avxvnni;
extern const Kernels kernels_avx512;
extern const Kernels kernels_avx512vnni;
extern const Kernels kernels_avx512bf16;
#elif defined(__aarch64__)
extern const Kernels kernels_neon;
#endif

namespace {

const Kernels* const kTables[] = {
    &kernels_baseline,
#if defined(__x86_64__)
    &kernels_avx2,
    &kernels_avxvnni,
    &kernels_avx512,
    &kernels_avx512vnni,
    &kernels_avx512bf16,
#elif defined(__aarch64__)
    &kernels_neon,
#endif
};

}  // namespace

const Kernels& kernels_named(const std::string& name) {
  const std::vector<std::string> supported = supported_isas();
  if (std::find(supported.begin(), supported.end(), name) == supported.end()) {
    std::string known;
    for (const std::string& isa : supported) known += (known.empty() ? "" : ", ") + isa;
    throw Error("HELIOS_ISA: this processor has no kernels named '" + name + "'; it runs " + known);
  }
  for (const Kernels* table : kTables)
    if (name == table->name) return *table;
  throw Error("HELIOS_ISA: this build has no kernels named '" + name + "'");
}

const Kernels& best_kernels() {
  const char* forced = std::getenv("HELIOS_ISA");
  if (forced != nullptr && *forced != '\0') return kernels_named(forced);
  return kernels_named(supported_isas().front());
}

int64_t attention_scratch(int64_t count, int64_t dim) {
  const int64_t padded = align_up(dim, 16), lanes = align_up(count, 16);
  return 2 * lanes * padded + lanes * kKeyBlock + 2 * kKeyBlock * padded + 5 * lanes;
}

}  // namespace helios
