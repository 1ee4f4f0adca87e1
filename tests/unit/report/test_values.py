"""Looking up values by name, line, scope, function and op, and their table."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.errors import UsageError
from pyshardy.report.layout import Cell, Column, Table
from pyshardy.report.printing import TableOptions, plain_text
from pyshardy.report.specs import Notation
from pyshardy.report.value_row import INPUT, OP, OUTPUT, Frame, ValueRow, short_scope
from pyshardy.report.values import ValuePattern, Values

ROWS = parse_sharding('<@mesh, [{"data"}, {}]>')
HALVES = parse_sharding('<@mesh, [{"data":(1)2}, {}]>')
FRAMES = (
    Frame("apply", ("/x/site-packages/flax/linear.py", 287, 8)),
    Frame("Block.attend", ("/home/me/model.py", 41, 4)),
    Frame("step", ("/home/me/train.py", 9, 2)),
)


def row(name: str, kind: str = OP, op: str | None = "stablehlo.dot_general", **changes: object) -> ValueRow:
    made = ValueRow(
        name, kind, op, FRAMES if kind == OP else (), shape=(8, 4), dtype="f32", sharding=ROWS,
        local_shape=(2, 4), bytes_total=128, bytes_per_device=32, is_given=False, origins=("x",),
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


VALUES = Values(
    "module @jit_f",
    (("mesh", Mesh([("data", 4)])),),
    (
        row("params['layers'][0]['w1']", INPUT, None, is_given=True, origins=()),
        row("x", INPUT, None, is_given=True, origins=()),
        row("jvp(attention)/dot_general"),
        row("mlp/tanh", op="stablehlo.tanh", sharding=HALVES),
        row("result", OUTPUT),
    ),
)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("x", ["x"]),
        ("params", ["params['layers'][0]['w1']"]),
        ("params['layers'][*]['w1']", ["params['layers'][0]['w1']"]),
        ("params.layers.*.w1", ["params['layers'][0]['w1']"]),
        ("params.*.w2", []),
        ("attention*", ["jvp(attention)/dot_general"]),
        ("attention", ["jvp(attention)/dot_general"]),
        ("tention", []),
        ("attention/dot_general", []),
        ("mlp/tanh", ["mlp/tanh"]),
        ("tanh", ["mlp/tanh"]),
        ("stablehlo.*", ["jvp(attention)/dot_general", "mlp/tanh", "result"]),
        ("model.py:41", ["jvp(attention)/dot_general", "mlp/tanh"]),
        ("me/model.py:41:4", ["jvp(attention)/dot_general", "mlp/tanh"]),
        ("*/train.py:9", ["jvp(attention)/dot_general", "mlp/tanh"]),
        ("flax/linear.py:287", ["jvp(attention)/dot_general", "mlp/tanh"]),
        ("model.py:41:5", []),
        ("odel.py:41", []),
        ("model.py:4", []),
        ("*.attend", ["jvp(attention)/dot_general", "mlp/tanh"]),
        ("[", []),
    ],
)
def test_what_a_pattern_names(pattern: str, expected: list[str]) -> None:
    fits = ValuePattern(pattern)
    assert [found.name for found in VALUES if fits(found)] == expected


def test_by_number_and_by_text() -> None:
    assert VALUES[1].name == "x"
    assert [found.name for found in VALUES[-2:]] == ["mlp/tanh", "result"]
    assert [found.name for found in VALUES["mlp"]] == ["mlp/tanh"]
    assert len(VALUES["*"]) == len(VALUES) == 5


def test_an_unknown_name_gets_the_nearest_ones() -> None:
    with pytest.raises(UsageError, match=r"got 'atention\*'.*\n.*try: .*attention"):
        VALUES["atention*"]
    with pytest.raises(UsageError, match="model.py:41"):
        VALUES["model.py:14"]


def test_who_gave_it() -> None:
    assert [found.given_by for found in VALUES] == ["user", "user", "propagation", "propagation", "propagation"]
    assert row("y", sharding=None).given_by == ""
    assert row("y", is_given=True).given_by == "user"


def test_the_place_is_the_line_of_the_user() -> None:
    assert VALUES[2].place == ("/home/me/model.py", 41, 4)
    assert VALUES[0].place is None


def test_specs_and_data() -> None:
    assert repr(VALUES[3].spec) == "PartitionSpec('data:(1)2', None)"
    data = VALUES["tanh"].to_json()
    assert data["version"] == 1
    (found,) = data["values"]
    assert (found["sharding"], found["spec"], found["mesh"]) == ('[{"data":(1)2}, {}]', None, "mesh")
    assert found["source"] == {"file": "/home/me/model.py", "line": 41, "column": 4}
    assert (found["given_by"], found["origins"]) == ("propagation", ["x"])


def test_alike_values_share_a_row_and_layers_fold() -> None:
    layers = [row(f"layer_{number}/dot_general", origins=(f"w[{number}]",)) for number in range(4) for _ in range(2)]
    text = plain_text(Values("f", (), tuple(layers)).tables(), 200)
    assert "8 values of f, 8 sharded" in text
    assert "layer_0..3/dot_general  ×8" in text
    assert "w[0..3]" in text
    assert len(text.splitlines()) == 4
    unfolded = plain_text(Values("f", (), tuple(layers)).tables(TableOptions(unfold=True)), 200)
    assert len(unfolded.splitlines()) == 3 + 8


def test_the_notation_counts() -> None:
    found = Values("f", (), (row("a"),))
    assert "P('data')" in plain_text(found.tables())
    assert '[{"data"}, {}]' in plain_text(found.tables(TableOptions(Notation.SDY)))


def test_extra_columns_go_before_cells_get_shorter() -> None:
    table = Table(
        "", (Column("name"), Column("why", 1), Column("more", 2, is_extra=True)),
        [(Cell("x"), Cell("because of y", short="y"), Cell("abcdefgh"))],
    )  # fmt: skip
    lines = [[str(line) for line in table.lines(width)][-1] for width in (40, 20, 14, 8)]
    assert lines == ["x     because of y  abcdefgh", "x     because of y", "x     y    abcdefgh"[:9].rstrip(), "x"]


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        ("jit(f)/jit(main)/mlp/tanh", "mlp/tanh"),
        ("jit(f)/jvp(mlp)/tanh", "jvp(mlp)/tanh"),
        ("tanh", "tanh"),
        ("jit(f)/", None),
        (None, None),
    ],
)
def test_what_stands_around_all_ops_is_left_out(scope: str | None, expected: str | None) -> None:
    assert short_scope(scope) == expected
