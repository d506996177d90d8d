#!/usr/bin/env python3
"""Loads one checkpoint in several ways in turns, and prints a table.

usage: through scripts/compare_checkpoints.sh, which builds the program and explains the options.

The results are JSON. They begin as those of scripts/bench_rounds.py do: version, kind, date,
machine, commit, command, mpi, rounds. Then come:
  checkpoint   {bytes, files, tensors, dtype, shape}
  sources      {cold, warm}: how Sluice read, the scheme of its address: "file", "mmap"
  verified     how elements were verified
  rows         one for each way and case: {case: "cold" or "warm", way, processes, version,
               time_us: {min, p25, median, p75, max, rounds}, gb_per_s (at the median),
               ratio: {the same of the rounds' ratios, time over that of sluice with 1 process},
               wrong: 0}
               The ways are sluice and mmap, each with 1 process and with --ranks of them,
               safetensors, and runai.
  missing      [{way, reason}]: ways that could not be had
"""
import argparse
import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

import bench_rounds
import page_cache
from bench_rounds import MPIRUN, ROOT, Failure, positive, quartiles
import table  # below bench_rounds, which knows its folder

TENSOR_SHAPE = (1024, 1024)  # of f32: 4 MiB
FILES = 4
SOURCES = {"cold": "file", "warm": "mmap"}
PACKAGES = {"safetensors": ["safetensors", "numpy"], "runai": ["runai-model-streamer"]}
WORKER = os.path.join(ROOT, "bench", "checkpoint", "python_load.py")
VERIFIED = ("sluice and mmap: every element, with the formula that wrote it; the others: a CRC-32 "
            "of all tensors by name, with that of the files")


