"""Checkpoints and streams from stores of S3: signatures, listings, errors, keys that end."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sluice
from ranks import error_of, ranks_end, run_ranks
from s3_server import S3Server

ODD = "mödel s+~%41/ü&<1>"  # a prefix that has to be escaped in each way there is
_VARIABLES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
              "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[S3Server]:
    """A store, whose keys are in the environment."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with S3Server() as store:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", store.access_key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", store.secret_key)
        monkeypatch.setenv("AWS_REGION", store.region)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", store.url)
        yield store


def state(value: float = 1.0) -> dict[str, Any]:
    return {f"layers.{i}.w": np.arange(12_000, dtype=np.float32).reshape(120, 100) * value + i
            for i in range(4)}


def put(server: S3Server, folder: Path, prefix: str, names: dict[str, str] | None = None) -> None:
    """The files of a folder, under other names where `names` says so."""
    for path in folder.iterdir():
        key = (names or {}).get(path.name, path.name)
        server.objects["bucket", f"{prefix}/{key}"] = path.read_bytes()


def put_checkpoint(session: sluice.Session, server: S3Server, tmp_path: Path,
                   prefix: str = "model", names: dict[str, str] | None = None,
                   **options: Any) -> None:
    session.save(tmp_path / "saved", state(), progress=False, **options)
    put(server, tmp_path / "saved", prefix, names)


def loaded(session: sluice.Session, uri: str = "s3://bucket/model", **options: Any) -> bool:
    """Whether a load brings each byte."""
    found = state(0)
    session.load(uri, found, progress=False, backoff=0.001, **options)
    return all((found[name] == array).all() for name, array in state().items())


def failed(session: sluice.Session, server: S3Server, kind: type[Exception] = sluice.Error,
           uri: str = "s3://bucket/model", **options: Any) -> str:
    """What a load raises, which has no secret in it."""
    with pytest.raises(kind) as error:
        loaded(session, uri, **options)
    text = f"{error.value!r} {error.value} {vars(error.value)} {session.report()}"
    check_no_secret(server, text)
    return str(error.value)


def check_no_secret(server: S3Server, text: str) -> None:
    secrets = [server.access_key, server.secret_key, server.token]
    for _, headers, _ in server.requests:
        secrets.append(headers.get("authorization", "").rpartition("Signature=")[2])
    assert server.requests and [one for one in secrets if one and one in text] == []


def rank_loads(session: sluice.Session, uri: str, folder: str) -> Any:
    layout = sluice.Layout(mesh=[0, 1], placements=[sluice.Shard(0)])
    own = {name: sluice.Tensor(name, shape=array.shape, dtype="f32", layout=layout,
                               view=np.zeros((60, 100), np.float32))
           for name, array in state().items()}
    with session.trace(f"{folder}/trace.json"):
        session.load(uri, list(own.values()), piece_bytes=4096)
    print(session.report(), session.metrics())
    half = slice(60 * session.rank, 60 * session.rank + 60)
    return [bool((own[name].view == array[half]).all()) for name, array in state().items()]


@pytest.mark.parametrize("shape", ["index", "file", "named", "listing"])
def test_checkpoint(session: sluice.Session, server: S3Server, tmp_path: Path, shape: str) -> None:
    options = {"shard_bytes_max": 100_000} if shape == "index" else {}
    names = {"model.safetensors": "wü 1+2~%.safetensors"} if shape == "listing" else {}
    put_checkpoint(session, server, tmp_path, ODD, names, **options)
    if shape == "listing":  # what does not count
        server.objects["bucket", f"{ODD}/"] = b""
        server.objects["bucket", f"{ODD}/.hidden.safetensors"] = b"?"
        server.objects["bucket", f"{ODD}/model-00001-of-00002.safetensors"] = b"?"
        server.objects["bucket", f"{ODD}/deep/other.safetensors"] = b"?"
        server.page = 2
    name = "/model.safetensors" if shape == "named" else ""
    assert loaded(session, f"s3://bucket/{ODD}{name}")
    assert run_ranks(2, rank_loads, f"s3://bucket/{ODD}{name}", str(tmp_path),
                     trace_events=1000) == [[True] * 4] * 2
    assert {status for *_, status in server.requests} <= {200, 206, 404}
    # Once a version is known, all requests are for it.
    ranges = [headers for _, headers, status in server.requests if status == 206]
    assert sum("if-match" in headers for headers in ranges) > len(ranges) / 2


