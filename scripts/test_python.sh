#!/usr/bin/env bash
# Tests the Python package: builds the wheel from a build of the repository, installs it where
# nothing else is, and runs the tests that take no PyTorch.
#
# usage: test_python.sh [--asan] [PYTEST ARGUMENT...]    such as -k capture
#   --asan              runs some of the tests with a module that has the address and undefined
#                       sanitizers, made with the libraries of build-asan
#   SLUICE_PYTHON_VENV  the environment for the tests, made if it is not there, and kept
#                       [build/venv-python]
#   SLUICE_WHEEL        a wheel that is there already [built by scripts/build/wheel.sh]
#   The tests of CUDA tensors (python/tests/cuda) run with a module over the fakes of build, where
#   build has tests.
#   Ends with 1 if a test fails, or if the package has loaded MPI, NumPy or PyTorch without need.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/build/usage.sh
show_usage "scripts/${0##*/}" "$@"

asan=false
if [ "${1:-}" = --asan ]; then
  asan=true
  shift
fi
fail() { echo "test_python.sh: $*" >&2; exit 1; }

scripts/packages.sh
root=$PWD
tests=$root/python/tests
venv=$(realpath -m "${SLUICE_PYTHON_VENV:-build/venv-python}")
python=$venv/bin/python
pip=("$python" -m pip --disable-pip-version-check --quiet install)
if [ ! -e "$venv/complete" ] || [ ! -e "$venv/bin/moto_server" ]; then
  python3 -m venv --clear "$venv"
  "${pip[@]}" pytest pytest-xdist numpy ml_dtypes mypy "moto[s3,server]" "nanobind-backend>=1.0,<2"
  touch "$venv/complete"
fi
limited=("$python" "$root/scripts/nodes/job_limit.py")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
export PYTHONDONTWRITEBYTECODE=1
at_once=$(($(nproc) * 3))  # most tests wait most of their time
under=()
# What gives the C++ library memory of Python's to use, lends its own, and lets go of both.
sanitized=(test_binding_process.py test_binding_stream.py test_binding_transfer.py
           test_binding_values.py test_transfer.py)

# run_tests PYTEST_ARGUMENT...: with programs of the environment on PATH, and no others but nm and
# what shows stacks. So there is no mpirun.
run_tests() {
  mkdir -p "$work/bin" "$work/run"
  command -v nm eu-stack | xargs -I{} ln -sf {} "$work/bin/"
  cd "$work/run"
  PATH=$venv/bin:$work/bin "${limited[@]}" "$limit" "${under[@]}" \
    "$python" -m pytest -q -p no:cacheprovider --rootdir "$tests" -n "$at_once" \
    --dist worksteal --junitxml "$root/$results" "$@"
}

# module_with FOLDER BUILD SETTING...: makes the module in FOLDER, with the libraries of BUILD, and
# the package with it in $work/package.
module_with() {
  # What the wheel takes as tools, nanobind among them.
  local tools folder=$1 build=$2
  tools=$(realpath -m "${SLUICE_WHEEL_VENV:-build/venv-wheel}")
  [ -x "$tools/bin/auditwheel" ] || fail "scripts/build/wheel.sh makes $tools, and has not run"
  PATH=$tools/bin:$PATH cmake -S python -B "$folder" -G Ninja -D SLUICE_BUILD_DIR="$root/$build" \
    "${@:3}" >/dev/null
  cmake --build "$folder" --parallel "$(nproc)"
  mkdir "$work/package"
  cp -r python/sluice "$work/package/sluice"
  rm -f "$work"/package/sluice/_sluice*.so
  cp "$folder"/_sluice*.so "$work/package/sluice/"
}

if ! $asan; then
  wheel=${SLUICE_WHEEL:-}
  if [ -z "$wheel" ]; then
    scripts/build/wheel.sh
    wheel=$(find build/wheel -maxdepth 1 -name 'sluice_mesh-*.whl')
  fi
  "${pip[@]}" --force-reinstall --no-deps "$wheel"
  "${pip[@]}" "$wheel"  # and what it needs
  limit=3000 results=build/python.xml
  run_tests "$tests" --ignore "$tests/torch" --ignore "$tests/cuda" --ignore "$tests/vllm" \
    --ignore "$tests/integrations" "$@"
  cd "$root"
  if grep -qs '^SLUICE_BUILD_TESTS:BOOL=ON' build/CMakeCache.txt; then
    cmake --build build --parallel "$(nproc)" \
      --target sluice_transport_nccl_fake sluice_transport_cuda_ipc_fake >/dev/null
    module_with build/python-fake build -D CMAKE_BUILD_TYPE=Debug -D CMAKE_CXX_FLAGS_DEBUG=-O1 \
      -D SLUICE_PYTHON_CUDA=FAKE
    under=(/usr/bin/env PYTHONPATH="$work/package")
    results=build/python-cuda.xml
    run_tests "$tests/cuda" "$@" || [ $? = 5 ]  # none is what the arguments want
  fi
  echo "All tests of the Python package passed: $(basename "$wheel")."
  exit 0
fi

"${pip[@]}" --force-reinstall --no-deps "nanobind-backend>=1.0,<2"
[ -f build-asan/CMakeCache.txt ] || fail "there is no build-asan; scripts/build.sh asan makes it"
module_with build-asan/python build-asan -D CMAKE_BUILD_TYPE=Debug \
  -D "CMAKE_CXX_FLAGS_DEBUG=-O1 -g1" -D SLUICE_SANITIZE=address,undefined

# Python is no program of the sanitizer's, so its library is loaded first, and that of C++ with it,
# whose exceptions it watches. Memory of Python's own comes from malloc, where it is watched, too.
# The presets of CMake say why Abseil may not poison memory. Python does not give all memory back.
preload="$(c++ -print-file-name=libasan.so) $(c++ -print-file-name=libstdc++.so)"
under=(/usr/bin/env LD_PRELOAD="$preload" PYTHONMALLOC=malloc PYTHONPATH="$work/package"
       ASAN_OPTIONS=detect_leaks=0:allow_user_poisoning=0 UBSAN_OPTIONS=print_stacktrace=1)
limit=3000 results=build-asan/python.xml
run_tests "${sanitized[@]/#/$tests/}" "$@"
echo "Sanitizers have found nothing in the Python module."
