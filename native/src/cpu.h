// What this processor can run, and how many threads this process may keep busy.
#pragma once

#include <string>
#include <vector>

namespace helios {

// Names of the instruction sets this build has kernels for and this processor supports, best first.
std::vector<std::string> supported_isas();

// Processors this process may use: the affinity mask, cut by any cgroup limit (rounded up).
int usable_processors();

}  // namespace helios
