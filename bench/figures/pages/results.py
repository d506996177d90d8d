"""What bench/results holds: each file is read once, and may not be there yet."""
import json


class Results:
    def __init__(self, folder):
        self.folder = folder
        self._read = {}

    def get(self, name):
        """The file NAME.json as it is, or None."""
        if name not in self._read:
            path = self.folder / (name + ".json")
            self._read[name] = (json.loads(path.read_text(encoding="utf-8")) if path.exists()
                                else None)
        return self._read[name]

    def simulated(self, name):
        """What sluice-sim found, without runs that stalled; [] if there is no such file."""
        data = self.get("large-meshes/" + name)
        return simulated(data) if data else []


def simulated(data):
    return [r for r in data["results"] if not r["stalled"]]


def by(results, *keys):
    groups = {}
    for r in results:
        groups.setdefault(tuple(r[k] for k in keys), []).append(r)
    return groups
