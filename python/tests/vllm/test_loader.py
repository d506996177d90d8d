"""Loads by load_format="sluice", compared with those of vLLM's own loader."""
import os
import re
import shutil

import families
import pytest
from conftest import PROMPTS
from engine import Engine

SEED = int(os.environ.get("SLUICE_TEST_SEED", "0")) % 1000


def saved(folder, shapes, parts=2):
    """A checkpoint in the model's folder, of several files and an index; its tensors' bytes."""
    import json

    from safetensors.torch import save_file
    tensors = families.version(shapes, 1)
    index = {}
    for part in range(parts):
        own = {name: one for i, (name, one) in enumerate(tensors.items()) if i % parts == part}
        file = f"model-{part + 1:05}-of-{parts:05}.safetensors"
        save_file(own, folder / file, metadata={"format": "pt"})
        index.update(dict.fromkeys(own, file))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return sum(one.nbytes for one in tensors.values())


def bytes_read(log):
    return sum(int(count) for count in re.findall(r"has read (\d+) bytes", log))


THOROUGH = "SLUICE_TEST_THOROUGH" in os.environ


@pytest.mark.parametrize("family, workers", [("llama", 1), ("llama_int8", 2), *(
    (one, 2) for one in (families.FAMILIES if THOROUGH else ("qwen3_moe", "deepseek_v3")))])
def test_a_load_is_what_the_own_loader_gives(models, tmp_path, family, workers):
    folder, shapes = models(family, SEED)
    folder = shutil.copytree(folder, tmp_path / "model")
    count = saved(folder, shapes)
    found = []
    for load_format in ("safetensors", "sluice"):
        with Engine(tmp_path, folder, load_format=load_format,
                    tensor_parallel_size=workers) as engine:
            found.append([engine.call("tokens", PROMPTS), engine.call("on_workers", "dump")])
            log = engine.text()
    assert found[0] == found[1]
    # Direct reads are of whole blocks, so a little more than the tensors have.
    assert 0 < bytes_read(log) <= count + 4096 * 2 * len(shapes)


def test_a_checkpoint_of_dcp(models, tmp_path):
    import torch.distributed.checkpoint as dcp
    folder, shapes = models("qwen3", SEED)
    folder = shutil.copytree(folder, tmp_path / "model")
    dcp.save(families.version(shapes, 1), checkpoint_id=tmp_path / "dcp")
    with Engine(tmp_path, folder, load_format="sluice", model_loader_extra_config={
            "uri": f"dcp:{tmp_path}/dcp", "budget_bytes": 64 << 20}) as engine:
        tokens = engine.call("tokens", PROMPTS)
    saved(folder, shapes)
    with Engine(tmp_path, folder, load_format="safetensors") as engine:
        assert engine.call("tokens", PROMPTS) == tokens


@pytest.mark.parametrize("extra, change, said", [
    ({"buget_bytes": 1}, None, "buget_bytes"),
    ({"uri": "/nowhere"}, None, "nowhere"),
    ({}, "lacks", "not initialized from checkpoint"),
])
def test_what_is_wrong_is_said(models, tmp_path, extra, change, said):
    folder, shapes = models("llama", SEED)
    folder = shutil.copytree(folder, tmp_path / "model")
    if change:
        shapes = {name: one for name, one in shapes.items() if name != "model.norm.weight"}
    saved(folder, shapes, 1)
    with Engine(tmp_path, folder, load_format="sluice",
                model_loader_extra_config=extra) as engine:
        with pytest.raises(Exception):  # noqa: B017 - it ends
            engine.wait()
        assert said in engine.text()
