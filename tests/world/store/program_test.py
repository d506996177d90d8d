#!/usr/bin/env python3
"""sluice-store: what it prints, refuses and ends with.

  program_test.py SLUICE_STORE
"""
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts/nodes"))
import job_limit  # noqa: E402  (of scripts/nodes)
import spawn  # noqa: E402

PROGRAM = sys.argv[1]


def refused(*flags, code=2):
    """Its words on stderr. It has ended with `code`."""
    done = job_limit.run([PROGRAM, *flags], capture_output=True, text=True)
    assert done.returncode == code and not done.stdout, done
    assert done.stderr.startswith("sluice-store: ") and done.stderr.count("\n") == 1, done
    return done.stderr


def serves(ends_by, *flags):
    with job_limit.limited("sluice-store"), subprocess.Popen(
            [PROGRAM, *flags], stdout=subprocess.PIPE, text=True) as server:
        try:
            line = server.stdout.readline()
            found = re.fullmatch(r"listening on tcp://([\w.]+):(\d+)\n", line)
            assert found, line
            port = int(found[2])
            with socket.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
                while stranger.recv(4096):
                    pass
            server.send_signal(ends_by)
            assert server.stdout.read() == ""
            assert server.wait() == 0
        finally:
            server.kill()
    return found[1], port


def main():
    job_limit.hear_ctrl_c()
    text = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True).stdout
    for flag in ("--bind", "--port", "--token-file", "Exit codes: 0 "):
        assert flag in text, text
    assert subprocess.run([PROGRAM, "--version"], capture_output=True, text=True,
                          check=True).stdout.startswith("sluice-store ")
    assert serves(signal.SIGTERM)[0] == "127.0.0.1"
    with spawn.reserve_port() as kept:
        host, port = kept.getsockname()
        # Decimal, not octal, with zeros before the number, too.
        assert serves(signal.SIGINT, "--port", f"0{port}") == (host, port)
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = str(other.getsockname()[1])
        assert "Address already in use" in refused("--port", taken, code=1)
    assert "takes a token" in refused("--bind", "0.0.0.0", code=1)
    assert "--port" in refused("--port", "70000")
    assert "--wash" in refused("--wash")
    assert "cannot read the token" in refused("--token-file", "/none")
    with tempfile.TemporaryDirectory(prefix="sluice-store-") as folder:
        token = pathlib.Path(folder) / "token"
        token.write_text("\n", encoding="utf-8")
        token.chmod(0o644)
        open_to_others = subprocess.run([PROGRAM, "--token-file", os.fspath(token)], check=False,
                                        capture_output=True, text=True).stderr
        assert "other users may read the token" in open_to_others, open_to_others
        token.chmod(0o600)
        assert "holds no token" in refused("--token-file", os.fspath(token))
        token.write_text("x" * 4097, encoding="utf-8")
        assert "more than 4096 bytes" in refused("--token-file", os.fspath(token))
        token.write_bytes(b"secret\0\n")
        assert "zero byte" in refused("--token-file", os.fspath(token))
        pipe = pathlib.Path(folder) / "pipe"
        os.mkfifo(pipe)
        assert "no regular file" in refused("--token-file", os.fspath(pipe))
        token.write_text("secret\n", encoding="utf-8")
        host, _ = serves(signal.SIGTERM, "--bind", "", "--token-file", os.fspath(token))
        assert host == "0.0.0.0"


if __name__ == "__main__":
    main()
