"""A session's counters for Prometheus."""

from __future__ import annotations

import re
import time
import weakref
from threading import Thread
from typing import TYPE_CHECKING, Any

from ._errors import InvalidSpec

if TYPE_CHECKING:
    from http.server import ThreadingHTTPServer

    from ._session import Session


class Exporter:
    """Serves a session's counters until `close`, or until the process ends."""

    def __init__(self, server: ThreadingHTTPServer) -> None:
        self._server = server
        self._thread = Thread(target=server.serve_forever, name="sluice-prometheus", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()


def prometheus(session: Session, port: int = 9400, host: str = "127.0.0.1") -> Exporter:
    """Serves `session.metrics()` at http://HOST:PORT/metrics, from a thread of its own.

    A session's counters belong to its thread. So what is served was read by `metrics`, or when a
    run ended, about once a second. `sluice_metrics_age_seconds` says how old it is. `port`: 0 takes
    any free one. `host`: "" is all interfaces. Thread: the session's.

    InvalidSpec: the address cannot be bound.
    """
    # Takes longer to import than the rest of the package.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    session.metrics()
    there = weakref.ref(session)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = there()
            if known is None or self.path.split("?")[0] not in ("/", "/metrics"):
                self.send_error(404)
                return
            body = render(known._snapshot, time.monotonic() - known._snapshot_time).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        raise InvalidSpec(f"cannot serve metrics at {host}:{port}: {error}") from error
    return Exporter(server)


def render(metrics: dict[str, Any], age: float) -> str:
    """The counters as Prometheus reads them."""
    labels = f'rank="{metrics.get("rank", 0)}"'
    lines = []
    for name, value in sorted({**metrics, "metrics_age_seconds": round(age, 3)}.items()):
        if isinstance(value, (int, float)) and name != "rank":
            metric = "sluice_" + re.sub(r"[^a-zA-Z0-9_]", "_", name)
            lines += [f"# TYPE {metric} gauge", f"{metric}{{{labels}}} {float(value):g}"]
    return "\n".join(lines) + "\n"
