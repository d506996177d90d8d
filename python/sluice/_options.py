"""The options of sessions, checkpoints and streams, as type checkers and editors see them.

The C++ library has names, types and ranges of its own: tests compare these classes with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict


class SessionOptions(TypedDict, total=False):
    """Options of a session. All ranks give the same, but for those that say otherwise.

    * `budget_buckets`: Most buckets that a rank holds at once (16); None: no limit of this kind.
    * `budget_bytes`: Most bytes of staging that a rank holds at once; None: 16 slots of at most 8
      MiB.
    * `bucket_bytes`: Most bytes of one bucket, 16 to 1 GiB; None: automatic.
    * `max_in_flight`: Most buckets under way from one rank to another, 1 to 65,536; None:
      automatic.
    * `timeout`: Seconds without a sign of life before everything ends with Timeout (30). A rank
      that computes gives signs of life by its progress thread, for as long as it computes.
    * `patience`: Seconds that ranks wait for late ones; None: for ever. Ranks may differ.
    * `progress_thread`: A thread of the session answers and drives runs while the caller computes
      (True). False: the caller has to be in a call of the session each `timeout` seconds. Ranks may
      differ.
    * `trace_events`: How many stages of buckets `Session.trace` keeps (0), 64 bytes each. Ranks may
      differ.
    * `direct`: Ranks of one node copy from each other's memory (True).
    * `coalesce`: Small tensors share buckets (True).
    * `accelerator`: "cuda" or "cuda:1", in a build with CUDA; None: host memory alone. Ranks may
      differ.
    * `transport`: "nccl" or "cuda_ipc", with an accelerator; None: through the host.
    """

    budget_buckets: int | None
    budget_bytes: int | None
    bucket_bytes: int | None
    max_in_flight: int | None
    timeout: float
    patience: float | None
    progress_thread: bool
    trace_events: int
    direct: bool
    coalesce: bool
    accelerator: str | None
    transport: str | None


class CheckpointOptions(TypedDict, total=False):
    """Options of `load` and `save`. Ranks may differ, but for those that say otherwise.

    * `budget_bytes`: Bytes of host memory for pieces that are read, written or exchanged (256 MiB).
    * `slots`: Most pieces at once; None: as many as the budget holds.
    * `piece_bytes`: Most bytes of one read, write or message (8 MiB). Equal on all ranks.
    * `shard_bytes_max`: `save`: most bytes of tensors in one file (5 GiB). Equal on all ranks.
    * `attempts_max`: How often a read of a piece is tried (4).
    * `backoff`: Seconds before the second try (0.05); they double with each further one.
    * `request_timeout`: Seconds without a byte of one request before it is tried again (20).
    * `timeout`: Seconds without progress on any rank (60).
    * `connections`: Most connections to one HTTP server, 1 to 4096 (64).
    * `ca_file`: A file of certificates to trust, in place of the system's.
    * `s3_endpoint`, `s3_region`: Of "s3://BUCKET/PREFIX", in place of what AWS's variables and the
      profile say.
    * `s3_credentials`: A function that returns (access key, secret key, session token or None, end
      or None). It is called again shortly before the end: a datetime, or seconds as of time.time().
    """

    budget_bytes: int
    slots: int | None
    piece_bytes: int
    shard_bytes_max: int
    attempts_max: int
    backoff: float
    request_timeout: float
    timeout: float
    connections: int
    ca_file: str
    s3_endpoint: str
    s3_region: str
    s3_credentials: Callable[[], Sequence[Any]]


class StreamOptions(TypedDict, total=False):
    """Options of `Session.stream`. All ranks give the same, but for those that say otherwise.

    * `batch_items`: How many items are in a batch (1). Ranks may differ.
    * `shuffle`: Items come in an order that follows from seed and epoch (False).
    * `seed`: Of the order (0).
    * `shuffle_block_items`: Shuffles blocks of so many neighbours, and items within them; None:
      items singly.
    * `epochs`: How many times all items come (1).
    * `in_order`: In the epoch's order (True), or as they come. Ranks may differ.
    * `first`, `step`, `end`: This rank takes items first, first + step, ... below `end` (rank,
      size, None). Ranks differ.
    * `format`: What a directory without an index.json holds ("index"); "webdataset" and "mds" are
      data sets of these libraries.
    * `index`: The text of an index.json in place of the one beside the objects. Ranks may differ:
      rank 0's counts, where they exchange.
    * `item_bytes`: Bytes of an item of "raw", or of one that a generator makes.
    * `generator_items`: How many items a generator makes.
    * `generate_order`: When a generator makes items, beside `Stream.end_update` ("free").
    * `generate_ahead`: Batches that a generator may begin beyond the last one given out (1).
    * `generator_threads`: Threads of a rank that call the generator at once, 1 to 256 (1).
    * `sized`: The generator's items have at most `item_bytes`, and it says how many (False).
    * `buffers`: Batches in memory at once (2). Ranks may differ.
    * `device`: Which memory batches are in ("cpu"); the others need an accelerator. Ranks may
      differ.
    * `await_in_stream`: Batches in device memory come before their copies end: docs/streaming.md
      (False).
    * `budget_bytes`: Bytes of host memory for what is read ahead (256 MiB). Ranks may differ.
    * `slots`: Most pieces at once; None: as many as the budget holds. Ranks may differ.
    * `piece_bytes`: Most bytes of one read; None: 8 MiB, or an eighth of the budget.
    * `exchange`: Ranks that need the same item read it once between them (True).
    * `hedge`: Starts reads once more that take long (False). Ranks may differ.
    * `hedge_quantile`: Of recent reads: one that takes 1.5 times as long takes long (0.95). Ranks
      may differ.
    * `hedge_extra_share_max`: Most such requests, as a share of all (0.03). Ranks may differ.
    * `attempts_max`: How often a read of a piece is tried (4). Ranks may differ.
    * `backoff`: Seconds before the second try (0.05); they double with each further one. Ranks may
      differ.
    * `request_timeout`: Seconds without a byte of one request before it is tried again (20). Ranks
      may differ.
    * `connections`: Most connections to one HTTP server, 1 to 4096 (64). Ranks may differ.
    * `ca_file`: A file of certificates to trust, in place of the system's. Ranks may differ.
    * `s3_endpoint`, `s3_region`, `s3_credentials`: As of `CheckpointOptions`. Ranks may differ.
    * `timeout`: Seconds that the next batch may take (60). Ranks may differ.
    * `trace_epochs`: How many epochs a trace has; None: 5. Ranks may differ.
    """

    batch_items: int
    shuffle: bool
    seed: int
    shuffle_block_items: int | None
    epochs: int
    in_order: bool
    first: int
    step: int
    end: int | None
    format: Literal['index', 'raw', 'npy', 'safetensors', 'webdataset', 'mds']
    index: str
    item_bytes: int
    generator_items: int
    generate_order: Literal['free', 'after_update', 'one_ahead']
    generate_ahead: int
    generator_threads: int
    sized: bool
    buffers: int
    device: Literal['cpu', 'cuda', 'pinned']
    await_in_stream: bool
    budget_bytes: int
    slots: int | None
    piece_bytes: int | None
    exchange: bool
    hedge: bool
    hedge_quantile: float
    hedge_extra_share_max: float
    attempts_max: int
    backoff: float
    request_timeout: float
    connections: int
    ca_file: str
    s3_endpoint: str
    s3_region: str
    s3_credentials: Callable[[], Sequence[Any]]
    timeout: float
    trace_epochs: int | None


class Metrics(TypedDict):
    """What `Session.metrics` counts on this rank.

    * `runs`, `run_seconds`: runs that have ended, and the seconds from their starts to their ends.
    * `sent_bytes`, `received_bytes`: of these runs, to other ranks and from them.
    * `buckets_peak`, `staging_bytes_peak`, `operations_peak`: the most at once of buckets, of bytes
      of staging, and of messages and copies.
    * `waited_for_channel`, `waited_for_budget`: how often a bucket waited for its channel, and for
      the budget.
    * `running`, `budget_wait`: seconds in which something was under way, and in which the budget
      held buckets up.
    """

    rank: int
    size: int
    epoch: int
    runs: int
    run_seconds: float
    runs_in_flight: int
    sent_bytes: int
    received_bytes: int
    buckets_finished: int
    buckets_peak: int
    staging_bytes_peak: int
    operations_peak: int
    waited_for_channel: int
    waited_for_budget: int
    running: float
    budget_wait: float
