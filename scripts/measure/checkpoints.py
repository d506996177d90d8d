"""Loads of a checkpoint: Sluice, a plain mapping of the files, safetensors, and Run:ai's streamer.

With the files in the page cache (warm) and without (cold). The times are those of a new process
that loads once, from the call to the last tensor in memory. Sluice and the mapping verify every
element with the formula that wrote it; the others by a CRC-32 of all tensors by name, with that of
the files. Torch is large: 3 GB to fetch, 5 GB on disk. It is a tenth of that if pip is told where
builds for CPUs are (PIP_EXTRA_INDEX_URL).

example: compare.py checkpoints --bytes 64M --rounds 2 --json /tmp/checkpoints.json
"""
import json
import pathlib
import struct
import tempfile
import zlib

import packages
from rounds import (MPIRUN, ROOT, Failure, call, into_page_cache, out_of_page_cache, positive,
                    results_of, size_of)

BASELINE = "sluice, 1 process"
PACKAGES = ("python3-venv",)
LIBRARIES = {"safetensors": ["safetensors", "numpy"], "runai": ["runai-model-streamer"]}
SIDE, TENSOR_BYTES, FILES = 1024, 4 << 20, 4  # of f32 tensors
SOURCES = {"cold": "file", "warm": "mmap"}


def options(parser):
    parser.add_argument("--bytes", type=size_of, default=1 << 30,
                        help="of the checkpoint that is made: 64M, 1G [1G]")
    parser.add_argument("--folder", default=ROOT / "build", metavar="DIR",
                        help="made there, and removed afterwards; the storage to measure [build]")
    parser.add_argument("--ranks", type=positive, default=2,
                        help="processes of the second way of Sluice's [2]")
    packages.options(parser, "venv-checkpoints")
    parser.add_argument("--no-torch", action="store_true",
                        help="leave out what takes torch, which is Run:ai's streamer")
    parser.set_defaults(rounds=7)


def build(args):
    environment = packages.Environment(args.venv)
    args.python, args.libraries, args.missing = environment.python, [], []
    for way, names in LIBRARIES.items():
        reason = ("left out: it takes torch" if way == "runai" and args.no_torch else
                  environment.install(names))
        if reason:
            args.missing.append({"way": way, "reason": reason})
        else:
            args.libraries.append(way)
    pathlib.Path(args.folder).mkdir(parents=True, exist_ok=True)
    args.made = args.stack.enter_context(
        tempfile.TemporaryDirectory(prefix="checkpoint-", dir=args.folder))
    args.tensors = max(FILES, args.bytes // TENSOR_BYTES)
    args.flags = ["--shape", f"{SIDE},{SIDE}", "--dtype", "f32", "--tensors", args.tensors]
    sluice(args, args.ranks, ["--path", f"buffered:{args.made}", "--make", "--shard-bytes",
                              -(-args.tensors // FILES) * TENSOR_BYTES])
    args.files = sorted(pathlib.Path(args.made).glob("*.safetensors"))
    args.checksum = checksum_of(args.files)


def checksum_of(files):
    places = {}
    for path in files:
        with open(path, "rb") as file:
            length, = struct.unpack("<Q", file.read(8))
            for name, entry in json.loads(file.read(length)).items():
                if name != "__metadata__":
                    places[name] = path, *(8 + length + at for at in entry["data_offsets"])
    checksum = 0
    for name, (path, begin, end) in sorted(places.items()):
        with open(path, "rb") as file:
            file.seek(begin)
            checksum = zlib.crc32(file.read(end - begin), zlib.crc32(name.encode(), checksum))
    return checksum


def cases(_):
    return [{"case": case} for case in SOURCES]


def turns(args, case):
    prepare = out_of_page_cache if case == "cold" else into_page_cache

    def own(processes):
        prepare(args.files)
        return sluice_times(args, processes, case)

    def library(way):
        prepare(args.files)
        return library_times(args, way)

    return [*(lambda n=n: own(n) for n in dict.fromkeys((1, args.ranks))),
            *(lambda way=way: library(way) for way in args.libraries)]


def sluice(args, processes, flags):
    return results_of([*MPIRUN, processes, args.bin / "sluice-bench", "checkpoint", *args.flags,
                       *flags])


def sluice_times(args, processes, case):
    """Of one process that loads both ways."""
    found = sluice(args, processes, [
        "--path", f"{SOURCES[case]}:{args.made}", "--check", "all", "--baseline", "mmap",
        "--new-memory", *["--cold"] * (case == "cold")])
    load, = found["results"]
    words = f", {processes} process{'es' * (processes > 1)}"
    return {way + words: times(args, time_us, found["version"]) for way, time_us in (
        ("sluice", load["time_us"]["median"]), ("mmap", load["baselines"]["mmap"]["time_us"]))}


def library_times(args, way):
    output = call([args.python, "-B", ROOT / "bench/python/load_once.py",
                   {"safetensors": "safe-open"}.get(way, way), *args.files],
                  variables={"RUNAI_STREAMER_LOG_LEVEL": "WARNING"})
    found = json.loads(output.splitlines()[-1])
    if (found["checksum"], found["tensors"]) != (args.checksum, args.tensors):
        raise Failure(f"{way} loaded something else than the files hold: {found}")
    return {way: times(args, found["time_us"], found["version"])}


def times(args, time_us, version):
    return {"version": version, "time_us": float(time_us),
            "gb_per_s": args.tensors * TENSOR_BYTES / time_us / 1e3}


def extra(args, _):
    return {"bytes": args.tensors * TENSOR_BYTES, "files": FILES, "missing": args.missing}
