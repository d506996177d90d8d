"""A trainer and engines for the tests of vLLM's weight transfer."""
import json
import os
import subprocess

import engine as engines
import families
import pytest

PROMPTS = [[1, 2, 3, 4], [7, 8, 9], [5], [11, 12, 13, 14, 15, 16]]


class Trainer(engines.Child):
    """Trainer processes, driven by lines."""

    def __init__(self, folder, shapes, sockets, ranks=1, **case):
        path = f"{folder}/case-{os.urandom(4).hex()}.json"
        named = {name: (list(shape), str(dtype).removeprefix("torch."))
                 for name, (shape, dtype) in shapes.items()}
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"shapes": named, "sockets": sockets, "layout": "whole", **case}, file)
        super().__init__("trainer.py", f"{path}.err", path, str(ranks), stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True,
                         env={**os.environ, **engines.ENVIRONMENT})

    def begin(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise AssertionError(f"the trainer has ended:\n{self.text()[-4000:]}")
            if line.startswith("{"):
                return json.loads(line)

    def do(self, line):
        self.begin(line)
        answer = self.answer()
        assert answer["ok"], f"{line}: {answer['error']}\n{self.text()[-3000:]}"
        return answer

    def fails(self, line):
        self.begin(line)
        answer = self.answer()
        assert not answer["ok"], f"{line} went well"
        return answer["error"]


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Makes a folder with a small model, and what its checkpoint has: once for each."""
    made = {}

    def make(family, seed=0):
        if (family, seed) not in made:
            folder = tmp_path_factory.mktemp(family)
            made[family, seed] = folder, families.make(folder, family, seed)
        return made[family, seed]

    return make


def save(folder, shapes, number):
    from safetensors.torch import save_file
    path = f"{folder}/version-{number}.safetensors"
    save_file(families.version(shapes, number), path, metadata={"format": "pt"})
    return path
