"""Dependencies run one way: a file imports only lower ranks and its own folder."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = Path(__file__).parent.parent / "pyshardy"

RANKS = {
    "errors": 0, "core": 1, "rules": 2, "source": 2, "propagation": 3, "costing": 3, "reshard": 4, "ir": 4,
    "explain": 5, "transforms": 5, "compilers": 5, "report": 6, "passes": 6, "frontend": 7, "runtime": 8, "results": 9,
    "searching": 10, "api": 11, "checkup": 12, "testing": 12, "pytest_plugin": 12, "watching": 12, "examples": 12,
    "cli": 13, "__init__": 14, "__main__": 14, "opt": 14,
}  # fmt: skip
PURE = (
    "errors.py", "core/", "rules/", "source/", "propagation/", "costing/", "reshard/", "explain/", "report/",
    "ir/bytecode/", "searching/autopartition/",
)  # fmt: skip
"""Where there is no MLIR and no JAX."""
STANDARD_LIBRARY_ONLY = ("errors.py", "core/", "rules/", "source/", "propagation/", "ir/bytecode/")
"""Where there is nothing but the standard library."""
MOST_ROOMS, MOST_FLOORS, MOST_LINES = 22, 13, 450
MAY_IMPORT_JAX = (
    "frontend/from_jax.py",
    "frontend/jax_",
    "runtime/",
    "api/jit.py",
    "cli/run_command.py",
    "examples/",
    "watching/inside.py",
    "watching/notebook.py",
)

BACK = {
    ("ir.blocks", "ir.op"): "blocks hold ops, ops hold regions of blocks: the names of types alone",
    ("ir.walk", "ir.op"): "the same",
    ("results.propagation", "results.partition"): "either result has the other one, made on first use",
}
"""The imports that run back in a circle of files, and why."""
PRIVATE_TO_ONE_FILE = ("jax._src", "jax.interpreters")
"""What JAX may change at any time; `frontend/jax_private.py` alone knows it, and a test says what broke."""

FILES = sorted(path.relative_to(ROOT) for path in ROOT.rglob("*.py"))


def rank_of(path: Path) -> float:
    return RANKS[path.parts[0].removesuffix(".py")]


def imported_modules(source: str) -> Iterator[str]:
    """The modules that a source imports anywhere in it, also inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports are not used in the package"
            yield node.module or ""


def is_pure(module: str) -> bool:
    """Whether a module of the package, without the package's name, is in the pure half."""
    return f"{module.replace('.', '/')}/".startswith(tuple(f"{one.removesuffix('.py').rstrip('/')}/" for one in PURE))


def breaches(path: Path, source: str) -> list[str]:
    """What a file imports and must not."""
    rank, folder = rank_of(path), path.parts[0].removesuffix(".py")
    found = []
    for module in imported_modules(source):
        top, _, rest = module.partition(".")
        if top == "pyshardy" and str(path).startswith(PURE) and not is_pure(rest):
            found.append(f"{module} in the pure half")
        elif top == "pyshardy":
            target = rest.split(".")[0]
            if target and target != folder and RANKS[target] >= rank:
                found.append(f"{module} (rank {RANKS[target]}) from rank {rank}")
        elif str(path).startswith(PURE) and top in ("jax", "jaxlib"):
            found.append(f"{module} in the pure half")
        elif module.startswith(PRIVATE_TO_ONE_FILE) and str(path) != "frontend/jax_private.py":
            found.append(f"{module} outside of frontend/jax_private.py")
        elif top == "jax" and not str(path).startswith(MAY_IMPORT_JAX):
            found.append(f"{module} outside of {MAY_IMPORT_JAX}")
        elif str(path).startswith(STANDARD_LIBRARY_ONLY) and top not in sys.stdlib_module_names:
            found.append(f"{module}, which is not the standard library")
    return found


def test_files_import_lower_ranks_only() -> None:
    found = {str(path): breaches(path, (ROOT / path).read_text()) for path in FILES}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    "path, source",
    [
        ("core/mesh.py", "from pyshardy.rules.rule import Rule"),
        ("core/mesh.py", "import numpy"),
        ("rules/rule.py", "def f():\n    from jaxlib.mlir import ir"),
        ("passes/base.py", "import jax.numpy"),
        ("passes/base.py", "from pyshardy.api.partition import load"),
        ("transforms/context.py", "from pyshardy.passes.base import Pass"),
        ("runtime/peers.py", "from jax._src.distributed import global_state"),
        ("frontend/jax_ops.py", "from jax.interpreters import mlir"),
    ],
)
def test_breach_is_found(path: str, source: str) -> None:
    assert breaches(Path(path), source)


def test_every_folder_has_a_rank() -> None:
    assert {path.parts[0].removesuffix(".py") for path in FILES} <= set(RANKS)


def test_no_test_finds_its_imports_through_another() -> None:
    """Every file runs by itself: what is imported from beside the package is found through `tests/conftest.py`."""
    changing = re.compile(r"^sys\.path(\.| *\+?=|\[)", re.MULTILINE)
    assert changing.search((TESTS / "conftest.py").read_text())
    assert not [path.name for path in TESTS.rglob("test_*.py") if changing.search(path.read_text())]


def test_the_house_is_small_enough_to_see_through() -> None:
    rooms = {path.parts[0] for path in FILES if len(path.parts) > 1 or path.name == "testing.py"}
    assert len(rooms) <= MOST_ROOMS
    floors = {RANKS[room.removesuffix(".py")] for room in rooms}
    assert len(floors) <= MOST_FLOORS
    assert [str(path) for path in FILES if (ROOT / path).read_text().count("\n") > MOST_LINES] == []


def imported_files(path: Path, source: str, files: Mapping[str, Path]) -> set[str]:
    """The files of the package that a file imports, without those of `BACK`."""
    own = str(path.with_suffix("")).replace("/", ".")
    found = {module.removeprefix("pyshardy.") for module in imported_modules(source)}
    return {module for module in found if module in files and (own, module) not in BACK}


def test_files_import_each_other_in_no_circle() -> None:
    files = {str(path.with_suffix("")).replace("/", "."): path for path in FILES}
    graph = {name: imported_files(path, (ROOT / path).read_text(), files) for name, path in files.items()}
    TopologicalSorter(graph).prepare()
    for one, other in BACK:
        with pytest.raises(CycleError):
            TopologicalSorter({**graph, one: graph[one] | {other}}).prepare()
