"""Patches of source lines: what can be written into a line, and what is told instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.report.constraints import PlanConstraint
from pyshardy.report.patch import patch
from pyshardy.source.assignments import SourceSpan, assignments

SOURCE = '''\
"""A model."""

from __future__ import annotations

import jax.numpy
from jax.sharding import PartitionSpec as P


def f(x):
    y = jnp.tanh(
        x
    )
    é = y + 1
    a = 1; b = é * 2
    return b * (
        y
    )
'''


def constraint(file: Path, name: str, line: int) -> PlanConstraint:
    found = assignments(str(file), file.read_text().splitlines(keepends=True))
    span = next(one.span for one in found.values() if one.name == name and one.line == line)
    return PlanConstraint(name, "f", *span, (8, 8), "f32", (("data",), ("a", "b")), 1, 0.1, 0.0)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(SOURCE)
    return tmp_path / "model.py"


def added(text: str) -> list[str]:
    return [line[1:].rstrip() for line in text.splitlines() if line.startswith("+") and not line.startswith("+++")]


def test_lines_come_behind_assignments_and_around_returned_values(file: Path) -> None:
    text = patch([constraint(file, "y", 10), constraint(file, "é", 13), constraint(file, "", 15)])
    assert text.startswith("--- a/model.py\n+++ b/model.py\n")
    assert added(text) == [
        '    y = jax.lax.with_sharding_constraint(y, P("data", ("a", "b")))',
        '    é = jax.lax.with_sharding_constraint(é, P("data", ("a", "b")))',
        "    return jax.lax.with_sharding_constraint(b * (",
        '    ), P("data", ("a", "b")))',
    ]


def test_a_file_without_jax_imports_it(file: Path) -> None:
    file.write_text(SOURCE.replace("import jax.numpy\nfrom jax.sharding import PartitionSpec as P\n", "import os\n"))
    text = patch([constraint(file, "y", 9)])
    assert added(text) == [
        "import jax",
        '    y = jax.lax.with_sharding_constraint(y, jax.sharding.PartitionSpec("data", ("a", "b")))',
    ]


def test_statements_that_are_not_alone_are_told(file: Path) -> None:
    text = patch([constraint(file, "b", 14), constraint(file, "y", 10)])
    assert text.startswith("after model.py:14: b = jax.lax.with_sharding_constraint(b, P('data', ('a', 'b')))\n--- a/")
    assert len(added(text)) == 1


def test_a_file_that_has_changed_or_is_gone_is_told(file: Path) -> None:
    one = constraint(file, "y", 10)
    file.write_text(f"\n{SOURCE}")
    assert patch([one]).startswith("after model.py:10: y = ") and "@@" not in patch([one])
    file.unlink()
    assert patch([one]).startswith("after model.py:10: y = ") and "@@" not in patch([one])
    assert patch([]) == ""


def test_what_is_no_python_has_no_assignments() -> None:
    assert assignments("f.mlir", ["func.func @main() {\n"]) == {}
    found = assignments("f.py", ["a, b = 1, 2\n", "c = d = 3\n", "e.f = 4\n", "g: int = 5\n", "h: int\n"])
    assert [one.name for one in found.values()] == ["g"]


def test_an_expression_is_a_part_of_itself_and_not_of_others() -> None:
    span = SourceSpan("f.py", 3, 4, 5, 10)
    assert span.contains(span) and span.contains(SourceSpan("f.py", 4, 0, 4, 90))
    assert not span.contains(SourceSpan("f.py", 3, 3, 5, 10)) and not span.contains(SourceSpan("g.py", 4, 0, 4, 9))


MESH = {"data": 4, "a": 2, "b": 1}


def on_a_mesh(file: Path, others: dict[str, str]) -> list[str]:
    for name, text in others.items():
        (file.parent / name).write_text(text)
    line = file.read_text().splitlines().index("    y = jnp.tanh(") + 1
    return added(patch([constraint(file, "y", line)], MESH))


def test_a_mesh_of_a_file_that_is_imported_is_used(file: Path) -> None:
    file.write_text(SOURCE.replace("import jax.numpy\n", "import jax\nfrom layout import put\n"))
    found = on_a_mesh(file, {"layout.py": "import jax\nmesh: Mesh = jax.make_mesh((4, 2), ('data', 'a'))\n"})
    assert found == [
        "from layout import mesh",
        '    y = jax.lax.with_sharding_constraint(y, jax.sharding.NamedSharding(mesh, P("data", ("a", "b"))))',
    ]


def test_a_mesh_that_is_imported_already_is_used(file: Path) -> None:
    file.write_text(SOURCE.replace("import jax.numpy\n", "import jax\nfrom layout import mesh\nuse(mesh)\n"))
    (line,) = on_a_mesh(file, {"layout.py": "mesh = make_mesh((4, 2), ('data', 'a'))\n"})
    assert 'NamedSharding(mesh, P("data", ("a", "b")))' in line


def test_a_name_that_means_something_else_is_not_imported(file: Path) -> None:
    file.write_text(SOURCE.replace("import jax.numpy\n", "import jax\nfrom layout import put\nmesh = put()\n"))
    (line,) = on_a_mesh(file, {"layout.py": "mesh = make_mesh((4, 2), ('data', 'a'))\n"})
    assert 'AbstractMesh((4, 2, 1), ("data", "a", "b"), (jax.sharding.AxisType.Auto,) * 3)' in line


def test_where_no_file_has_the_mesh_it_is_written_without_devices(file: Path) -> None:
    file.write_text(SOURCE.replace("import jax.numpy\n", "import jax\n"))
    (line,) = on_a_mesh(file, {})
    named = 'jax.sharding.NamedSharding(jax.sharding.AbstractMesh((4, 2, 1), ("data", "a", "b"), '
    assert line.startswith(f"    y = jax.lax.with_sharding_constraint(y, {named}")


def test_a_file_that_constrains_by_specs_alone_has_a_context(file: Path) -> None:
    more = "import jax\nwith_sharding_constraint(1, P('data'))\n"
    file.write_text(SOURCE.replace("import jax.numpy\n", more))
    assert on_a_mesh(file, {}) == ['    y = jax.lax.with_sharding_constraint(y, P("data", ("a", "b")))']
