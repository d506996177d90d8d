"""Engines and trainers that come, go, and differ. Each error says what is wrong, and the next
version is whole wherever somebody is left."""
import time

import pytest
from conftest import Trainer, save
from engine import Engine, Failed

DUMMY = {"load_format": "dummy", "weight_transfer_config": {"backend": "sluice"}}
FAMILY = "llama"


def check(engine, folder, shapes, number, version):
    path = save(folder, shapes, number)
    assert engine.call("get_weight_version") == str(version)
    for found in engine.call("on_workers", "differences", path):
        assert found == {}


def test_engines_die_and_join_while_others_go_on(models, tmp_path):
    folder, shapes = models(FAMILY)
    with Engine(tmp_path, folder, **DUMMY) as first, Engine(tmp_path, folder, **DUMMY) as second:
        first.wait()
        second.wait()
        sockets = [first.socket, second.socket]
        with Trainer(tmp_path, shapes, sockets, 2, layout="fsdp") as trainer:
            trainer.do("init")
            trainer.do("send 1")
            check(first, tmp_path, shapes, 1, 1)
            check(second, tmp_path, shapes, 1, 1)
            second.kill()
            trainer.do("send 2")  # one engine is left out
            check(first, tmp_path, shapes, 2, 2)
            assert "is left out, as its start_weight_update failed" in trainer.text()
            with Engine(tmp_path, folder, tensor_parallel_size=2, **DUMMY) as third:
                third.wait()
                trainer.do(f"add {third.socket}")
                trainer.do("send 3")
                check(first, tmp_path, shapes, 3, 3)
                check(third, tmp_path, shapes, 3, 3)
                # It dies in mid-update: the others get the version all the same.
                third.call("on_workers", "stop_at", "Placement.receive")
                trainer.begin("send 4")
                time.sleep(2)
                third.kill()
                assert trainer.answer()["ok"]
                check(first, tmp_path, shapes, 4, 4)
            trainer.do("send 5")
            check(first, tmp_path, shapes, 5, 5)


@pytest.mark.parametrize("family, place", [  # in place, and staged
    ("llama", "Placement.begin"), ("qwen3_moe", "Placement.receive"),
    ("qwen3_moe", "Layers.finish")])
def test_an_engine_takes_the_next_version_after_its_own_error(models, tmp_path, family, place):
    folder, shapes = models(family)
    with Engine(tmp_path, folder, **DUMMY) as engine, Engine(tmp_path, folder, **DUMMY) as other:
        engine.wait()
        other.wait()
        with Trainer(tmp_path, shapes, [engine.socket, other.socket]) as trainer:
            trainer.do("init")
            trainer.do("send 1")
            engine.call("on_workers", "raise_at", place)
            trainer.do("send 2")  # into the other one
            assert "planted" in trainer.text()
            check(other, tmp_path, shapes, 2, 2)
            assert engine.call("get_weight_version") == "1"
            trainer.do(f"add {engine.socket}")
            trainer.do("send 3")
            check(engine, tmp_path, shapes, 3, 3)
        # Of one engine alone, the trainer hears.
        with Trainer(tmp_path, shapes, [engine.socket], info={"timeout": 20}) as trainer:
            trainer.do("init")
            engine.call("on_workers", "raise_at", place)
            error = trainer.fails("send 1")
            assert "planted" in error, error
            trainer.do("send 2")
            check(engine, tmp_path, shapes, 2, 2)


