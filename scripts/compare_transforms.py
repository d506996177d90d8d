#!/usr/bin/env python3
"""Transforms images by Sluice and by numpy in turns, beside memcpy, and prints a table.

usage: through scripts/compare_transforms.sh, which builds the program and explains the options.

The results are JSON. They begin as those of scripts/bench_rounds.py do: version, kind, date,
machine, commit, command, rounds. Then come:
  image     {height, width, channels, from}: what one turn transforms again and again
  numpy     its version
  verified  how results were verified
  rows      one for each way and result: {way, to, layout, bytes (read and written together),
            time_us: {min, p25, median, p75, max, rounds} of one image, gb_per_s (at the median),
            of_memcpy: {the same, of the rounds' ratios: memcpy's time over this one}}
            Ways are sluice, numpy (a line that allocates its results) and numpy-into (ufuncs that
            write into memory that is there). Numpy has no bf16.
"""
import argparse
import json
import os
import sys

import bench_rounds
from bench_rounds import ROOT, Failure, positive, quartiles
from compare_checkpoints import Environment, call
import table  # below bench_rounds, which knows its folder

HEIGHT, WIDTH, CHANNELS = 224, 224, 3
ELEMENTS = HEIGHT * WIDTH * CHANNELS
ELEMENT_BYTES = {"f32": 4, "f16": 2, "bf16": 2}
LAYOUTS = ("nchw", "nhwc")
VERIFIED = ("sluice: the same code against plain loops, in normalization_test; numpy: each way's "
            "first result, with plain Python")

# Runs in the environment that has numpy: prints {way/to/layout: us of an image}.
NUMPY_TURN = r"""
import json, sys, time
import numpy as np

HEIGHT, WIDTH, CHANNELS = 224, 224, 3
RING_BYTES = 64 << 20
seconds, backwards = float(sys.argv[1]), sys.argv[2] == "backwards"
scale = np.array([0.017, 0.0173, 0.0176], np.float32)
bias = np.array([-2.1, -2.0, -1.9], np.float32)
source = np.arange(RING_BYTES, dtype=np.uint32).astype(np.uint8)
images = source[: RING_BYTES // (HEIGHT * WIDTH * CHANNELS) * HEIGHT * WIDTH * CHANNELS]
images = images.reshape(-1, HEIGHT, WIDTH, CHANNELS)


def plain(image, to, layout, into):
    made = (image * scale + bias).astype(to, copy=False)
    return np.ascontiguousarray(made.transpose(2, 0, 1)) if layout == "nchw" else made


def into_memory(image, to, layout, into):
    if layout == "nchw":
        for channel in range(CHANNELS):
            plane = into[channel]
            np.multiply(image[:, :, channel], scale[channel], out=plane, casting="same_kind",
                        dtype=np.float32)
            np.add(plane, bias[channel], out=plane, casting="same_kind")
    else:
        np.multiply(image, scale, out=into, casting="same_kind", dtype=np.float32)
        np.add(into, bias, out=into, casting="same_kind")
    return into


def check(way, to, layout, result):
    for y, x, c in ((0, 0, 0), (3, 200, 1), (223, 223, 2)):
        got = result[c, y, x] if layout == "nchw" else result[y, x, c]
        wanted = int(images[1][y, x, c]) * float(scale[c]) + float(bias[c])
        if abs(float(got) - wanted) > (1e-5 if to is np.float32 else 1e-2):
            sys.exit(f"{way} made {got} of what should be {wanted}")


times = {}
cases = [(way, name, layout) for way in ("numpy", "numpy-into") for name in ("f32", "f16")
         for layout in ("nchw", "nhwc")]
for way, name, layout in reversed(cases) if backwards else cases:
    to = {"f32": np.float32, "f16": np.float16}[name]
    shape = (CHANNELS, HEIGHT, WIDTH) if layout == "nchw" else (HEIGHT, WIDTH, CHANNELS)
    room = max(1, RING_BYTES // int(np.prod(shape)) // np.dtype(to).itemsize)
    results = np.zeros((room, *shape), to)
    run = plain if way == "numpy" else into_memory
    check(way, to, layout, run(images[1], to, layout, results[0]))
    count, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        run(images[count % len(images)], to, layout, results[count % room])
        count += 1
    times[f"{way}/{name}/{layout}"] = (time.perf_counter() - begin) / count * 1e6
print(json.dumps({"numpy": np.__version__, "times": times}))
"""


