"""Ranks that all need all items: bytes and opens, as the run says and as the storage counted."""
import json
import pathlib
import shutil
import subprocess
import tempfile

from nginx import Nginx
from runs import MIB, window
from shards import objects
from spread import summarize

RANKS = (2, 4, 8)
ITEMS = 128
PER_OBJECT = 8
SLOTS = 16


def measure(setup):
    folder = setup.folder(items=ITEMS, items_per_object=PER_OBJECT)
    runs = []
    ways = {"file": _files, "http": _http, "fuse": _fuse}
    if not (setup.bin_folder / "slow_fs").exists() or not shutil.which("fusermount3"):
        ways.pop("fuse")
    settings = [(way, ranks) for way in ways for ranks in setup.some(RANKS)]
    for number, (way, ranks) in setup.turns("read_once", setup.rounds(2), settings):
        run, counted = ways[way](setup, folder, ranks)
        runs.append({"source": way, "ranks": ranks, "round": number,
                     "bytes_ratio": run["bytes_read"] / (ITEMS * MIB),
                     "opens_ratio": run["opens"] / len(objects(folder)),
                     **counted, "items": run["items"], "requests": run["requests"]})
    values = ("bytes_ratio", "opens_ratio", "counted_bytes_ratio", "counted_opens_ratio")
    return {"parameters": {"items": ITEMS, "item_bytes": MIB, "objects": ITEMS // PER_OBJECT,
                           "slots": SLOTS},
            "runs": runs, "summary": summarize(runs, ("source", "ranks"), values)}


def _stream(setup, source, ranks):
    return setup.bench.stream(source, ranks=ranks, exchange=1, **window(SLOTS))


def _files(setup, folder, ranks):
    return _stream(setup, f"file:{folder}", ranks), {}


def _http(setup, folder, ranks):
    """Whatever is sent of an object counts; the index is apart."""
    with Nginx(folder) as nginx:
        run = _stream(setup, nginx.url, ranks)
        sent = [count for path, _, count in nginx.log() if path != "/index.json"]
    return run, {"counted_bytes_ratio": sum(sent) / (ITEMS * MIB), "counted_requests": len(sent)}


def _fuse(setup, folder, ranks):
    """A file system of our own counts what the kernel asks of it."""
    with tempfile.TemporaryDirectory(prefix="figures-fuse-") as scratch:
        mount = pathlib.Path(scratch) / "mount"
        mount.mkdir()
        log = pathlib.Path(scratch) / "log.json"
        with _mounted(setup.bin_folder / "slow_fs", folder, mount, log):
            run = _stream(setup, f"file:{mount}", ranks)
        counts = json.loads(log.read_text(encoding="utf-8"))["objects"]
    counts.pop("index.json", None)
    return run, {"counted_bytes_ratio": sum(c["bytes"] for c in counts.values()) / (ITEMS * MIB),
                 "counted_opens_ratio": sum(c["opens"] for c in counts.values()) /
                                        len(objects(folder))}


class _mounted:
    """Shows `folder` at `mount` while it is entered; `log` is written when it is left."""

    def __init__(self, program, folder, mount, log):
        self._command = [program, "--source", folder, "--mount", mount, "--log", log]

    def __enter__(self):
        self._process = subprocess.Popen([*map(str, self._command), "--ready-fd", "1"],
                                         stdout=subprocess.PIPE)
        if self._process.stdout.read(1) != b"m":
            raise RuntimeError("slow_fs did not mount")

    def __exit__(self, *_):
        self._process.terminate()
        self._process.communicate(timeout=60)