def call(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          timeout=bench_rounds.TIMEOUT_S, check=False, **more)
    if done.returncode != 0:
        raise Failure(f"{shlex.join(command)}\nended with {done.returncode}:\n"
                      f"{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


class Environment:
    """Python packages in a folder of their own."""

    def __init__(self, folder):
        self.python = os.path.join(folder, "bin", "python")
        if not os.path.exists(self.python):
            call([sys.executable, "-m", "venv", folder])

    def install(self, packages):
        """Why they cannot be had; nothing if they are there."""
        names = ",".join(packages)
        have = [self.python, "-c", "import importlib.metadata as m, sys; "
                "[m.version(name) for name in sys.argv[1].split(',')]", names]
        if subprocess.run(have, stderr=subprocess.DEVNULL, check=False).returncode == 0:
            return ""
        print(f"installing {names}", file=sys.stderr)
        done = subprocess.run([self.python, "-m", "pip", "install", "--quiet",
                               "--disable-pip-version-check", "--no-cache-dir", *packages],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              check=False)
        if done.returncode == 0:
            return ""
        said = done.stdout.strip().splitlines()
        return f"pip cannot install {names}: {said[-1] if said else done.returncode}"


class Checkpoint:
    """Made by sluice-bench, in FILES files and an index."""

    def __init__(self, program, folder, size, processes):
        self.folder = folder
        tensor_bytes = TENSOR_SHAPE[0] * TENSOR_SHAPE[1] * 4
        self.tensors = max(FILES, size // tensor_bytes)
        self.bytes = self.tensors * tensor_bytes
        in_file = -(-self.tensors // FILES) * tensor_bytes
        self.flags = ["--shape", ",".join(map(str, TENSOR_SHAPE)), "--dtype", "f32",
                      "--tensors", str(self.tensors)]
        run_sluice(program, processes, ["--path", f"buffered:{folder}", "--make", *self.flags,
                                        "--shard-bytes", str(in_file)])
        self.files = sorted(os.path.join(folder, name) for name in os.listdir(folder)
                            if name.endswith(".safetensors"))
        self.checksum = self.compute_checksum()

    def compute_checksum(self):
        places = {}
        for path in self.files:
            with open(path, "rb") as file:
                length, = struct.unpack("<Q", file.read(8))
                for name, entry in json.loads(file.read(length)).items():
                    if name != "__metadata__":
                        begin, end = entry["data_offsets"]
                        places[name] = (path, 8 + length + begin, end - begin)
        checksum = 0
        for name in sorted(places):
            path, begin, count = places[name]
            with open(path, "rb") as file:
                file.seek(begin)
                checksum = zlib.crc32(file.read(count), zlib.crc32(name.encode(), checksum))
        return checksum

    def prepare(self, case):
        """Puts the files into the page cache, or out of it."""
        for path in self.files:
            with open(path, "rb") as file:
                page_cache.put(file, case)


def run_sluice(program, processes, flags):
    """The results of one run of `sluice-bench checkpoint`."""
    with tempfile.TemporaryDirectory(prefix="checkpoints-") as folder:
        file = os.path.join(folder, "results.json")
        call([MPIRUN, "--oversubscribe", "-np", str(processes), program, "checkpoint", *flags,
              "--json", file])
        with open(file, encoding="utf-8") as text:
            return json.load(text)


def sluice_and_mmap(args, checkpoint, processes, case):
    """{(way, processes): (time in microseconds, version)} of one process that loads both ways."""
    flags = ["--path", f"{SOURCES[case]}:{checkpoint.folder}", *checkpoint.flags, "--check", "all",
             "--baseline", "mmap", "--new-memory"]
    checkpoint.prepare(case)
    results = run_sluice(args.sluice_bench, processes, flags + ["--cold"] * (case == "cold"))
    load, = results["results"]
    way = load["baselines"]["mmap"]
    if load["wrong"] or way["wrong"] or not load["checked"]:
        raise Failure(f"wrong elements: {load}")
    return {("sluice", processes): (load["time_us"]["median"], results["version"]),
            ("mmap", processes): (way["time_us"], results["version"])}


def python_load(environment, checkpoint, way, case):
    checkpoint.prepare(case)
    output = call([environment.python, "-B", WORKER, way, *checkpoint.files],
                  env=dict(os.environ, RUNAI_STREAMER_LOG_LEVEL="WARNING"))
    result = json.loads(output.splitlines()[-1])
    if result["checksum"] != checkpoint.checksum or result["tensors"] != checkpoint.tensors:
        raise Failure(f"{way} loaded something else than the files hold: {result}")
    return {(way, 1): (result["time_us"], result["version"])}


def turns_of(args, environment, checkpoint, libraries):
    """What has its turn in each round: calls that take the case."""
    turns = [lambda case, n=n: sluice_and_mmap(args, checkpoint, n, case)
             for n in dict.fromkeys((1, args.ranks))]
    return turns + [lambda case, way=way: python_load(environment, checkpoint, way, case)
                    for way in libraries]


def measure(args, turns):
    """{case: [{(way, processes): (time, version)}, one for each round]}"""
    began = time.monotonic()
    rounds = {case: [] for case in SOURCES}
    for number in range(args.rounds):
        if number > 0 and 0 < args.minutes * 60 <= time.monotonic() - began:
            print(f"{args.minutes:g} minutes are over after {number} rounds", file=sys.stderr)
            break
        for case in SOURCES:
            times = {}
            # Every other round backwards, so that nothing always runs after the same one.
            for turn in turns if number % 2 == 0 else reversed(turns):
                times.update(turn(case))
            rounds[case].append(times)
        print(f"round {number + 1} of {args.rounds}: {(time.monotonic() - began) / 60:.1f} minutes",
              file=sys.stderr, flush=True)
    return rounds


def rows_of(checkpoint, rounds):
    rows = []
    for case, all_times in rounds.items():
        for way, processes in sorted(all_times[0], key=lambda key: (
                ["sluice", "mmap", "safetensors", "runai"].index(key[0]), key[1])):
            times = [one[way, processes][0] for one in all_times]
            ratios = [one[way, processes][0] / one["sluice", 1][0] for one in all_times]
            spread = quartiles(times)
            rows.append({"case": case, "way": way, "processes": processes,
                         "version": all_times[0][way, processes][1], "time_us": spread,
                         "gb_per_s": checkpoint.bytes / spread["median"] / 1e3,
                         "ratio": quartiles(ratios), "wrong": 0})
    return rows


def size_of(text):
    found = re.fullmatch(r"(\d+)([KMG]?)", text)
    if not found or int(found.group(1)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no size, such as 64M or 1G")
    return int(found.group(1)) << {"": 0, "K": 10, "M": 20, "G": 30}[found.group(2)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sluice-bench", default=os.path.join(ROOT, "build", "bin",
                                                               "sluice-bench"))
    parser.add_argument("--bytes", type=size_of, default=1 << 30)
    parser.add_argument("--folder", default=os.path.join(ROOT, "build"))
    parser.add_argument("--ranks", type=positive, default=2)
    parser.add_argument("--rounds", type=positive, default=7)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--venv", default=os.path.join(ROOT, "build", "venv-checkpoints"))
    parser.add_argument("--no-torch", action="store_true")
    parser.add_argument("--json", default=os.path.join(ROOT, "build", "results",
                                                       "checkpoints.json"))
    args = parser.parse_args()
    args.sluice_bench = os.path.abspath(args.sluice_bench)
    args.shape = ",".join(map(str, TENSOR_SHAPE))
    args.tensors, args.iters = 0, 1
    return args


def available(args, environment):
    """The libraries that are there, and why the others are not."""
    libraries, missing = [], []
    for way, packages in PACKAGES.items():
        reason = ("left out: it takes torch" if way == "runai" and args.no_torch
                  else environment.install(packages))
        if reason:
            missing.append({"way": way, "reason": reason})
        else:
            libraries.append(way)
    return libraries, missing


def main():
    args = parse()
    environment = Environment(args.venv)
    libraries, missing = available(args, environment)
    os.makedirs(args.folder, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="checkpoint-", dir=args.folder)
    try:
        checkpoint = Checkpoint(args.sluice_bench, folder, args.bytes, args.ranks)
        args.tensors = checkpoint.tensors
        rounds = measure(args, turns_of(args, environment, checkpoint, libraries))
    finally:
        shutil.rmtree(folder)
    results = bench_rounds.head(args, "compare-checkpoints")
    results["rounds"] = len(rounds["cold"])
    results.update(
        checkpoint={"bytes": checkpoint.bytes, "files": len(checkpoint.files),
                    "tensors": checkpoint.tensors, "dtype": "f32", "shape": list(TENSOR_SHAPE)},
        sources=SOURCES, verified=VERIFIED, rows=rows_of(checkpoint, rounds), missing=missing)
    bench_rounds.write(args.json, results)
    print(table.tables(results))
    return 0


if __name__ == "__main__":
    bench_rounds.main_of(main)
