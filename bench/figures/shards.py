"""Data shards in the working folder, made when first asked for."""
import json
import pathlib


class Shards:
    def __init__(self, bench, folder):
        self._bench = bench
        self._folder = pathlib.Path(folder).resolve()

    def make(self, items, item_bytes, items_per_object):
        """The folder of `items` of `item_bytes`. They are in the page cache when this returns."""
        folder = self._folder / f"raw-{items}x{item_bytes}-{items_per_object}"
        if not (folder / "index.json").exists():
            self._bench.shards(folder, items, item_bytes, items_per_object)
        for file in files(folder):
            _touch(file)
        return folder


def objects(folder):
    """[(name, items)] in the order of the index."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    return [(entry["name"], entry["items"]) for entry in index["objects"]]


def files(folder):
    return [folder / name for name, _ in objects(folder)]


def _touch(file):
    with open(file, "rb", buffering=0) as source:
        block = bytearray(1 << 20)
        while source.readinto(block) > 0:
            pass
