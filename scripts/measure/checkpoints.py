"""Checkpoints: loads beside a plain mapping, safetensors and Run:ai's streamer, saves beside fio.

With the files in the page cache (warm) and without (cold). The times are those of a new process
that loads once, from the call to the last tensor in memory. Sluice and the mapping verify every
element with the formula that wrote it; the others by a CRC-32 of all tensors by name, with that of
the files. Torch is large: 3 GB to fetch, 5 GB on disk. It is a tenth of that if pip is told where
builds for CPUs are (PIP_EXTRA_INDEX_URL). One process of Sluice's runs without mpirun, which would
bind it to one core. A save lasts until the files are on the storage. fio writes as many bytes past
the page cache, in blocks of 8 MiB of which 32 are under way, until fsync returns.

example: compare.py checkpoints --bytes 64M --rounds 2 --json /tmp/checkpoints.json
"""
import json
import pathlib
import sys
import tempfile

import packages
from rounds import MPIRUN, ROOT, call, positive, results_of, size_of

sys.path.append(str(ROOT / "bench/python"))
import loads  # noqa: E402  after the folder is known

BASELINE = "sluice, 1 process"
PACKAGES = ("fio", "python3-venv")
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
    tensors = max(FILES, args.bytes // TENSOR_BYTES)
    args.flags = ["--shape", f"{SIDE},{SIDE}", "--dtype", "f32", "--tensors", tensors]
    sluice(args, args.ranks, ["--path", f"buffered:{args.made}", "--make", "--shard-bytes",
                              -(-tensors // FILES) * TENSOR_BYTES])
    args.checkpoint = loads.Checkpoint(sorted(pathlib.Path(args.made).glob("*.safetensors")))


def cases(_):
    return [{"case": case} for case in (*SOURCES, "save")]


def turns(args, case):
    def prepared(way):
        args.checkpoint.prepare(case)
        return way()

    counts = dict.fromkeys((1, args.ranks))
    if case == "save":
        return [*(lambda n=n: save_times(args, n) for n in counts), lambda: fio_times(args)]
    return [*(lambda n=n: prepared(lambda: sluice_times(args, n, case))
              for n in counts),
            *(lambda way=way: prepared(lambda: library_times(args, way))
              for way in args.libraries)]


def sluice(args, processes, flags):
    launcher = [*MPIRUN, processes] if processes > 1 else []
    return results_of([*launcher, args.bin / "sluice-bench", "checkpoint", *args.flags,
                       *flags])


def sluice_times(args, processes, case):
    """Of one process that loads both ways."""
    found = sluice(args, processes, [
        "--path", f"{SOURCES[case]}:{args.made}", "--check", "all", "--baseline", "mmap",
        "--new-memory", *["--cold"] * (case == "cold")])
    load, = found["results"]
    return {named(way, processes): times(args, time_us, found["version"]) for way, time_us in (
        ("sluice", load["time_us"]["median"]), ("mmap", load["baselines"]["mmap"]["time_us"]))}


def named(way, processes):
    return f"{way}, {processes} process{'es' * (processes > 1)}"


def save_times(args, processes):
    with tempfile.TemporaryDirectory(prefix="save-", dir=args.folder) as folder:
        found = sluice(args, processes, ["--path", f"buffered:{folder}", "--make", "-n", 1,
                                         "-w", 0])
    save = next(result for result in found["results"] if result["case"] == "save")
    return {named("sluice", processes): times(args, save["time_us"]["median"], found["version"])}


def fio_times(args):
    with tempfile.TemporaryDirectory(prefix="save-", dir=args.folder) as folder:
        said = call(["fio", "--name=save", f"--directory={folder}",
                     f"--size={args.checkpoint.bytes}", "--rw=write", "--bs=8M",
                     "--ioengine=libaio", "--iodepth=32", "--direct=1", "--end_fsync=1",
                     "--output-format=json"])
    found = json.loads(said[said.index("{"):])
    return {"fio": times(args, found["jobs"][0]["job_runtime"] * 1e3, found["fio version"])}


def library_times(args, way):
    found = args.checkpoint.load(args.python, {"safetensors": "safe-open"}.get(way, way))
    return {way: times(args, found["time_us"], found["version"])}


def times(args, time_us, version):
    return {"version": version, "time_us": float(time_us),
            "gb_per_s": args.checkpoint.bytes / time_us / 1e3}


def extra(args, _):
    return {"bytes": args.checkpoint.bytes, "files": FILES, "missing": args.missing}
