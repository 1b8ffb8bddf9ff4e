#!/usr/bin/env bash
# Fuzzes the native entry points that read a core's bytes and numbers, under sanitizers.
# usage: tools/fuzz_native.sh [seconds for each target]    (default: 60; needs clang and its
# libFuzzer, in Debian clang and libclang-rt-dev; CXX names another clang++ than the first found)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
compiler=${CXX:-$(command -v clang++ clang++-1{9,8,7,6,5,4} | head -1 || true)}
[ -n "$compiler" ] || { echo "no clang++; tools/test_native.sh needs none" >&2; exit 1; }

build=$root/build/fuzz
cmake -S "$root/native" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DHELIOS_PYTHON=OFF \
  -DHELIOS_LIBFUZZER=ON -DHELIOS_SANITIZE=address,undefined,fuzzer-no-link \
  -DCMAKE_CXX_COMPILER="$compiler" >/dev/null
cmake --build "$build" --parallel "${JOBS:-2}" >"$build.log" || { cat "$build.log"; exit 1; }

export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1
for target in pack layout steps; do
  echo "== $target"
  mkdir -p "$build/corpus-$target"
  "$build/fuzz_$target" -max_total_time="${1:-60}" -max_len=1024 -print_final_stats=1 \
    -artifact_prefix="$build/$target-" "$build/corpus-$target"
done
