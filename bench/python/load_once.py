"""Loads a checkpoint once into new memory of this process, and prints what came of it.

usage: load_once.py WAY FILE...    in an environment that has the way's library, and PyTorch

WAY is sluice-file, sluice-buffered or sluice-mmap (of Session.load), safetensors (load_file, and a
clone of each tensor, as its tensors are else maps of the file), safetensors-pread (which reads into
memory, so that nothing is cloned), safe-open (a clone of each tensor; of NumPy's without PyTorch)
or runai (Run:ai's streamer). The last line of the output is JSON: the time, the library's version,
and a checksum over all tensors by name. The time is from the call to the last tensor in memory:
Sluice's makes the tensors and the session, too. Imports and the checksum are not in the time.
"""
import importlib.metadata
import json
import os
import struct
import sys
import time
import zlib

try:
    import torch
except ImportError:
    torch = None


def header(path):
    with open(path, "rb") as file:
        length, = struct.unpack("<Q", file.read(8))
        entries = json.loads(file.read(length))
    entries.pop("__metadata__", None)
    for entry in entries.values():
        entry["data_offsets"] = [8 + length + at for at in entry["data_offsets"]]  # in the file
    return entries


def sluice_way(scheme):
    import sluice
    dtypes = {"BF16": torch.bfloat16, "F32": torch.float32}
    make_session = sluice.Session.from_exchange  # imports what sessions need

    def load(paths):
        tensors = {name: torch.empty(entry["shape"], dtype=dtypes[entry["dtype"]])
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


def safe_open_way():
    from safetensors import safe_open

    def load(paths):
        tensors = {}
        for path in paths:
            with safe_open(path, framework="pt" if torch else "np") as file:
                for name in file.keys():
                    tensor = file.get_tensor(name)
                    tensors[name] = tensor.clone() if torch else tensor  # NumPy's is a copy already
        return tensors
    return load, importlib.metadata.version("safetensors")


def runai_way():
    from runai_model_streamer import SafetensorsStreamer

    def load(paths):
        with SafetensorsStreamer() as streamer:
            streamer.stream_files(paths)
            return dict(streamer.get_tensors())  # which are the caller's to keep
    return load, importlib.metadata.version("runai-model-streamer")


WAYS = {**{f"sluice-{scheme}": lambda scheme=scheme: sluice_way(scheme)
           for scheme in ("file", "buffered", "mmap")},
        "safetensors": safetensors_way, "safetensors-pread": safetensors_pread_way,
        "safe-open": safe_open_way, "runai": runai_way}


def bytes_of(tensor):
    if torch is not None:  # NumPy lacks bfloat16
        tensor = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(tensor).cast("B")


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
