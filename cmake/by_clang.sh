#!/bin/sh
# Runs clang++ in place of a compiler, as a launcher of CMake.
# usage: by_clang.sh COMPILER [ARGUMENT...]
shift
exec clang++ "$@"
