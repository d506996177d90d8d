"""Runs a program to its end and measures its time, its processor time and its memory."""
import os
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass

POLL_S = 0.005


@dataclass
class Finished:
    """What a process came to. Processor time includes that of children it has waited for."""
    output: str
    wall_s: float
    cpu_s: float
    peak_bytes: int = 0


def run(command, timeout_s=600, watch_memory=False, env=None):
    """Raises RuntimeError with the output if the exit code is not 0."""
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        process = subprocess.Popen([str(part) for part in command], stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT,
                                   env=dict(os.environ, no_proxy="127.0.0.1", **(env or {})))
        timer = threading.Timer(timeout_s, process.kill)
        timer.start()
        watcher = _MemoryWatcher(process.pid) if watch_memory else None
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            raise
        finally:
            timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        wall_s = time.monotonic() - begin
        output.seek(0)
        text = output.read().decode(errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"exit code {process.returncode} of {command}:\n{text}")
    return Finished(text, wall_s, usage.ru_utime + usage.ru_stime,
                    watcher.peak_bytes() if watcher else 0)


class _MemoryWatcher:
    """Reads a process's peak of resident memory until it ends. (That of getrusage would begin with
    this program's own, from before the exec.)"""

    def __init__(self, pid):
        self._path = f"/proc/{pid}/status"
        self._peak_kib = 0
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def peak_bytes(self):
        self._thread.join()
        return self._peak_kib * 1024

    def _watch(self):
        while True:
            try:
                with open(self._path, encoding="ascii") as status:
                    found = [line for line in status if line.startswith("VmHWM:")]
            except (FileNotFoundError, ProcessLookupError):
                return
            if found:
                # The program itself sets its peak back.
                self._peak_kib = max(self._peak_kib, int(found[0].split()[1]))
            elif self._peak_kib > 0:
                return  # it has ended and waits to be collected
            time.sleep(POLL_S)
