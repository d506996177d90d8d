"""A measurement's programs, folders of shards and server, and commands with their columns filled
in."""
import contextlib
import json
import pathlib
import random
import re
import shlex
import shutil
import tempfile

from nginx import Nginx
from rounds import MPIRUN, ROOT, SPAWN, CannotRun, Failure, call, into_page_cache


class Fields(dict):
    """What stands in braces of a command."""

    def __init__(self, known, missing):
        super().__init__(known)
        self._missing = missing

    def __missing__(self, key):
        return self._missing(key)


class Job(contextlib.ExitStack):
    """`share`: of the usual number of rounds. `quick`: one round of small sizes."""

    def __init__(self, bin_folder, share, quick):
        super().__init__()
        self.bin, self.quick, self._share = bin_folder, quick, share
        self.folder = pathlib.Path(self.enter_context(
            tempfile.TemporaryDirectory(prefix="measure-")))
        self._servers = {}

    def rounds(self, experiment):
        """An odd number, so that the median is a round's."""
        return 1 if self.quick else max(3, round(experiment.rounds * self._share) | 1)

    def command(self, experiment, folder=None, **columns):
        text = experiment.command
        known = {"seed": random.randrange(1 << 30), "rounds": self.rounds(experiment), **columns,
                 **experiment.more(**columns)}
        fields = Fields(known, lambda key: self.url(folder) if key == "url" else
                        {"dir": str(folder)}[key])
        text = text.format_map(fields).format_map(fields)
        for old, new in experiment.quick.items() if self.quick else ():
            text = text.replace(old, new)
        return text

    def words(self, text):
        """The command's words, with programs in place of their names."""
        scripts = {"mpirun": MPIRUN[:2], "spawn": SPAWN[:1],
                   "two_nodes": [ROOT / "scripts/two_nodes.sh"]}
        words = []
        for word in shlex.split(text):
            program = self.bin / word
            words += scripts.get(word) or [program if re.fullmatch(r"\w[\w-]*", word) and
                                           program.is_file() else word]
        return words

    @staticmethod
    def needs(*programs):
        for program in programs:
            if shutil.which(program) is None:
                raise CannotRun(f"there is no {program}")

    def shards(self, items, item_bytes, items_per_object):
        """The folder of so many items. They are in the page cache when this returns."""
        folder = self.folder / f"raw-{items}x{item_bytes}-{items_per_object}"
        if not (folder / "index.json").exists():
            call([self.bin / "sluice-bench", "shards", "--make", "raw", "--dir", folder, "--items",
                  items, "--item-bytes", item_bytes, "--items-per-object", items_per_object])
        into_page_cache(self.files(folder))
        return folder

    @staticmethod
    def objects(folder):
        """[(name, items)] in the order of the index."""
        index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
        return [(entry["name"], entry["items"]) for entry in index["objects"]]

    def files(self, folder):
        return [folder / name for name, _ in self.objects(folder)]

    def url(self, folder):
        """Of an nginx that serves the folder."""
        if folder not in self._servers:
            self.needs("nginx")
            self._servers[folder] = self.enter_context(Nginx(folder)).url
        return self._servers[folder]

    def presets(self):
        """A file of all presets, so that one job does them all."""
        shape = [64, 64] if self.quick else [2048, 2048]
        cases = []
        for line in call([self.bin / "sluice-bench", "reshard", "--list-presets"]).splitlines():
            found = re.fullmatch(r"(\S+)\s+\d+ ranks\s+(\S+) -> (\S+)", line.strip())
            if not found:
                raise Failure(f"no preset: {line}")
            cases.append({"id": found[1], "shape": shape, "source": side(found[2]),
                          "target": side(found[3])})
        file = self.folder / "presets.json"
        file.write_text(json.dumps({"cases": cases}), encoding="utf-8")
        return file


def side(text):
    """A layout as a case file has it, out of MESH@RANKS:PLACEMENTS."""
    mesh, ranks, placements = re.fullmatch(r"([\d,]+)@([\d,-]+):(.*)", text).groups()
    listed = []
    for part in ranks.split(","):
        first, _, last = part.partition("-")
        listed += range(int(first), int(last or first) + 1)
    return {"mesh": [int(size) for size in mesh.split(",")], "ranks": listed,
            "placements": re.findall(r"\w+(?:\([^)]*\))?", placements)}