def rank_streams(session: sluice.Session, uri: str) -> Any:
    with session.stream(uri, format="npy", first=0, step=1, budget_bytes=1 << 20) as stream:
        return [[batch.items[0], *batch.tensor[0][:2].tolist()] for batch in stream]


def test_stream(session: sluice.Session, server: S3Server, tmp_path: Path) -> None:
    items: Any = np.repeat(np.arange(30, dtype=np.uint8), 500).reshape(30, 500)
    for i in range(5):
        np.save(tmp_path / f"{i} +ü.npy", items[6 * i:6 * i + 6])
        file = (tmp_path / f"{i} +ü.npy").read_bytes()
        server.objects["bucket", f"{ODD}/{i} +ü.npy"] = file
    server.page = 2
    server.objects["bucket", f"{ODD}/note.txt"] = b"no array"
    wanted = [[i, i, i] for i in range(30)]
    assert rank_streams(session, f"s3://bucket/{ODD}/") == wanted
    assert run_ranks(2, rank_streams, f"s3://bucket/{ODD}") == [wanted] * 2
    assert {status for *_, status in server.requests} <= {200, 206}


def test_errors_have_the_code_of_the_store(
        session: sluice.Session, server: S3Server, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    put_checkpoint(session, server, tmp_path)
    assert "NoSuchBucket" in failed(session, server, uri="s3://other/model")
    assert "has no" in failed(session, server, uri="s3://bucket/none")
    assert "NoSuchKey" in failed(session, server, uri="s3://bucket/none/a.safetensors")
    with monkeypatch.context() as patch:
        patch.setenv("AWS_SECRET_ACCESS_KEY", "wRoNg+0123456789/sEcReT")
        text = failed(session, server)
        assert "SignatureDoesNotMatch; the secret key" in text and "wRoNg" not in text
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDOFNOBODY")
        text = failed(session, server)
        assert "InvalidAccessKeyId" in text and "AKIDOFNOBODY" not in text
    server.token = "t0K3n/of+today=="
    monkeypatch.setenv("AWS_SESSION_TOKEN", "t0K3n/of+yesterday==")
    text = failed(session, server)
    assert "ExpiredToken; the temporary keys have ended" in text and "yesterday" not in text
    monkeypatch.setenv("AWS_SESSION_TOKEN", server.token)
    assert loaded(session)
    server.skew = 4000
    assert "RequestTimeTooSkewed; the clock of this machine" in failed(session, server)


def test_the_right_region_is_named(session: sluice.Session, server: S3Server, tmp_path: Path,
                                   ) -> None:
    put_checkpoint(session, server, tmp_path)
    wrong = failed(session, server, s3_region="us-east-1")
    assert "AuthorizationHeaderMalformed; the bucket's region is eu-test-7" in wrong
    assert "made for us-east-1" in wrong
    server.moved_to = "ap-far-1"
    moved = failed(session, server)
    assert "PermanentRedirect; the bucket's region is ap-far-1" in moved and "301" in moved


def test_requests_that_are_not_signed(session: sluice.Session, server: S3Server, tmp_path: Path,
                                      monkeypatch: pytest.MonkeyPatch) -> None:
    put_checkpoint(session, server, tmp_path)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(sluice.Error, match="S3 credentials without an access key"):
        loaded(session)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert "AccessDenied; the request was not signed" in failed(session, server)
    server.is_public = True
    assert loaded(session)
    assert not any("authorization" in headers for _, headers, _ in server.requests)


def test_who_may_not_list_may_read(session: sluice.Session, server: S3Server, tmp_path: Path,
                                   ) -> None:
    put_checkpoint(session, server, tmp_path)
    server.may_list = False
    assert loaded(session)
    assert "AccessDenied" in failed(session, server, uri="s3://bucket/none")


def test_keys_of_a_profile(session: sluice.Session, server: S3Server, tmp_path: Path,
                           monkeypatch: pytest.MonkeyPatch) -> None:
    put_checkpoint(session, server, tmp_path)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL_S3"):
        monkeypatch.delenv(name)
    server.token = "t0K3n/of+a/profile=="
    (tmp_path / "credentials").write_text(
        f"[default]\naws_access_key_id = AKIDOTHER\naws_secret_access_key = other\n[ours]\n"
        f"aws_access_key_id={server.access_key}\naws_secret_access_key = {server.secret_key}\n"
        f"aws_session_token = {server.token}\n")
    (tmp_path / "config").write_text(f"[profile ours]\nregion = {server.region}\n"
                                     f"endpoint_url = {server.url}\n")
    monkeypatch.setenv("AWS_PROFILE", "ours")
    assert loaded(session)
    monkeypatch.setenv("AWS_PROFILE", "theirs")
    assert "$AWS_PROFILE is \"theirs\", which neither" in failed(session, server)


def test_a_busy_store_is_asked_again(session: sluice.Session, server: S3Server, tmp_path: Path,
                                     ) -> None:
    put_checkpoint(session, server, tmp_path)
    server.busy = 3
    assert loaded(session, attempts_max=4)
    before = len(server.requests)
    server.busy = 1000
    assert "gave up after 3 attempts" in failed(session, server, attempts_max=3)
    assert len(server.requests) == before + 3
    assert "SlowDown" in failed(session, server, attempts_max=1)


def test_an_object_that_is_replaced_meanwhile(session: sluice.Session, server: S3Server,
                                              tmp_path: Path) -> None:
    put_checkpoint(session, server, tmp_path)

    def rewrite() -> None:
        server.version = int(len(server.requests) > 6)

    server.before = rewrite
    assert "has changed" in failed(session, server, sluice.DataLoss, piece_bytes=4096)
    assert 412 in {status for *_, status in server.requests}


def test_keys_are_asked_for_shortly_before_their_end(session: sluice.Session, server: S3Server,
                                                     tmp_path: Path) -> None:
    put_checkpoint(session, server, tmp_path)
    asked: list[int] = []

    def keys_for(seconds: float, as_date: bool = False) -> Any:
        def keys() -> Any:
            asked.append(1)
            end = datetime.now(timezone.utc) + timedelta(seconds=seconds)
            return (server.access_key, server.secret_key, None,
                    end if as_date else time.time() + seconds)
        return keys

    readers = []
    for as_date in (False, True):
        asked.clear()
        assert loaded(session, s3_credentials=keys_for(3600, as_date), piece_bytes=4096)
        readers.append(len(asked))
    requests = len([path for path, *_ in server.requests])
    assert readers[0] == readers[1] < 8 < requests
    text = failed(session, server, s3_credentials=keys_for(-1))
    assert "S3 credentials that have already ended" in text


def test_the_store_says_that_keys_have_ended(session: sluice.Session, server: S3Server,
                                             tmp_path: Path) -> None:
    put_checkpoint(session, server, tmp_path)

    def rotate() -> None:
        server.token = f"t0K3n-{len(server.requests) // 10}"

    def keys() -> Any:
        return server.access_key, server.secret_key, server.token

    server.before = rotate
    assert loaded(session, s3_credentials=keys, piece_bytes=4096, connections=2)
    assert [status for *_, status in server.requests].count(400) >= 4
    server.before = lambda: None

    def stale() -> Any:
        return server.access_key, server.secret_key, "t0K3n-of-yesterday"

    text = failed(session, server, s3_credentials=stale, attempts_max=2)
    assert "ExpiredToken" in text and "yesterday" not in text


@pytest.mark.parametrize("returned, wanted", [
    (None, "it returned no (access key"), ("sEcReT", "it returned no (access key"),
    (("sEcReT", 7), "a key that is no str"), (("sEcReT", ""), "without a secret key"),
    (("k", "sEcReT\nX-Evil: 1"), "control characters"), (("k", "sEcReT", None, "soon"), "an end")])
def test_keys_that_are_none(session: sluice.Session, server: S3Server, returned: Any,
                            wanted: str) -> None:
    with pytest.raises(sluice.Error) as error:
        loaded(session, s3_credentials=lambda: returned)
    assert wanted in str(error.value) and "sEcReT" not in repr(error.value)
    assert server.requests == []


def test_a_function_that_raises(session: sluice.Session, server: S3Server) -> None:
    def keys() -> Any:
        raise LookupError("no keys for sEcReT")

    with pytest.raises(sluice.Error, match="raised LookupError") as error:
        loaded(session, s3_credentials=keys)
    assert "sEcReT" not in str(error.value)
    with pytest.raises(sluice.InvalidSpec, match="has to be a function") as error:
        loaded(session, s3_credentials=("k", "sEcReT"))
    assert "sEcReT" not in str(error.value)


def rank_says_all(session: sluice.Session, uri: str, folder: str) -> Any:
    loads = rank_loads(session, uri, folder)
    wrong = error_of(session.load, "s3://bucket/none", {"w": np.zeros(2)})
    print(wrong)
    return loads


def test_nothing_secret_is_printed(session: sluice.Session, server: S3Server, tmp_path: Path,
                                   ) -> None:
    server.token = "t0K3n/of+today=="
    session.save(tmp_path / "saved", state(), progress=False)
    put(server, tmp_path / "saved", "model")
    environment = {"AWS_SESSION_TOKEN": server.token}
    (tmp_path / "out").mkdir()
    ends = ranks_end(2, rank_says_all, "s3://bucket/model", str(tmp_path / "out"),
                     environment=environment, trace_events=10_000)
    assert [end.result for end in ends] == [[True] * 4] * 2
    written = "".join(path.read_text() for path in (tmp_path / "out").iterdir())
    assert "s3://bucket/none" in ends[0].output and written
    for text in (*(end.output for end in ends), written):
        check_no_secret(server, text)


@pytest.mark.parametrize("uri", ["s3://", "s3:///model", "s3:bucket", "s3://b/../model",
                                 "s3://b\n/x", "s3://AKID:sEcReT@bucket/model"])
def test_addresses_that_are_none(session: sluice.Session, server: S3Server, uri: str) -> None:
    with pytest.raises(sluice.InvalidSpec) as error:
        loaded(session, uri)
    assert "sEcReT" not in str(error.value) and server.requests == []


_MOTO = """
import sys
import boto3
from moto.server import ThreadedMotoServer

server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
server.start()
url = "http://%s:%d" % server.get_host_and_port()
client = boto3.client("s3", endpoint_url=url)
client.create_bucket(Bucket="bucket")
for path in sys.argv[1:]:
    client.upload_file(path, "bucket", "a b/" + path.rpartition("/")[2])
print(url, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(importlib.util.find_spec("moto") is None, reason="moto is not installed")
def test_moto(session: sluice.Session, server: S3Server, tmp_path: Path,
              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ENDPOINT_URL_S3")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    session.save(tmp_path, state(), progress=False, shard_bytes_max=100_000)
    np.save(tmp_path / "items.npy", np.arange(40, dtype=np.uint8).reshape(10, 4))
    files = [str(path) for path in tmp_path.iterdir()]
    with subprocess.Popen([sys.executable, "-c", _MOTO, *files], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, text=True) as moto:
        try:
            assert moto.stdout is not None
            monkeypatch.setenv("AWS_ENDPOINT_URL", moto.stdout.readline().strip())
            assert loaded(session, "s3://bucket/a b")
            with session.stream("s3://bucket/a b", format="npy", batch_items=10) as stream:
                assert next(stream).tensor.tolist() == np.arange(40).reshape(10, 4).tolist()
            with pytest.raises(sluice.Error, match="NoSuchBucket"):
                loaded(session, "s3://other/x")
        finally:
            moto.kill()
