#!/usr/bin/env bash
# Runs the native checks plainly, under sanitizers, and for 64-bit ARM under an emulator.
# usage: tools/test_native.sh [plain] [address] [thread] [arm]    (default: all; arm needs
# g++-aarch64-linux-gnu and qemu-user, and is left out with a note where they are missing)
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)

check() { # name, CMake options…
  local build=$root/build/check-$1
  cmake -S "$root/native" -B "$build" -G Ninja -DHELIOS_PYTHON=OFF -DHELIOS_TESTS=ON "${@:2}" >/dev/null
  cmake --build "$build" --parallel "${JOBS:-2}" >"$build.log" || { cat "$build.log"; return 1; }
  echo "== $1"
}

# Every check of a build, by way of an emulator if one is given.
run() { # name, emulator…
  local one
  for one in kernels_test threads_test fuzz_pack fuzz_layout fuzz_steps; do
    "${@:2}" "$root/build/check-$1/$one"
  done
}

for kind in "${@:-plain address thread arm}"; do
  for one in $kind; do
    case $one in
      plain)
        check plain
        run plain ;;
      address)
        check address -DHELIOS_SANITIZE=address,undefined -DCMAKE_BUILD_TYPE=RelWithDebInfo
        UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 run address ;;
      thread)
        check thread -DHELIOS_SANITIZE=thread -DCMAKE_BUILD_TYPE=RelWithDebInfo
        run thread ;;
      arm)
        if ! command -v aarch64-linux-gnu-g++ >/dev/null || ! command -v qemu-aarch64 >/dev/null; then
          echo "== arm: left out, no cross compiler or emulator"
          continue
        fi
        check arm -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64 \
          -DCMAKE_CXX_COMPILER=aarch64-linux-gnu-g++ -DCMAKE_EXE_LINKER_FLAGS=-static
        run arm qemu-aarch64 -cpu max ;;
      *) echo "unknown check: $one" >&2 && exit 2 ;;
    esac
  done
done
