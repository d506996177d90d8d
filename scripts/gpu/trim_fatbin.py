#!/usr/bin/env python3
"""Keeps one architecture's machine code of a library with CUDA kernels.

All other entries of its fat binaries become zeros, which compress to nothing; offsets stay. The
layout of those entries is as seen in libraries of nvcc 12 and 13: NVIDIA does not document it.
"""
import argparse
import mmap
import shutil
import struct
import sys

CONTAINER = struct.Struct("<IHHQ")  # magic, version, header bytes, bytes behind the header
ENTRY = struct.Struct("<HHIQ")      # kind, version, header bytes, bytes behind the header
MAGIC = 0xBA55ED50
KINDS = (1, 2, 16, 64)              # PTX, machine code, and what newer ones add
MACHINE_CODE = 2
ARCHITECTURE_AT = 28                # bytes from an entry's begin


def entries(library, begin, end):
    """(kind, architecture, where its body begins, its bytes) of each entry."""
    while begin < end:
        kind, _, header, body = ENTRY.unpack_from(library, begin)
        if kind not in KINDS:
            return
        architecture, = struct.unpack_from("<I", library, begin + ARCHITECTURE_AT)
        yield kind, architecture, begin + header, body
        begin += header + body


def trim(library, keep):
    """Returns how many bytes were kept, and how many are zero now."""
    kept = zeroed = 0
    at = library.find(MAGIC.to_bytes(4, "little"))
    while at >= 0:
        _, version, header, body = CONTAINER.unpack_from(library, at)
        end = at + header + body
        if version != 1 or header != CONTAINER.size or end > len(library):
            at = library.find(MAGIC.to_bytes(4, "little"), at + 4)
            continue
        for kind, architecture, begin, size in entries(library, at + header, end):
            if kind == MACHINE_CODE and architecture == keep:
                kept += size
            else:
                library[begin:begin + size] = bytes(size)
                zeroed += size
        at = library.find(MAGIC.to_bytes(4, "little"), end)
    return kept, zeroed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
    parser.add_argument("source")
    parser.add_argument("target")
    parser.add_argument("architecture", type=int, help="90 for sm_90")
    args = parser.parse_args()
    shutil.copyfile(args.source, args.target)
    with open(args.target, "r+b") as file, mmap.mmap(file.fileno(), 0) as library:
        kept, zeroed = trim(library, args.architecture)
    print(f"{args.target}: kept {kept / 1e6:.1f} MB of sm_{args.architecture}, "
          f"{zeroed / 1e6:.1f} MB are zero")
    if kept == 0:
        print(f"there is no code of sm_{args.architecture} in {args.source}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
