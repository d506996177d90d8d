"""Loads a checkpoint in turns by Sluice and by Run:ai's streamer, from a store on this machine.

usage: s3_loads.py [--bytes 1073741824] [--latency-ms 20] [--rounds 7]

The store speaks S3 over HTTP, and begins each answer after the latency. Environment: PyTorch, the
package, runai-model-streamer and runai-model-streamer-s3. Each load is into new memory of this
process, and all elements are compared. `sluice-small` has a budget of few pieces, so that latency
bounds the load. `plain` has as many threads as that budget has slots, and each of them asks for one
piece after the other, of the same size, and drops its bytes. Prints JSON: a row for each way, with
its times and their ratio over Sluice's, or of `plain` over those of `sluice-small`.
"""
import argparse
import http.client
import json
import os
import pathlib
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing import Process, Queue

import torch

import sluice

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "figures"))
from rounds import rows_of, take_turns  # noqa: E402

FILES, SIDE = 4, 2048  # matrices of 4-byte elements
NAME = "model-{:05}-of-{:05}.safetensors"
SMALL = {"budget_bytes": 2304 << 10, "piece_bytes": 256 << 10}


def make(count):
    """{key: bytes} of the objects, and the tensors that they hold."""
    objects, tensors, index = {}, {}, {}
    for file in range(FILES):
        own = {f"layers.{i}.weight": torch.full((SIDE, SIDE), float(i), dtype=torch.float32)
               for i in range(file, count, FILES)}
        header, at = {}, 0
        for name, one in own.items():
            header[name] = {"dtype": "F32", "shape": list(one.shape),
                            "data_offsets": [at, at + one.nbytes]}
            at += one.nbytes
        text = json.dumps(header).encode()
        text += b" " * (-len(text) % 8)
        key = "model/" + NAME.format(file + 1, FILES)
        objects[key] = b"".join([len(text).to_bytes(8, "little"), text,
                                 *(one.numpy().tobytes() for one in own.values())])
        index.update(dict.fromkeys(own, NAME.format(file + 1, FILES)))
        tensors.update(own)
    objects["model/model.safetensors.index.json"] = json.dumps({"weight_map": index}).encode()
    return objects, tensors


class Handler(BaseHTTPRequestHandler):
    """GET and HEAD of objects, whole or a range, as S3 answers them. Signatures are not checked."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(False)

    def do_GET(self):
        self.answer(True)

    def answer(self, has_body):
        time.sleep(self.server.latency)
        key = self.path.partition("?")[0].partition("/bucket/")[2]  # also of a target with a host
        file, size = self.server.objects.get(key, (-1, 0))
        if file < 0:
            self.send_response(404)
            self.send_header("Content-Length", "0")
            return self.end_headers()
        begin, end = 0, size
        if asked := self.headers.get("Range"):
            first, last = asked.removeprefix("bytes=").split("-")
            begin, end = int(first), min(size, int(last) + 1 if last else size)
        self.send_response(206 if asked else 200)
        self.send_header("Content-Length", str(end - begin))
        self.send_header("ETag", f'"{file}"')
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Last-Modified", "Mon, 02 Nov 2026 00:00:00 GMT")
        if asked:
            self.send_header("Content-Range", f"bytes {begin}-{end - 1}/{size}")
        self.end_headers()
        self.wfile.flush()
        while has_body and begin < end:  # without the interpreter's lock
            begin += os.sendfile(self.connection.fileno(), file, begin, end - begin)


class Store(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True

    def handle_error(self, *_):
        """Clients close connections amid an answer."""


def serve(objects, latency, port):
    with Store(("127.0.0.1", 0), Handler) as store:
        store.latency = latency
        store.objects = {}
        for key, data in objects.items():
            file = os.memfd_create(key.replace("/", "-"))
            with open(file, "wb", closefd=False) as whole:
                whole.write(data)
            store.objects[key] = (file, len(data))
        port.put(store.server_port)
        store.serve_forever()


def by_sluice(session, tensors, **options):
    mine = {name: torch.empty_like(one) for name, one in tensors.items()}
    stats = session.load("s3://bucket/model/", mine, progress=False, **options)
    return mine, stats["slots_max"]


def by_runai():
    from runai_model_streamer import SafetensorsStreamer
    with SafetensorsStreamer() as streamer:
        streamer.stream_files([f"s3://bucket/model/{NAME.format(i + 1, FILES)}"
                               for i in range(FILES)])
        return dict(streamer.get_tensors())


def by_plain(port, files, threads):
    """How long the bytes of all files take so."""
    piece = SMALL["piece_bytes"]
    pieces = iter([(name, at, min(at + piece, size) - 1) for name, size in files
                   for at in range(0, size, piece)])
    lock = threading.Lock()

    def ask():
        connection, memory = http.client.HTTPConnection("127.0.0.1", port), bytearray(piece)
        while True:
            with lock:
                name, first, last = next(pieces, (None, 0, 0))
            if name is None:
                return
            connection.request("GET", f"/bucket/{name}", headers={"Range": f"bytes={first}-{last}"})
            answer = connection.getresponse()
            while answer.readinto(memory):
                pass

    asking = [threading.Thread(target=ask) for _ in range(threads)]
    for one in asking:
        one.start()
    for one in asking:
        one.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1 << 30)
    parser.add_argument("--latency-ms", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    objects, tensors = make(max(FILES, options.bytes // (SIDE * SIDE * 4)))
    ports = Queue()
    store = Process(target=serve, args=(objects, options.latency_ms * 1e-3, ports), daemon=True)
    store.start()
    port = ports.get()
    os.environ.update(AWS_ACCESS_KEY_ID="key", AWS_SECRET_ACCESS_KEY="secret",
                      AWS_REGION="eu-test-1", AWS_DEFAULT_REGION="eu-test-1",
                      AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}")
    files = [(key, len(data)) for key, data in objects.items() if key.endswith("safetensors")]
    del objects
    with sluice.Session.local() as session:
        slots = by_sluice(session, tensors, **SMALL)[1]
        ways = {"sluice": lambda: by_sluice(session, tensors)[0],
                "sluice-small": lambda: by_sluice(session, tensors, **SMALL)[0],
                "plain": lambda: by_plain(port, files, slots), "runai": by_runai}
        def turn(way):
            begin = time.perf_counter()
            found = ways[way]()
            spent = time.perf_counter() - begin
            if found and not all(torch.equal(found[name], one) for name, one in tensors.items()):
                raise SystemExit(f"s3_loads.py: {way} has wrong elements")
            return {way: {"time_us": spent * 1e6}}

        [(case, of_rounds)] = take_turns(options.rounds + 1, [{}],
                                         lambda: [lambda way=way: turn(way) for way in ways])
    found = [(case, of_rounds[1:])]  # the first one is to warm up
    print(json.dumps({
        "bytes": sum(one.nbytes for one in tensors.values()), "slots": slots, "rows": rows_of(
            found, lambda way: "sluice-small" if way == "plain" else "sluice")}))
    store.terminate()


if __name__ == "__main__":
    main()
