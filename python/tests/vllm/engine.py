"""A vLLM engine in a process of its own, which takes calls over a socket, and its client.

usage: engine.py SOCKET MODEL ARGUMENTS    as JSON, for vLLM's LLM
"""
import asyncio
import json
import math
import os
import subprocess
import sys
import threading
import time
import traceback
from multiprocessing.connection import Client, Listener, wait

HERE = os.path.dirname(os.path.abspath(__file__))
START_SECONDS = 240
# Of vLLM on CPUs, in one process for one worker.
ENVIRONMENT = {
    "VLLM_TARGET_DEVICE": "cpu", "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1",
    "OMP_NUM_THREADS": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_ALLOW_INSECURE_SERIALIZATION": "1",  # for functions of these tests
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_WORKER_MULTIPROC_METHOD": "fork",  # imports are most of an engine's start
}
# Of each engine; its own arguments go first.
ARGUMENTS = {"skip_tokenizer_init": True, "enforce_eager": True, "max_model_len": 64,
             "kv_cache_memory_bytes": 64 << 20, "dtype": "bfloat16"}


class Failed(RuntimeError):
    """What a call has raised in the engine."""


class Child:
    """A process of these tests, its children, and its log."""

    def __init__(self, script, log, *given, **how):
        self.log = open(log, "w+b")
        self.process = subprocess.Popen([sys.executable, f"{HERE}/{script}", *given],
                                        stderr=self.log, start_new_session=True,
                                        **{"stdout": self.log, **how})

    def text(self):
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()

    def kill(self):
        try:
            os.killpg(self.process.pid, 9)
        except ProcessLookupError:
            pass
        self.process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            sys.stderr.write(self.text()[-6000:])
        self.kill()
        self.log.close()


class Engine(Child):
    """An engine. It is also a client of vLLM's weight transfer, for one trainer at a time."""

    def __init__(self, folder, model, **arguments):
        self.socket = f"{folder}/engine-{os.urandom(4).hex()}"
        workers = math.prod(arguments.get(f"{way}_parallel_size", 1)
                            for way in ("tensor", "pipeline", "data"))
        environment = {**os.environ, **ENVIRONMENT, "VLLM_CPU_OMP_THREADS_BIND": "|".join(
            str(i % os.cpu_count()) for i in range(workers))}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (HERE, os.environ.get(
            "PYTHONPATH"))))
        super().__init__("engine.py", f"{self.socket}.log", self.socket, str(model),
                         json.dumps(arguments), env=environment)
        self._connection = None

    def client(self):
        """A second end for the same engine: such as that of another process."""
        return Remote(self.socket, self.process)

    def call(self, what, *given):
        if self._connection is None:
            self._connection = Remote(self.socket, self.process)
        return self._connection.call(what, *given)

    def wait(self):
        """Until it serves. Raises where it has ended instead."""
        self.call("get_weight_version")


class Remote:
    """vLLM's four calls of a trainer, and more. Connects when it is used."""

    def __init__(self, socket, process=None):
        self._socket = socket
        self._process = process
        self._connection = None

    def call(self, what, *given):
        if self._connection is None:
            self._connection = self._connect()
        self._connection.send((what, given))
        ok, answer = self._connection.recv()
        if not ok:
            raise Failed(answer)
        return answer

    def _connect(self):
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                return Client(self._socket, "AF_UNIX")
            except (FileNotFoundError, ConnectionRefusedError):
                if time.monotonic() > end or (self._process and self._process.poll() is not None):
                    raise
                time.sleep(0.1)

    def init_weight_transfer_engine(self, init_info):
        self.call("init_weight_transfer_engine", {"init_info": init_info})

    def start_weight_update(self):
        self.call("start_weight_update")

    def update_weights(self, update_info):
        self.call("update_weights", {"update_info": update_info})

    def finish_weight_update(self, weight_version=None):
        self.call("finish_weight_update", weight_version)


class Serving:
    """What an engine's process does with calls."""

    def __init__(self, model, arguments):
        from vllm import LLM
        self._llm = LLM(model=model, **{**ARGUMENTS, **arguments})

    def answer(self, what, given):
        own = getattr(self, what, None)
        return own(*given) if own else getattr(self._llm, what)(*given)

    def tokens(self, prompts):
        from vllm import SamplingParams
        answers = self._llm.generate(
            [{"prompt_token_ids": prompt} for prompt in prompts],
            SamplingParams(temperature=0, detokenize=False, max_tokens=8), use_tqdm=False)
        return [list(answer.outputs[0].token_ids) for answer in answers]

    def on_workers(self, name, *given):
        """A function of `checks.py`, on the model of each worker."""
        import checks
        return self._llm.apply_model(checks.Call(name, given))


class ServingReplicas:
    """The same for data parallel replicas, which vLLM has only behind its asynchronous engine."""

    def __init__(self, model, arguments):
        from vllm import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

        async def start():  # it belongs to the loop in which it is made
            return AsyncLLM.from_engine_args(
                AsyncEngineArgs(model=model, **{**ARGUMENTS, **arguments}))

        self._llm = self._run(start())

    def _run(self, work):
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def answer(self, what, given):
        from vllm.distributed.weight_transfer.base import (WeightTransferInitRequest,
                                                           WeightTransferUpdateRequest)
        if what == "on_workers":
            import checks
            replicas = self._run(self._llm.engine_core.call_utility_all_async(
                "collective_rpc", "apply_model", None, (checks.Call(given[0], given[1:]),), {}))
            return [found for workers in replicas for found in workers]
        asked = {"init_weight_transfer_engine": WeightTransferInitRequest,
                 "update_weights": WeightTransferUpdateRequest}.get(what)
        given = [asked(**given[0])] if asked else given
        return self._run(getattr(self._llm, what)(*given))


def main():
    socket, model, arguments = sys.argv[1:]
    arguments = json.loads(arguments)
    kind = ServingReplicas if arguments.get("data_parallel_size", 1) > 1 else Serving
    serving = kind(model, arguments)
    connections = []
    with Listener(socket, "AF_UNIX") as listener:
        door = listener._listener._socket
        while True:
            for ready in wait([door, *connections]):
                if ready is door:
                    connections.append(listener.accept())
                elif not serve(serving, ready):
                    connections.remove(ready)


def serve(serving, connection):
    """One call; False: nobody is there."""
    try:
        what, given = connection.recv()
        try:
            answer = True, serving.answer(what, given)
        except Exception as error:
            traceback.print_exc()
            answer = False, f"{type(error).__name__}: {error}"
        connection.send(answer)
        return True
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return False


if __name__ == "__main__":
    main()
