"""Strangers for chaos.py: connections to ports of a job from whoever has no business there."""
import os
import pathlib
import random
import re
import socket
import struct
import threading

PATIENCE_S = 1.5  # of a stranger, with those that do not answer


def ports_of(pid):
    """The TCP ports at which a process listens."""
    inodes = set()
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                found = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"/proc/{pid}/fd/{name}"))
            except OSError:
                continue
            if found:
                inodes.add(found[1])
    except OSError:
        return []
    ports = []
    for table in ("tcp", "tcp6"):
        try:
            lines = pathlib.Path("/proc/net", table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for words in map(str.split, lines):
            if words[3] == "0A" and words[9] in inodes:
                ports.append(int(words[1].rpartition(":")[2], 16))
    return ports


class Stranger(threading.Thread):
    """One of them, at one port. It ends by itself."""

    def __init__(self, kind, host, port, seed):
        super().__init__(daemon=True)
        self.kind = kind
        self.host = host
        self.port = port
        self.rng = random.Random(seed)

    def run(self):
        try:
            self.act()
        except OSError:
            pass  # it was shown the door

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=PATIENCE_S)

    def act(self):
        if self.kind == "crowd":
            crowd = [self.connect() for _ in range(30)]
            threading.Event().wait(PATIENCE_S / 2)
            for one in crowd:
                one.close()
            return
        with self.connect() as link:
            if self.kind == "silent":
                threading.Event().wait(PATIENCE_S)
            elif self.kind == "reset":
                link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif self.kind == "echo":
                for _ in range(3):
                    link.sendall(link.recv(4096) or self.rng.randbytes(40))
            else:
                link.sendall({"garbage": self.rng.randbytes(self.rng.randint(1, 5000)),
                              "zeros": bytes(1 << 16), "ones": b"\xff" * 64,
                              "http": b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"}[self.kind])
                while link.recv(4096):
                    pass
