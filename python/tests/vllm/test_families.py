"""Three versions into small models of each family, compared with what vLLM's own loader makes."""
import os
import shutil

import families
import pytest
from conftest import PROMPTS, Trainer, save
from engine import Engine

SEED = int(os.environ.get("SLUICE_TEST_SEED", "0")) % 1000


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("family", families.FAMILIES)
def test_each_version_is_what_the_own_loader_gives(models, tmp_path, family, workers):
    folder, shapes = models(family, SEED)
    ranks, layout = (2, ["fsdp", "tp"][workers - 1])
    with Engine(tmp_path, folder, load_format="dummy", tensor_parallel_size=workers,
                weight_transfer_config={"backend": "sluice"}) as engine, \
            Trainer(tmp_path, shapes, [engine.socket], ranks, layout=layout) as trainer:
        engine.call("on_workers", "fill", 1)
        trainer.do("init")
        tokens = None
        for number in (1, 2, 3):
            assert trainer.do(f"send {number}")["version"] == number
            assert engine.call("get_weight_version") == str(number)
            tokens, before = engine.call("tokens", PROMPTS), tokens
            assert tokens != before
            path = save(tmp_path, shapes, number)
            if family == "llama_int8":
                continue  # vLLM's own reload leaves its kernels with the addresses of old scales
            for found in engine.call("on_workers", "differences", path):
                assert found == {}, f"version {number}"
            assert engine.call("tokens", PROMPTS) == tokens
        count = sum(engine.call("on_workers", "elements"))
        digests = engine.call("on_workers", "dump")
        trainer.do("shutdown")
    print(f"{family} on {workers}: {count} elements")

    # Another engine, which loads the same checkpoint from files, has the same and says the same.
    shutil.copy(path, folder / "model.safetensors")
    try:
        with Engine(tmp_path, folder, tensor_parallel_size=workers) as other:
            assert other.call("tokens", PROMPTS) == tokens
            for mine, theirs in zip(digests, other.call("on_workers", "dump")):
                unequal = [name for name, one in theirs.items() if mine.get(name) != one]
                # A cache's scales are in no checkpoint here: they are those of the dummy weights.
                assert [name for name in unequal if ".attn._" not in name] == []
    finally:
        os.remove(folder / "model.safetensors")
