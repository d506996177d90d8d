"""What all parts of a measurement share: programs, shards, how much to do, and progress."""
import sys
import time

from runs import MIB

ITEMS = 512  # of 1 MiB, in objects of 64


class Setup:
    def __init__(self, bench, shards, bin_folder, rounds=None, quick=False):
        self.bench = bench
        self.shards = shards
        self.bin_folder = bin_folder
        self._rounds = rounds
        self._quick = quick

    def rounds(self, usual):
        return self._rounds or (1 if self._quick else usual)

    def seconds(self, usual):
        """How long a run is to be."""
        return min(usual, 0.4) if self._quick else usual

    def count(self, usual, quick):
        return quick if self._quick else usual

    def some(self, settings):
        """All of them, or the first and the last."""
        return [settings[0], settings[-1]] if self._quick and len(settings) > 2 else list(settings)

    def folder(self, items=ITEMS, item_bytes=MIB, items_per_object=64):
        return self.shards.make(items, item_bytes, items_per_object)

    def turns(self, name, rounds, settings):
        """(round, setting): within a round all settings in turn, round after round."""
        begin = time.monotonic()
        done = 0
        for number in range(rounds):
            for setting in settings:
                _say(f"{name}: {done} of {rounds * len(settings)}, "
                     f"{time.monotonic() - begin:.0f} s: {setting}")
                yield number, setting
                done += 1
        _say(f"{name}: {done} runs in {time.monotonic() - begin:.0f} s\n")


def _say(text):
    end = "" if sys.stderr.isatty() and not text.endswith("\n") else "\n"
    begin = "\r\033[K" if sys.stderr.isatty() else ""
    print(begin + text.rstrip("\n"), end=end, file=sys.stderr, flush=True)


def epochs(bytes_per_s, seconds, items=ITEMS, item_bytes=MIB):
    """How many epochs of `items` take about so long; at least one."""
    return max(1, round(bytes_per_s * seconds / (items * item_bytes)))
