// Runs a fuzz target on random inputs without a fuzzing engine.
// usage: TARGET [inputs] [seed]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  const long inputs = argc > 1 ? std::atol(argv[1]) : 20000;
  std::mt19937 generator(argc > 2 ? static_cast<uint32_t>(std::atol(argv[2])) : 1);
  for (long i = 0; i < inputs; ++i) {
    std::vector<uint8_t> bytes(generator() % 1024);
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(generator());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  std::printf("%s: %ld inputs\n", argv[0], inputs);
  return 0;
}
