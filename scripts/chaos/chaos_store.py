"""The store of a random world: a sluice-store of its own, which ends and comes again."""
import pathlib
import secrets
import signal
import socket
import subprocess


def hosts():
    """The loopback addresses of this host, of which a world draws one."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return ["127.0.0.1"]
    return ["127.0.0.1", "::1"]


class StoreProcess:
    """It listens at `port` of `host`, which stays the same when it comes again."""

    def __init__(self, programs, folder, log, port=0, host="127.0.0.1"):
        self.host = host
        self.program = str(pathlib.Path(programs, "sluice-store"))
        self.log = log
        self.port = port
        self.token = secrets.token_hex(8)
        self.token_file = pathlib.Path(folder, "token")
        self.token_file.write_text(self.token, encoding="ascii")
        self.process = None

    def start(self):
        self.process = subprocess.Popen(
            [self.program, "--bind", self.host, "--port", str(self.port), "--token-file",
             str(self.token_file)],
            stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on "):
            raise RuntimeError(f"sluice-store does not start at port {self.port}: {line}")
        self.port = int(line.rpartition(":")[2])

    def url(self):
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"tcp://{host}:{self.port}"

    def is_there(self):
        return self.process is not None

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            self.process = None
