"""Dependencies run one way: a file imports only lower ranks and its own folder."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ROOT = Path(__file__).parent.parent / "pyshardy"

RANKS = {
    "errors": 0, "core": 1, "bytecode": 1, "rules": 2, "graph": 3, "propagation": 4, "reshard": 5, "costing": 6,
    "autopartition": 7, "explain": 8, "report": 9, "ir": 10, "transforms": 11, "passes": 12, "compilers": 13,
    "frontend": 14, "runtime": 15, "results": 16, "api": 17, "running": 18, "estimating": 18, "confirming": 19,
    "differing": 18, "examples": 18, "locking": 19, "planning": 19, "watching": 19, "checkup": 20, "testing": 20,
    "pytest_plugin": 20, "searching": 20, "jitted": 20, "notebook": 20, "cli": 21, "__init__": 22, "__main__": 22,
    "opt": 22,
}  # fmt: skip
PURE = 9
"""Up to this rank there is no MLIR and no JAX."""
STANDARD_LIBRARY_ONLY = 4
"""Up to this rank there is nothing but the standard library."""
MAY_IMPORT_JAX = (
    "frontend/from_jax.py",
    "frontend/jax_",
    "runtime/",
    "jitted.py",
    "cli/run_command.py",
    "examples/",
    "watching/inside.py",
    "notebook.py",
)

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


def breaches(path: Path, source: str) -> list[str]:
    """What a file imports and must not."""
    rank, folder = rank_of(path), path.parts[0].removesuffix(".py")
    found = []
    for module in imported_modules(source):
        top, _, rest = module.partition(".")
        if top == "pyshardy":
            target = rest.split(".")[0]
            if target and target != folder and RANKS[target] >= rank:
                found.append(f"{module} (rank {RANKS[target]}) from rank {rank}")
        elif rank <= PURE and top in ("jax", "jaxlib"):
            found.append(f"{module} in the pure half")
        elif module.startswith(PRIVATE_TO_ONE_FILE) and str(path) != "frontend/jax_private.py":
            found.append(f"{module} outside of frontend/jax_private.py")
        elif top == "jax" and not str(path).startswith(MAY_IMPORT_JAX):
            found.append(f"{module} outside of {MAY_IMPORT_JAX}")
        elif rank <= STANDARD_LIBRARY_ONLY and top not in sys.stdlib_module_names:
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
