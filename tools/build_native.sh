#!/usr/bin/env bash
# Builds the native extension and puts it beside the Python sources, for development.
# usage: tools/build_native.sh [CMake options, such as -DHELIOS_SANITIZE=address,undefined]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=${HELIOS_BUILD:-$root/build/dev}
cmake -S "$root/native" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release \
  -DPython_EXECUTABLE="$(command -v python)" "$@" >/dev/null
cmake --build "$build" --parallel "${JOBS:-2}"
# Renamed into place, so that a process that runs the old one keeps it whole.
for built in "$build"/_native*.so; do
  cp "$built" "$root/src/helios/.${built##*/}.new"
  mv -f "$root/src/helios/.${built##*/}.new" "$root/src/helios/${built##*/}"
done
