#!/usr/bin/env bash
# Compares loaders of training data in turns, behind the same injected latency: Sluice, PyTorch's
# DataLoader, MosaicML streaming and webdataset.
#
# usage: compare_loaders.sh [OPTION...]
#   --items N          [160]
#   --item-bytes N     such as 64K, 1M [1M]
#   --latencies LIST   least time of each read, in milliseconds [0,20,50,200]
#   --consume-us T     the consumer computes so long with each item, its check included [2000]
#   --workers N        processes of a Python loader [8]
#   --ahead N          items that each of them may be ahead (prefetch_factor) [4]; Sluice's budget
#                      is the product of the two, in items
#   --slabs N          of that budget, for the way that fills one slab at a time [8]
#   --shard-items LIST items of a shard of those libraries that read whole shards [1,8]
#   --ways LIST        loaders of Python's [dataloader,dataloader-pinned,mosaicml-streaming,
#                      webdataset]; pinned memory takes CUDA
#   --no-torch         none of them, as all take torch
#   --folder DIR       files are made there, and removed afterwards [build]
#   --rounds N         rounds in which every way has its turn [5]
#   --minutes M        begin no run after so many minutes; a round that this cuts off does not count
#                      [no limit]
#   --venv DIR         Python packages go there, and stay; build/venv-checkpoints may be shared, if
#                      it is there already [build/venv-loaders]
#   --json FILE        the results [build/results/loaders.json]
#   Packages that are missing are installed by pip. Torch is large: 3 GB to fetch, 5 GB on disk. It
#   is a tenth of that if pip is told where builds for CPUs are (PIP_EXTRA_INDEX_URL).
#   Every item of every way is verified in every round; ends with 1 if one is wrong. All files are
#   in the page cache. The time is from the first read to the end of the last item's computation.
#
# example: compare_loaders.sh --items 64 --rounds 2 --latencies 0,20 --json /tmp/loaders.json
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

. scripts/usage.sh
show_usage "scripts/${0##*/}" "$@"

scripts/packages.sh python3-venv
[ -n "${SLUICE_BENCH:-}" ] || scripts/build.sh release sluice-bench >/dev/null
exec python3 scripts/compare_loaders.py \
  --sluice-bench "${SLUICE_BENCH:-build/bin/sluice-bench}" "$@"
