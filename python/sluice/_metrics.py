"""A session's counters for Prometheus."""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from threading import Thread
from typing import TYPE_CHECKING, Any

from ._errors import InvalidSpec
from ._sluice import version

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
        """Ends the serving. Thread: any."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Exporter:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.close()


def prometheus(session: Session, port: int = 9400, host: str = "127.0.0.1") -> Exporter:
    """Serves `session.metrics()` at http://HOST:PORT/metrics, from a thread of its own.

    Runs are counted up to the request. The session's thread reads the other counters at the end of
    each run; `sluice_metrics_age_seconds` says how old they are. `port`: 0 takes any free one.
    `host`: "" is all interfaces. Thread: the session's.

    InvalidSpec: the address cannot be bound.
    """
    # Takes longer to import than the rest of the package.
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    session._exported = True
    session.metrics()
    role = session.members[session.rank].role if session.members else ""
    there = weakref.ref(session)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = there()
            if known is None or self.path.split("?")[0] not in ("/", "/metrics"):
                self.send_error(404)
                return
            metrics = {**known._snapshot, **known._counted()}
            body = render(metrics, time.monotonic() - known._snapshot_time, role).encode()
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


#: Of each metric its name behind "sluice_", its kind, and what it says.
_METRICS = {
    "runs": ("runs_total", "counter", "Runs that have ended."),
    "run_seconds": ("run_seconds_total", "counter", "Seconds from starts of runs to their ends."),
    "runs_in_flight": ("runs_in_flight", "gauge", "Runs that have begun and have not ended."),
    "sent_bytes": ("sent_bytes_total", "counter", "Bytes that runs have sent to other ranks."),
    "received_bytes": ("received_bytes_total", "counter", "Bytes that runs have brought here."),
    "buckets_finished": ("buckets_total", "counter", "Buckets that are done."),
    "waited_for_channel": ("waited_for_channel_total", "counter", "Waits for a channel."),
    "waited_for_budget": ("waited_for_budget_total", "counter", "Waits for the budget."),
    "running": ("running_seconds_total", "counter", "Seconds in which something was under way."),
    "budget_wait": ("budget_wait_seconds_total", "counter", "Seconds with a full budget."),
    "buckets_peak": ("buckets_peak", "gauge", "The most buckets at once."),
    "staging_bytes_peak": ("staging_bytes_peak", "gauge", "The most bytes of staging at once."),
    "operations_peak": ("operations_peak", "gauge", "The most messages and copies at once."),
    "size": ("size", "gauge", "Ranks of the session."),
    "epoch": ("epoch", "gauge", "The epoch of the world."),
    "age": ("metrics_age_seconds", "gauge", "Seconds since the counters were read."),
}


def render(metrics: Mapping[str, Any], age: float, role: str = "") -> str:
    """The counters as Prometheus reads them."""
    rank = f'rank="{metrics["rank"]}"'
    lines = ["# HELP sluice_info The version of Sluice, and the role in a world.",
             "# TYPE sluice_info gauge",
             f'sluice_info{{{rank},role="{role}",version="{version()}"}} 1']
    for key, (name, kind, text) in _METRICS.items():
        value = round(age, 3) if key == "age" else metrics[key]
        lines += [f"# HELP sluice_{name} {text}", f"# TYPE sluice_{name} {kind}",
                  f"sluice_{name}{{{rank}}} {value}"]
    return "\n".join(lines) + "\n"