def sluice_turn(args):
    """{(way, to, layout): us of an image} and {bytes of an element: us of memcpy}."""
    output = call([args.copy_bench, "--benchmark_filter=Image", "--benchmark_format=json",
                   f"--benchmark_min_time={args.seconds}"])
    times, memcpy = {}, {}
    for run in json.loads(output)["benchmarks"]:
        name = run["name"]
        us = run["real_time"] / {"ns": 1e3, "us": 1, "ms": 1e-3}[run["time_unit"]]
        if name.startswith("ImageMemcpy/"):
            memcpy[int(name.split(":")[1])] = us
        else:  # NormalizedImage/u8_nhwc_to_f32_nchw
            to, layout = name.split("_to_")[1].split("_")
            times["sluice", to, layout] = us
    if len(times) != len(ELEMENT_BYTES) * len(LAYOUTS) or len(memcpy) != 2:
        raise Failure(f"{args.copy_bench} has other benchmarks: {output[-2000:]}")
    return times, memcpy


def numpy_turn(args, environment, backwards):
    output = call([environment.python, "-c", NUMPY_TURN, str(args.seconds),
                   "backwards" if backwards else "forwards"])
    result = json.loads(output.splitlines()[-1])
    return {tuple(name.split("/")): us for name, us in result["times"].items()}, result["numpy"]


def measure(args, environment):
    """One ({case: us}, {bytes of an element: us of memcpy}) for each round, and numpy's version."""
    rounds, version = [], None
    for number in range(args.rounds):
        print(f"round {number + 1} of {args.rounds}", file=sys.stderr)
        backwards = number % 2 == 1
        if backwards:
            theirs, version = numpy_turn(args, environment, backwards)
        ours, memcpy = sluice_turn(args)
        if not backwards:
            theirs, version = numpy_turn(args, environment, backwards)
        rounds.append(({**ours, **theirs}, memcpy))
    return rounds, version


def rows_of(rounds):
    rows = []
    for case in rounds[0][0]:
        way, to, layout = case
        size = ELEMENT_BYTES[to]
        times = quartiles([times[case] for times, _ in rounds])
        total = ELEMENTS * (1 + size)
        rows.append({"way": way, "to": to, "layout": layout, "bytes": total, "time_us": times,
                     "gb_per_s": total / times["median"] / 1e3,
                     "of_memcpy": quartiles([memcpy[size] / times[case]
                                             for times, memcpy in rounds])})
    return sorted(rows, key=lambda row: (row["to"], row["layout"], row["way"]))


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--copy-bench", default=os.path.join(ROOT, "build", "bin", "copy_bench"))
    parser.add_argument("--rounds", type=positive, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv-transforms"))
    parser.add_argument("--json", default=os.path.join(ROOT, "build", "results", "transforms.json"))
    args = parser.parse_args()
    args.copy_bench = os.path.abspath(args.copy_bench)
    if "--copy-bench" in sys.argv:  # where this machine has it is of no interest to readers
        at = sys.argv.index("--copy-bench")
        del sys.argv[at:at + 2]
    # What the head of all results has.
    args.ranks, args.tensors, args.iters = 1, 1, 1
    args.shape = f"{HEIGHT},{WIDTH},{CHANNELS}"
    return args


def main():
    args = parse()
    environment = Environment(args.venv)
    if reason := environment.install(["numpy"]):
        print(f"compare_transforms.py: {reason}", file=sys.stderr)
        return bench_rounds.CANNOT_RUN_HERE
    rounds, version = measure(args, environment)
    results = bench_rounds.head(args, "compare-transforms")
    results.update(image={"height": HEIGHT, "width": WIDTH, "channels": CHANNELS, "from": "u8"},
                   numpy=version, verified=VERIFIED, rows=rows_of(rounds))
    bench_rounds.write(args.json, results)
    print(table.tables(results))
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
