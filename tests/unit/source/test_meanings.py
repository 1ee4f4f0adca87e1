"""What the names in a file stand for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pyshardy.source.meanings import is_literal, literal, mark, name_of
from pyshardy.source.syntax import syntax_tree


def value_of(code: str, name: str = "found") -> object:
    """The literal that the last assignment to a name has, in this code."""
    tree = mark(ast.parse(code), {})
    *_, last = (node for node in ast.walk(tree) if isinstance(node, ast.Assign) and name_of(node.targets[0]) == name)
    return literal(last.value) if is_literal(last.value) else "unknown"


@pytest.mark.parametrize(
    "code, value",
    [
        ("BATCH = ('data', 'fsdp')\nfound = (BATCH, None)", (("data", "fsdp"), None)),
        ("BATCH = ('data', 'fsdp')\nROWS = BATCH + ('x',)\nfound = [*ROWS, 'y']", ("data", "fsdp", "x", "y")),
        ("AXES: tuple = 'a', 'b'\ndef f():\n    found = AXES", ("a", "b")),
        ("def f():\n    names = ('a', None)\n    found = names", ("a", None)),
        ("ROWS, COLUMNS = 'x', 'y'\nfound = COLUMNS, ROWS", ("y", "x")),
        ("BATCH = 'a'\nBATCH = 'b'\nfound = BATCH", "unknown"),
        ("BATCH = 'a'\ndef f(BATCH):\n    found = BATCH", "unknown"),
        ("BATCH = 'a'\nfor BATCH in names:\n    found = BATCH", "unknown"),
        ("BATCH = 'a'\ndef f():\n    global BATCH\n    BATCH = 'b'\n    found = BATCH", "unknown"),
        ("class A:\n    axes = 'a'\n    def f(self):\n        found = axes", "unknown"),
        ("def f():\n    axes = 'a'\ndef g():\n    found = axes", "unknown"),
        (
            "class Config:\n    batch: tuple = ('a', 'b')\ndef f(self, cfg):\n    found = cfg.batch, self.cfg.batch",
            (("a", "b"),) * 2,
        ),
        ("class A:\n    axis = 'a'\nclass B:\n    axis = 'b'\nfound = A().axis", "unknown"),
        ("class Config:\n    batch: tuple\nfound = cfg.batch", "unknown"),
        ("found = call('a')", "unknown"),
        ("found = 'a' + 'b'", "unknown"),
    ],
)
def test_a_variable_that_is_assigned_once_is_its_value(code: str, value: object) -> None:
    assert value_of(code) == value


def test_variables_of_files_that_are_imported(tmp_path: Path) -> None:
    """By their names, under other names, and as attributes of the module; a change of that file counts at once."""
    (tmp_path / "axes.py").write_text("BATCH = ('data', 'fsdp')\nMODEL = 'tensor'\nclass C:\n    experts: str = 'ep'\n")
    file = tmp_path / "model.py"
    file.write_text(
        "import axes as a\nfrom axes import BATCH as B, MODEL\nfound = (B, MODEL, a.MODEL, cfg.experts, a.OTHER)\n"
    )

    def entries() -> list[object]:
        tree = syntax_tree(str(file))
        assert tree is not None
        (assign,) = (node for node in tree.body if isinstance(node, ast.Assign))
        assert isinstance(assign.value, ast.Tuple)
        return [literal(one) if is_literal(one) else "unknown" for one in assign.value.elts]

    assert entries() == [("data", "fsdp"), "tensor", "tensor", "ep", "unknown"]
    (tmp_path / "axes.py").write_text("BATCH = ('data',)\nMODEL = 'model'\n")
    assert entries() == [("data",), "model", "model", "unknown", "unknown"]


@pytest.mark.parametrize(
    "code, name",
    [
        ("from jax.lax import with_sharding_constraint as wsc\nwsc(x, s)", "with_sharding_constraint"),
        ("constrain = jax.lax.with_sharding_constraint\nconstrain(x, s)", "with_sharding_constraint"),
        ("logical = nn.with_logical_constraint\ndef f(x):\n    return logical(x, n)", "with_logical_constraint"),
        ("wsc = jax.lax.with_sharding_constraint\ndef f(wsc):\n    return wsc(x, s)", "wsc"),
        ("act = nn.gelu\nact(x)", "act"),
    ],
)
def test_a_function_under_another_name(code: str, name: str) -> None:
    calls = [node for node in ast.walk(mark(ast.parse(code), {})) if isinstance(node, ast.Call)]
    assert [name_of(call.func) for call in calls] == [name]
