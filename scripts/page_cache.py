"""Puts files into the page cache, or out of it."""
import os


def put(file, case):
    """`file`: open for reading in binary. `case`: "warm", or "cold", which is advice alone."""
    if case == "cold":
        os.fdatasync(file.fileno())  # pages that are to be written stay
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    else:
        while file.read(1 << 22):
            pass
