#include "cpu.h"

#include <sched.h>
#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <thread>

namespace helios {
namespace {

constexpr double kNoLimit = 1e9;

double quota(double limit, double period) {
  return limit > 0 && period > 0 ? limit / period : kNoLimit;
}

// cgroup v2: "max 100000" or "150000 100000".
double limit_v2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string limit;
  double period = 0;
  if (!(file >> limit >> period) || limit == "max") return kNoLimit;
  return quota(std::atof(limit.c_str()), period);
}

double limit_v1(const std::string& folder) {
  std::ifstream limit_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  double limit = 0;
  double period = 0;
  if (!(limit_file >> limit) || !(period_file >> period)) return kNoLimit;
  return quota(limit, period);
}

// The tightest limit of the process's group and its ancestors.
double limit_upwards(const std::string& root, std::string path, double (*limit)(const std::string&)) {
  double least = limit(root);
  while (path.size() > 1) {
    least = std::min(least, limit(root + path));
    path.erase(path.find_last_of('/'));
  }
  return least;
}

double cgroup_limit() {
  double least = kNoLimit;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::stringstream controllers(line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (second == first + 1) {
      least = std::min(least, limit_upwards("/sys/fs/cgroup", path, limit_v2));
      continue;
    }
    for (std::string name; std::getline(controllers, name, ',');)
      if (name == "cpu") least = std::min(least, limit_upwards("/sys/fs/cgroup/cpu", path, limit_v1));
  }
  return least;
}

#if defined(__x86_64__)
// Features whose names not every compiler knows. Their registers are AVX's, which is asked for too.
bool has_f16c() {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 29 & 1u) != 0;
}

bool has_avx512bf16() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 5 & 1u) != 0;
}

bool has_avxvnni() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1u) != 0;
}
#endif

}  // namespace

std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512dq");
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (vnni && has_avx512bf16()) names.push_back("avx512bf16");
  if (vnni) names.push_back("avx512vnni");
  // 256-bit dot products beat 512-bit multiplies without them.
  if (avx2 && has_avxvnni()) names.push_back("avxvnni");
  if (avx512) names.push_back("avx512");
  if (avx2) names.push_back("avx2");
#elif defined(__aarch64__)
  constexpr unsigned long needed = HWCAP_ASIMDDP | HWCAP_ASIMDHP | HWCAP_FPHP;
  if ((getauxval(AT_HWCAP) & needed) == needed) names.push_back("neon");
#endif
  names.push_back("baseline");
  return names;
}

int usable_processors() {
  int count = static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  if (sched_getaffinity(0, sizeof mask, &mask) == 0) count = CPU_COUNT(&mask);
  const double limit = std::ceil(cgroup_limit());
  return std::max(1, static_cast<int>(std::min<double>(count, limit)));
}

}  // namespace helios
