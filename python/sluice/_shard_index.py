"""The text of an index.json, made of where samples lie in shards."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from ._errors import InvalidSpec

#: Where it is beside the shards.
INDEX = "index.json"
#: No stream takes a longer text.
INDEX_BYTES_MAX = 256_000_000
#: Of one shard: no stream takes more ranges.
SAMPLES_MAX = 16_000_000


def polled(calls: Iterable[Callable[[], Any]], poll: Callable[[], None], at_once: int = 1
           ) -> Iterator[Any]:
    """What the calls return, in their order. They run on threads, `at_once` at most.

    `poll` is called meanwhile, each second at least. An exception, also of `poll` or a signal, is
    raised at once, and what is under way then ends by itself.
    """
    pool = ThreadPoolExecutor(at_once)
    running: deque[Future[Any]] = deque()
    left = iter(calls)
    try:
        while True:
            for call in left:
                running.append(pool.submit(call))
                if len(running) == 2 * at_once:
                    break
            if not running:
                return
            first = running.popleft()
            while not wait([first], timeout=1).done:
                poll()
            yield first.result()
            poll()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


class IndexText:
    """An index that grows by shards."""

    def __init__(self, beginning: str = "{") -> None:
        self._beginning = beginning
        self._objects: list[str] = []
        self._bytes = 0
        self._items = 0

    def add(self, name: str, size: int, begins: Sequence[int], sizes: Sequence[int]) -> None:
        """A shard of `size` bytes. InvalidSpec: the index has become too long.

        Samples of one size, each behind the one before, take no room in the text.
        """
        if not begins:
            return
        first = sizes[0]
        if all(size == first for size in sizes) and all(
                following - begin == first for begin, following in zip(begins, begins[1:])):
            where = f'"items": {len(begins)}, "offset": {begins[0]}, "item_bytes": {first}'
        else:
            where = f'"ranges": [{_ranges(zip(begins, sizes))}]'
        self._objects.append(f'{{"name": {json.dumps(name)}, "bytes": {size}, {where}}}')
        self._items += len(begins)
        self._bytes += len(self._objects[-1])
        if self._bytes > INDEX_BYTES_MAX - 4096:
            raise InvalidSpec(f"an index of the first {len(self._objects)} shards, with "
                              f"{self._items} samples, has more than {INDEX_BYTES_MAX} bytes: open "
                              "streams of some of the shards each")

    def text(self) -> str:
        return (f'{self._beginning}"version": 1, "format": "raw", "items": {self._items}, '
                f'"objects": [\n' + ",\n".join(self._objects) + "]}\n")


def _ranges(ranges: Iterable[tuple[int, int]]) -> str:
    return ",".join(f"[{begin},{size}]" for begin, size in ranges)
