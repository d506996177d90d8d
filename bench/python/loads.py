"""A checkpoint that several libraries load, each in a process of its own; for compare_torch.py.

Each way is tried in several settings first. The one with the lowest median takes part.
"""
import ctypes
import json
import mmap
import pathlib
import zlib

import load_once
from rounds import Failure, call, into_page_cache, out_of_page_cache, spread

HERE = pathlib.Path(__file__).resolve().parent
CASES = ("cold", "warm")
TRIES = 3  # of each setting
# PyTorch asks for huge pages then. NumPy does by itself, and Run:ai's memory is NumPy's.
HUGE = {"THP_MEM_ALLOC_ENABLE": "1"}
RUNAI = "RUNAI_STREAMER_"
# One file of bf16 tensors such as a model's, with random bytes.
MAKE = """
import sys, torch
from safetensors.torch import save_file
torch.manual_seed(7)
tensors, size = {}, 0
while size < int(sys.argv[2]):
    for name, shape in (("q", (4096, 4096)), ("k", (1024, 4096)), ("up", (8192, 4096)),
                        ("norm", (4096,))):
        bits = torch.randint(-2**15, 2**15, shape, dtype=torch.int16)
        tensors[f"layers.{len(tensors) // 4}.{name}.weight"] = bits.view(torch.bfloat16)
        size += bits.nbytes
save_file(tensors, sys.argv[1])
"""


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
    """Files of safetensors, and the checksum that load_once.py must have of them."""

    def __init__(self, files):
        self.files, self.checksum = files, 0
        places = {name: (path, *entry["data_offsets"]) for path in files
                  for name, entry in load_once.header(path).items()}
        self.tensors = len(places)
        self.bytes = sum(end - begin for _, begin, end in places.values())
        for name, (path, begin, end) in sorted(places.items()):
            with open(path, "rb") as file:
                file.seek(begin)
                self.checksum = zlib.crc32(file.read(end - begin),
                                           zlib.crc32(name.encode(), self.checksum))

    def prepare(self, case):
        """Puts the files into the page cache, or out of it."""
        (out_of_page_cache if case == "cold" else into_page_cache)(self.files)
        share = cached(self.files)
        if share > 0.01 if case == "cold" else share < 0.99:
            raise Failure(f"the page cache has {share:.0%} of the files, which are to be {case}: "
                          "choose another --folder")

    def load(self, python, way, **variables):
        """What load_once.py says of a new process that loads."""
        said = call([python, "-B", HERE / "load_once.py", way, *self.files],
                    variables={"RUNAI_STREAMER_LOG_LEVEL": "WARNING", **variables})
        found = json.loads(said.splitlines()[-1])
        if (found["checksum"], found["tensors"]) != (self.checksum, self.tensors):
            raise SystemExit(f"{way} loaded something else than the files hold: {found}")
        return found


def made(python, path, size):
    call([python, "-c", MAKE, path, size])
    return Checkpoint([path])


def cached(files):
    """The share of the files' pages that the page cache has."""
    libc, pages = ctypes.CDLL(None, use_errno=True), bytearray()
    for path in files:
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) as view:
            of_file = (ctypes.c_ubyte * -(-len(view) // mmap.PAGESIZE))()
            begin = ctypes.c_char.from_buffer(view)
            error = libc.mincore(ctypes.byref(begin), ctypes.c_size_t(len(view)), of_file)
            del begin  # for the view to end
            if error:
                raise OSError(ctypes.get_errno(), f"mincore of {path}")
            pages += bytes(of_file)
    return sum(page & 1 for page in pages) / len(pages)


class Loads:
    def __init__(self, python, checkpoint):
        self._python, self._checkpoint = python, checkpoint

    def once(self, case, way, name):
        """A turn: {way: its time}."""
        self._checkpoint.prepare(case)
        program, variables = settings_of(case)[way][name]
        found = self._checkpoint.load(self._python, program, **variables)
        return {way: {"version": found["version"], "setting": name,
                      "time_us": float(found["time_us"])}}

    def best(self, case, tries=TRIES):
        """{way: name of its best setting}, and what was tried. A setting may be refused."""
        chosen, tried = {}, []
        for way, settings in settings_of(case).items():
            medians = {}
            for name in settings:
                row = {"case": case, "way": way, "setting": name}
                try:
                    found = spread(self.once(case, way, name)[way]["time_us"]
                                   for _ in range(tries))
                except Failure:
                    if name == next(iter(settings)):
                        raise
                    tried.append({**row, "refused": True})
                    continue
                medians[name] = found["median"]
                tried.append({**row, "time_us": found})
            chosen[way] = min(medians, key=medians.get)
        return chosen, tried

    def turns(self, case, chosen):
        return [lambda one=one: self.once(case, *one) for one in chosen.items()]
