"""The package as it is imported: when, how often, beside what, and what comes with it."""

from __future__ import annotations

import _ctypes
import ast
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import sluice
from ranks import LIMIT_SECONDS
from sluice import _sluice

_PACKAGE = Path(sluice.__file__).parent
_SOURCES = Path(__file__).resolve().parents[1]


def run(code: str, *flags: str) -> list[str]:
    """The words that `code` prints, in a Python of its own."""
    done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
                          timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_import_says_nothing() -> None:
    code = "import sluice\nfor name in sluice.__all__: getattr(sluice, name)\nprint('end')"
    assert run(code, "-W", "error") == ["end"]


def test_import_takes_little() -> None:
    # Each of these takes longer than the package.
    slow = ["asyncio", "dataclasses", "http", "inspect", "numpy", "torch", "tqdm", "typing"]
    assert run("import sys; before = set(sys.modules); import sluice\n"
               f"print(*(set({slow}) & (sys.modules.keys() - before)))") == []
    assert run("import sys, sluice; sluice.Session; sluice.sync\n"
               "from sluice import _memory, _state, _capture, _dtensor\n"
               "_memory.describe(bytearray(4), writable=True)\n"
               "print(*({'asyncio', 'http', 'numpy', 'torch', 'tqdm'} & sys.modules.keys()))") == []


def test_every_name_is_there() -> None:
    names = [name for name in sluice.__all__ if getattr(sluice, name).__module__ != "builtins"]
    assert names == sluice.__all__ and set(names) <= set(dir(sluice))
    space: dict[str, Any] = {}
    exec("from sluice import *", space)
    assert set(names) <= set(space)
    assert sluice.Session is space["Session"] is sluice._session.Session
    with pytest.raises(AttributeError, match="module 'sluice' has no attribute 'session'"):
        sluice.session  # type: ignore[attr-defined]
    with pytest.raises(ImportError, match="Sesion"):
        exec("from sluice import Sesion", {})


def imports(body: list[ast.stmt]) -> set[tuple[str | None, str]]:
    return {(node.module, name.name) for node in body if isinstance(node, ast.ImportFrom)
            for name in node.names}


def test_types_see_what_python_sees() -> None:
    tree = ast.parse((_PACKAGE / "__init__.py").read_text())
    typed = next(node for node in tree.body if isinstance(node, ast.If)
                 and ast.unparse(node.test) == "TYPE_CHECKING")
    table = {(module, name) for name, module in sluice._MODULE_OF.items()}
    assert imports(typed.body) == table
    eager = {name for module, name in imports(tree.body) if module == "_errors"}
    assert {name for _, name in table} | eager - {"from_status"} == set(sluice.__all__)


def test_first_use_in_many_threads() -> None:
    assert run("""
import sys, threading
sys.setswitchinterval(1e-6)
import sluice
start, found = threading.Barrier(8), []
def use(first):
    start.wait()
    names = sluice.__all__[first:] + sluice.__all__[:first]
    found.append({name: getattr(sluice, name) for name in names})
threads = [threading.Thread(target=use, args=(5 * i,)) for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(found), all(one == found[0] for one in found))
""") == ["8", "True"]


_MISTAKE = """
try: sluice._sluice.Layout([2], [0], ["R"])
except sluice.InvalidSpec as error: print(error.code)
"""
_CODE = "INVALID_ARGUMENT"  # of the mistake


def test_import_again() -> None:
    assert run("import importlib, sluice\nold = sluice.Error, sluice.Session\n"
               "importlib.reload(sluice)\n"
               f"print(old == (sluice.Error, sluice.Session)){_MISTAKE}") == ["True", _CODE]


def test_module_is_loaded_once() -> None:
    # Its types are known to the whole process.
    assert run(f"""
import sys, sluice
first = sluice
for name in [name for name in sys.modules if name.split(".")[0] == "sluice"]: del sys.modules[name]
try: import sluice as second
except ImportError as error: print("once in a process" in str(error))
sluice = first{_MISTAKE}""") == ["True", _CODE]


_IN_SUBINTERPRETER = """
import warnings
warnings.simplefilter("ignore")
import sluice
try: import _interpreters as interpreters  # from 3.13 on
except ImportError: import _xxsubinterpreters as interpreters
code = '''
try: import sluice
except ImportError: print("refused")
else: print("imported")
'''
for i in range(2):
    child = interpreters.create()
    error = (getattr(interpreters, "exec", None) or interpreters.run_string)(child, code)
    if error is not None: print(error)
    interpreters.destroy(child)
"""


def test_subinterpreter() -> None:
    # It is refused, and the main interpreter goes on.
    assert run(_IN_SUBINTERPRETER + _MISTAKE) == ["refused", "refused", _CODE]


@pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
def test_module_shows_its_entry_alone() -> None:
    # What else it shows might be taken for another module's, and the other way round.
    done = subprocess.run(["nm", "-D", "--defined-only", _sluice.__file__], capture_output=True,
                          text=True, check=True)
    assert [line.split()[-1] for line in done.stdout.splitlines()] == ["PyInit__sluice"]


def test_error_says_why_libcurl_cannot_be_used(tmp_path: Path) -> None:
    shutil.copy(_ctypes.__file__, tmp_path / "libcurl.so.4")  # a library that is not libcurl
    code = """
import numpy, sluice
with sluice.Session.from_exchange(0, 1, lambda own: [own]) as session:
    try:
        session.load("http://127.0.0.1:1/x/", {"w": numpy.zeros(2)})
    except sluice.Error as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path),
                               "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})
    assert "libcurl cannot be used: libcurl ? is too old" in done.stdout, done


def test_version() -> None:
    in_cmake = re.compile(r"\bproject\(sluice\w*\s+VERSION (\S+)")
    texts = [in_cmake.search((_SOURCES / name).read_text()) for name in
             ("CMakeLists.txt", "../CMakeLists.txt")]
    texts.append(re.search(r'^version = "(.*)"$', (_SOURCES / "pyproject.toml").read_text(), re.M))
    assert [text and text[1] for text in texts] == [sluice.__version__] * 3
    try:
        installed = importlib.metadata.version("sluice-mesh")
    except importlib.metadata.PackageNotFoundError:
        return  # the sources are tested, with a module from elsewhere
    assert installed == sluice.__version__


def test_typed() -> None:
    assert (_PACKAGE / "py.typed").is_file()
    tree = ast.parse((_PACKAGE / "_sluice.pyi").read_text())
    stubs = {name: node for node in tree.body for name in _names(node)}
    real = {name: value for name, value in vars(_sluice).items() if not name.startswith("_")}
    assert stubs.keys() == real.keys()
    for name, node in stubs.items():
        if isinstance(node, ast.ClassDef):
            members = {member for line in node.body for member in _names(line)}
            assert members == {member for member in vars(real[name]) if not member.startswith("_")}


def _names(node: ast.stmt) -> list[str]:
    """What a statement of a stub says is there, but for what begins with an underscore."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        names = [node.name]
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        names = [node.target.id]
    else:
        return []
    return [name for name in names if not name.startswith("_")]
