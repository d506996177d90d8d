"""Loads a checkpoint once into new memory of this process, and prints what came of it.

usage: load_once.py WAY FILE...    in an environment that has PyTorch and the way's library

WAY is sluice-file, sluice-buffered or sluice-mmap (of Session.load), safetensors (load_file, and a
clone of each tensor, as its tensors are else maps of the file), safetensors-pread (which reads into
memory, so that nothing is cloned) or runai (Run:ai's streamer). The last line of the output is
JSON: the time, the library's version, and a checksum over all tensors by name. The time is from the
call to the last tensor in memory: Sluice's makes the tensors and the session, too.
Imports and the checksum are not in the time.
"""
import importlib.metadata
import json
import os
import pathlib
import struct
import sys
import time
import zlib

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "checkpoint"))
import python_load  # noqa: E402  after the folder is known

DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32}


def header(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        return {name: entry for name, entry in json.loads(file.read(length)).items()
                if name != "__metadata__"}


def sluice_way(scheme):
    import sluice
    make_session = sluice.Session.from_exchange  # imports what sessions need

    def load(paths):
        tensors = {name: torch.empty(entry["shape"], dtype=DTYPES[entry["dtype"]])
                   for path in paths for name, entry in header(path).items()}
        with make_session(0, 1, lambda own: [own]) as session:
            session.load(f"{scheme}:{os.path.dirname(paths[0])}", tensors, progress=False)
        return tensors
    return load, sluice.__version__


def safetensors_way():
    from safetensors.torch import load_file

    def load(paths):
        return {name: tensor.clone() for path in paths for name, tensor in load_file(path).items()}
    return load, importlib.metadata.version("safetensors")


def safetensors_pread_way():
    from safetensors.torch import load_file

    def load(paths):
        return {name: tensor for path in paths
                for name, tensor in load_file(path, backend="pread").items()}
    return load, importlib.metadata.version("safetensors")


def runai_way():
    load, package = python_load.runai_way()
    return load, importlib.metadata.version(package)


WAYS = {**{f"sluice-{scheme}": lambda scheme=scheme: sluice_way(scheme)
           for scheme in ("file", "buffered", "mmap")},
        "safetensors": safetensors_way, "safetensors-pread": safetensors_pread_way,
        "runai": runai_way}


def bytes_of(tensor):
    return memoryview(tensor.reshape(-1).view(torch.uint8).numpy())


def main():
    way, *paths = sys.argv[1:]
    load, version = WAYS[way]()
    begin = time.monotonic()
    tensors = load(paths)
    seconds = time.monotonic() - begin
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(bytes_of(tensors[name]), zlib.crc32(name.encode(), checksum))
    print(json.dumps({"time_us": seconds * 1e6, "tensors": len(tensors), "checksum": checksum,
                      "version": version}))


if __name__ == "__main__":
    main()
