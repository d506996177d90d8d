"""A store that speaks S3, for tests: it checks each signature by itself, and misbehaves when told.

    with S3Server() as server:
        server.objects["bucket", "key"] = b"bytes"
        session.load("s3://bucket/", state, s3_endpoint=server.url)
"""

from __future__ import annotations

import hashlib
import hmac
import threading
import time
from collections.abc import Callable
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

_SKEW_SECONDS = 900


def _hmac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def encoded(text: str, safe: str = "") -> str:
    return quote(text, safe=f"-_.~{safe}")


class Refused(Exception):
    def __init__(self, status: int, code: str, more: str = "", **headers: str) -> None:
        super().__init__(code)
        self.status, self.code, self.more, self.headers = status, code, more, headers


class S3Server:
    """Objects by bucket and key. Everything public may be changed while it serves."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], bytes] = {}
        self.region = "eu-test-7"
        self.access_key, self.secret_key = "AKIDPUBLIC7Q", "sEcReT/k3y+0123456789"
        self.token = ""  # that requests need; empty: none
        self.is_public = False  # requests need no signature
        self.may_list = True
        self.page = 1000  # objects of one page of a listing
        self.busy = 0  # so many requests are answered with SlowDown first
        self.moved_to = ""  # a region to which requests are redirected
        self.skew = 0.0  # of the clock, in seconds
        self.version = 0  # in ETags
        self.before: Callable[[], None] = lambda: None  # called before each request
        self.requests: list[tuple[str, dict[str, str], int]] = []  # path, headers, status
        self.lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.store = self

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> S3Server:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def etag(self, key: tuple[str, str]) -> str:
        """As of an upload in parts: no MD5 of the bytes."""
        return f'"{hashlib.md5(repr((key, self.version)).encode()).hexdigest()}-2"'

    def check(self, path: str, query: str, headers: dict[str, str]) -> None:
        """Refuses what is not signed as it has to be."""
        kind, _, text = headers.get("authorization", "").partition(" ")
        if not kind:
            if self.is_public:
                return
            raise Refused(403, "AccessDenied")
        fields = dict(field.strip().split("=", 1) for field in text.split(","))
        key, date, region, *scope = fields["Credential"].split("/")
        signed = fields["SignedHeaders"].split(";")
        needed = {"host", "x-amz-content-sha256", "x-amz-date"} | (
            {"x-amz-security-token"} & headers.keys())
        # Proxies change Accept-Encoding: nobody may sign it.
        fits = (signed == sorted(signed) and needed <= set(signed)
                and "accept-encoding" not in signed)
        if kind != "AWS4-HMAC-SHA256" or scope != ["s3", "aws4_request"] or not fits:
            raise Refused(400, "AuthorizationHeaderMalformed", f"<was>{text}</was>")
        if key != self.access_key:
            raise Refused(403, "InvalidAccessKeyId", f"<AWSAccessKeyId>{key}</AWSAccessKeyId>")
        if region != self.region:
            raise Refused(400, "AuthorizationHeaderMalformed", f"<Region>{self.region}</Region>")
        stamp = headers["x-amz-date"]
        sent = datetime.strptime(stamp, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc).timestamp()
        if abs(time.time() + self.skew - sent) > _SKEW_SECONDS:
            raise Refused(403, "RequestTimeTooSkewed")
        pairs = sorted((encoded(name), encoded(value))
                       for name, value in parse_qsl(query, keep_blank_values=True))
        canonical = "\n".join([
            "GET", encoded(unquote(path), "/"),
            "&".join(f"{name}={value}" for name, value in pairs),
            *(f"{name}:{' '.join(headers[name].split())}" for name in signed), "",
            ";".join(signed), headers["x-amz-content-sha256"]])
        to_sign = "\n".join([kind, stamp, "/".join([date, region, *scope]),
                             hashlib.sha256(canonical.encode()).hexdigest()])
        secret = f"AWS4{self.secret_key}".encode()
        for part in (date, region, *scope):
            secret = _hmac(secret, part)
        if not hmac.compare_digest(_hmac(secret, to_sign).hex(), fields["Signature"]):
            raise Refused(403, "SignatureDoesNotMatch",
                          f"<SignatureProvided>{fields['Signature']}</SignatureProvided>"
                          f"<StringToSign>{to_sign}</StringToSign>")
        if self.token and headers.get("x-amz-security-token") != self.token:
            raise Refused(400, "ExpiredToken", f"<Token-0>{text}</Token-0>")

    def listing(self, bucket: str, query: dict[str, str]) -> str:
        if not self.may_list:
            raise Refused(403, "AccessDenied")
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys = sorted(key for own, key in self.objects if own == bucket and key.startswith(prefix)
                      and not (delimiter and delimiter in key[len(prefix):]))
        if not any(own == bucket for own, _ in self.objects):
            raise Refused(404, "NoSuchBucket")
        token = query.get("continuation-token", "at=/+ 0")
        begin = int(token.removeprefix("at=/+ "))
        end = begin + min(self.page, int(query["max-keys"]))
        found = "".join(f"<Contents><Key>{escape(key)}</Key>"
                        f"<Size>{len(self.objects[bucket, key])}</Size></Contents>"
                        for key in keys[begin:end])
        more = end < len(keys)
        then = f"<NextContinuationToken>at=/+ {end}</NextContinuationToken>" if more else ""
        return (f'<?xml version="1.0"?><ListBucketResult xmlns="x"><Name>{bucket}</Name>{found}'
                f"<IsTruncated>{str(more).lower()}</IsTruncated>{then}</ListBucketResult>")


class _Server(ThreadingHTTPServer):
    request_queue_size = 256  # connections that are made at once
    daemon_threads = True
    store: S3Server

    def handle_error(self, *_: Any) -> None:
        """Clients close connections amid an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        store = self.server.store
        headers = {name.lower(): value for name, value in self.headers.items()}
        path, _, query = self.path.partition("?")
        with store.lock:
            store.before()
            try:
                status, body, more = self.answer(store, path, query, headers)
            except Refused as refused:
                status, more = refused.status, refused.headers
                body = (f"<Error><Code>{refused.code}</Code><Message>{refused.code} "
                        f"{headers.get('authorization', '')}</Message>{refused.more}"
                        "</Error>").encode()
            store.requests.append((self.path, headers, status))
        self.send_response(status)
        for name, value in {**more, "Content-Length": str(len(body))}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    @staticmethod
    def answer(store: S3Server, path: str, query: str,
               headers: dict[str, str]) -> tuple[int, bytes, dict[str, str]]:
        if store.busy > 0:
            store.busy -= 1
            raise Refused(503, "SlowDown")
        if store.moved_to:
            raise Refused(301, "PermanentRedirect", x_amz_bucket_region=store.moved_to,
                          Location="http://127.0.0.1:1/elsewhere")
        store.check(path, query, headers)
        bucket, _, key = unquote(path)[1:].partition("/")
        if not key:
            page = store.listing(bucket, dict(parse_qsl(query, keep_blank_values=True)))
            return 200, page.encode(), {}
        data = store.objects.get((bucket, key))
        if data is None:
            raise Refused(*((404, "NoSuchKey") if store.may_list else (403, "AccessDenied")))
        etag = store.etag((bucket, key))
        if headers.get("if-match", etag) != etag:
            raise Refused(412, "PreconditionFailed")
        if "range" not in headers:
            return 200, data, {"ETag": etag}
        begin, end = map(int, headers["range"].removeprefix("bytes=").split("-"))
        if begin >= len(data):
            raise Refused(416, "InvalidRange")
        end = min(end, len(data) - 1)
        return 206, data[begin:end + 1], {
            "ETag": etag, "Content-Range": f"bytes {begin}-{end}/{len(data)}"}