def test_a_trainer_that_is_killed_has_a_successor(models, tmp_path):
    folder, shapes = models(FAMILY)
    with Engine(tmp_path, folder, **DUMMY) as engine:
        engine.wait()
        with Trainer(tmp_path, shapes, [engine.socket]) as trainer:
            trainer.do("init")
            trainer.do("send 1")
        with Trainer(tmp_path, shapes, [engine.socket], 2, layout="tp") as trainer:
            trainer.do("init")  # between updates
            trainer.do("send 2")
            check(engine, tmp_path, shapes, 2, 1)
            # In mid-update: the engine ends its call with an error that names the trainer.
            engine.call("on_workers", "pause_at", "Placement.receive", 3)
            trainer.begin("send 3")
            time.sleep(1)
            trainer.kill()
        assert engine.call("get_weight_version") == "1"
        assert "trainer" in engine.text().rpartition("Traceback")[2]
        with Trainer(tmp_path, shapes, [engine.socket], layout="whole") as trainer:
            trainer.do("init")
            trainer.do("send 4")
            check(engine, tmp_path, shapes, 4, 1)


def test_what_does_not_fit_is_refused_at_the_start(models, tmp_path):
    folder, shapes = models(FAMILY)
    name = next(one for one in shapes if "q_proj" in one)
    shape, dtype = shapes[name]
    with Engine(tmp_path, folder, **DUMMY) as engine:
        engine.wait()
        for wrong, says in (
                ({**shapes, name: ([shape[0] + 1, shape[1]], dtype)}, name),
                ({**shapes, "model.layers.0.nobody.weight": ([4, 4], dtype)}, "nobody"),
                ({**shapes, "model.layers.0.self_attn.rotary_emb.inv_freq": ([4], dtype)},
                 "inv_freq")):
            with Trainer(tmp_path, wrong, [engine.socket]) as trainer:
                error = trainer.fails("init")
                assert says in error, error
        # It can be initialized all the same.
        with Trainer(tmp_path, shapes, [engine.socket], source="stream") as trainer:
            trainer.do("init")
            trainer.do("send 1")
            check(engine, tmp_path, shapes, 1, 1)


def test_another_version_of_the_package_is_refused(models, tmp_path):
    folder, shapes = models(FAMILY)
    with Engine(tmp_path, folder, **DUMMY) as engine, \
            Trainer(tmp_path, shapes, [engine.socket]) as trainer:
        engine.wait()
        engine.call("on_workers", "pretend_version", "0.0.1")
        error = trainer.fails("init")
        assert "0.0.1" in error and "same version" in error, error


def test_sources_bring_whole_tensors_and_other_memory(models, tmp_path):
    folder, shapes = models(FAMILY)
    with Engine(tmp_path, folder, **DUMMY) as engine:
        engine.wait()
        for layout, source in (("whole", "stream"), ("fsdp", "stream"), ("fsdp", "state")):
            with Trainer(tmp_path, shapes, [engine.socket], 2, layout=layout,
                         source=source) as trainer:
                trainer.do("init")
                trainer.do("send 1")
                check(engine, tmp_path, shapes, 1, 1)
                trainer.do("move")
                trainer.do("send 2")
                check(engine, tmp_path, shapes, 2, 2)


def test_an_update_that_nobody_has_announced_is_refused(models, tmp_path):
    folder, _ = models(FAMILY)
    with Engine(tmp_path, folder, **DUMMY) as engine:
        engine.call("start_weight_update")
        with pytest.raises(Failed, match="has not called init_weight_transfer_engine"):
            engine.call("update_weights", {"update_info": {"version": 1}})
        with pytest.raises(Failed, match="Invalid init_info"):
            engine.call("init_weight_transfer_engine", {"init_info": {"nothing": 1}})


@pytest.mark.parametrize("way", ["pipeline_parallel_size", "data_parallel_size"])
def test_stages_and_replicas_take_what_is_theirs(models, tmp_path, way):
    folder, shapes = models(FAMILY)
    with Engine(tmp_path, folder, **{way: 2}, **DUMMY) as engine, \
            Trainer(tmp_path, shapes, [engine.socket], 3, layout="fsdp") as trainer:
        engine.wait()
        trainer.do("init")
        for number in (1, 2):
            trainer.do(f"send {number}")
            check(engine, tmp_path, shapes, number, number)
        assert len(engine.call("on_workers", "elements")) == 2
