"""A checkpoint that several libraries load, each in a process of its own; for compare_torch.py.

Each way is tried in several settings first. The one with the lowest median takes part.
"""
import ctypes
import json
import mmap
import os
import pathlib
import random
import struct
import zlib

from rounds import Failure, into_page_cache, out_of_page_cache, spread

HERE = pathlib.Path(__file__).resolve().parent
CASES = ("cold", "warm")
TRIES = 3  # of each setting
# PyTorch asks for huge pages then. NumPy does by itself, and Run:ai's memory is NumPy's.
HUGE = {"THP_MEM_ALLOC_ENABLE": "1"}
RUNAI = "RUNAI_STREAMER_"


def settings_of(case):
    """{way: {setting: (way of load_once.py, environment)}}; the first is how it comes."""
    own = {"cold": ("file",), "warm": ("buffered", "mmap")}[case]  # what the documentation advises
    return {
        "sluice": {scheme + more: (f"sluice-{scheme}", environment) for scheme in own
                   for more, environment in (("", {}), (", huge pages", HUGE))},
        "runai": {"default": ("runai", {}),
                  "4 threads": ("runai", {RUNAI + "CONCURRENCY": "4"}),
                  **{strategy: ("runai", {RUNAI + "FS_STRATEGY": strategy})
                     for strategy in ("io_uring_buffered", "io_uring_direct", "libaio_direct")}},
        "safetensors": {"mmap": ("safetensors", {}), "mmap, huge pages": ("safetensors", HUGE),
                        "pread": ("safetensors-pread", {}),
                        "pread, huge pages": ("safetensors-pread", HUGE)}}


class Checkpoint:
    """One safetensors file of bf16 tensors such as a model's, with random bytes."""

    SHAPES = (("q", (4096, 4096)), ("k", (1024, 4096)), ("up", (8192, 4096)), ("norm", (4096,)))

    def __init__(self, folder, size):
        self.path = folder / "model.safetensors"
        header, self.bytes, layer = {}, 0, 0
        while self.bytes < size:
            for name, shape in self.SHAPES:
                count = 2
                for extent in shape:
                    count *= extent
                header[f"layers.{layer}.{name}.weight"] = {
                    "dtype": "BF16", "shape": list(shape),
                    "data_offsets": [self.bytes, self.bytes + count]}
                self.bytes += count
            layer += 1
        self.tensors = len(header)
        self._write(header)

    def _write(self, header):
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        source = random.Random(7)
        with open(self.path, "wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for entry in header.values():
                begin, end = entry["data_offsets"]
                file.write(source.randbytes(end - begin))
            os.fsync(file.fileno())
        self.checksum = 0
        with open(self.path, "rb") as file:
            for name in sorted(header):
                begin, end = header[name]["data_offsets"]
                file.seek(8 + len(text) + begin)
                self.checksum = zlib.crc32(file.read(end - begin),
                                           zlib.crc32(name.encode(), self.checksum))

    def prepare(self, case):
        """Puts the file into the page cache, or out of it."""
        (out_of_page_cache if case == "cold" else into_page_cache)([self.path])
        with open(self.path, "rb") as file:
            share = cached(file)
        if share > 0.01 if case == "cold" else share < 0.99:
            raise Failure(f"the page cache has {share:.0%} of the file, which is to be {case}: "
                          "choose another --folder")


def cached(file):
    """The share of a file's pages that the page cache has."""
    size = os.fstat(file.fileno()).st_size
    pages = -(-size // mmap.PAGESIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                          ctypes.c_int, ctypes.c_long]
    libc.mincore.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p]
    libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    address = libc.mmap(None, size, mmap.PROT_READ, mmap.MAP_SHARED, file.fileno(), 0)
    if address == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), f"cannot map {file.name}")
    try:
        flags = ctypes.create_string_buffer(pages)
        if libc.mincore(address, size, flags) != 0:
            raise OSError(ctypes.get_errno(), f"mincore of {file.name}")
        return sum(flag & 1 for flag in flags.raw) / pages
    finally:
        libc.munmap(address, size)


class Loads:
    """`call` runs a command, and returns what it says, or raises Failure."""

    def __init__(self, python, checkpoint, call):
        self._python, self._checkpoint, self._call = python, checkpoint, call
        self.versions = {}

    def once(self, case, way, setting):
        """Microseconds."""
        checkpoint = self._checkpoint
        checkpoint.prepare(case)
        program, more = setting
        said = self._call([self._python, HERE / "load_once.py", program, checkpoint.path],
                          variables={"RUNAI_STREAMER_LOG_LEVEL": "WARNING", **more})
        result = json.loads(said.splitlines()[-1])
        if (result["checksum"], result["tensors"]) != (checkpoint.checksum, checkpoint.tensors):
            raise SystemExit(f"{way} loaded something else than the file holds: {result}")
        self.versions[way] = result["version"]
        return result["time_us"]

    def best(self, case, tries=TRIES):
        """{way: name of its best setting}, and what was tried. A setting may be refused."""
        chosen, tried = {}, []
        for way, settings in settings_of(case).items():
            medians = {}
            for name, setting in settings.items():
                row = {"case": case, "way": way, "setting": name}
                try:
                    found = spread([self.once(case, way, setting) for _ in range(tries)])
                except Failure:
                    if name == next(iter(settings)):
                        raise
                    tried.append({**row, "refused": True})
                    continue
                medians[name] = found["median"]
                tried.append({**row, "time_us": found})
            chosen[way] = min(medians, key=medians.get)
        return chosen, tried

    def turns(self, case, chosen, backwards):
        """{way: microseconds} of one round."""
        settings = settings_of(case)
        ways = reversed(list(chosen)) if backwards else list(chosen)
        return {way: self.once(case, way, settings[way][chosen[way]]) for way in ways}
