#!/usr/bin/env bash
# Compares transforms of images in turns, on one thread: Sluice, memcpy and numpy.
#
# usage: compare_transforms.sh [OPTION...]
#   --rounds N      rounds in which every way has its turn [5]
#   --seconds T     least time of each turn [0.5]
#   --venv DIR      numpy goes there by pip, and stays [build/venv-transforms]
#   --json FILE     the results [build/results/transforms.json]
#   Images are u8, 224 x 224 pixels of three channels side by side, in a ring of 64 MiB. Each
#   channel has a mean and a standard deviation. They become f32, f16 or bf16, as they lie (nhwc) or
#   with a plane for each channel (nchw). Rates are of bytes read plus bytes written. The memcpy
#   reads and writes as many together.
#
# example: compare_transforms.sh --rounds 2 --seconds 0.1 --json /tmp/transforms.json
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/usage.sh
show_usage "scripts/${0##*/}" "$@"

scripts/packages.sh python3-venv
[ -n "${COPY_BENCH:-}" ] || scripts/build.sh release copy_bench >/dev/null
exec python3 scripts/compare_transforms.py --copy-bench "${COPY_BENCH:-build/bin/copy_bench}" "$@"
