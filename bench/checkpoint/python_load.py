#!/ usr / bin / env python3
"""Loads a checkpoint once, the way that a Python library does it, and prints what came of it.

  python_load.py WAY FILE...        in an environment that has the library

WAY is safetensors (every tensor cloned, so that it is in memory and not a map of the file) or runai
(Run:ai's streamer). The last line of the output is JSON: the time, the library's version, and a
checksum over all tensors by name. Importing the library and the checksum are not in the time.
"""
import importlib.metadata
import json
import sys
import time
import zlib


def safetensors_way():
    from safetensors import safe_open
    try:
        import torch  # noqa: F401
        framework, keep = "pt", lambda tensor: tensor.clone()
    except ImportError:
        framework, keep = "np", lambda tensor: tensor  # a copy already

    def load(paths):
        tensors = {}
        for path in paths:
            with safe_open(path, framework=framework) as file:
                for name in file.keys():
                    tensors[name] = keep(file.get_tensor(name))
        return tensors
    return load, "safetensors"


def runai_way():
    from runai_model_streamer import SafetensorsStreamer

    def load(paths):
        with SafetensorsStreamer() as streamer:
            streamer.stream_files(paths)
            return dict(streamer.get_tensors())  # which are the caller's to keep
    return load, "runai-model-streamer"


def bytes_of(tensor):
    if hasattr(tensor, "numpy"):  # torch, whose bfloat16 numpy lacks
        import torch
        tensor = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(tensor).cast("B")


def main():
    way, *paths = sys.argv[1:]
    load, package = {"safetensors": safetensors_way, "runai": runai_way}[way]()
    begin = time.monotonic()
    tensors = load(paths)
    seconds = time.monotonic() - begin
    checksum = 0
    for name in sorted(tensors):
        checksum = zlib.crc32(bytes_of(tensors[name]), zlib.crc32(name.encode(), checksum))
    print(json.dumps({"time_us": seconds * 1e6, "tensors": len(tensors), "checksum": checksum,
                      "version": importlib.metadata.version(package)}))


if __name__ == "__main__":
    main()
