"""Partition specs with all that a sharding can say."""

from __future__ import annotations

import pytest
from hypothesis import given

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.spec import PartitionSpec, format_spec, parse_spec
from pyshardy.errors import InvalidShardingError, NotationError

from ...property.strategies import on_a_mesh, tensor_shardings


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (PartitionSpec(), "[{}, {}, {}]"),
        (PartitionSpec("x"), '[{"x"}, {}, {}]'),
        (PartitionSpec(None, ("x", "y"), ()), '[{}, {"x", "y"}, {}]'),
        (PartitionSpec(PartitionSpec.UNCONSTRAINED, ("x", "?")), '[{?}, {"x", ?}, {}]'),
        (PartitionSpec("x:(2)4", AxisRef("y", 1, 2)), '[{"x":(2)4}, {"y":(1)2}, {}]'),
        (PartitionSpec(None, "x", "y", priorities=(None, 0, 1)), '[{}, {"x"}p0, {"y"}p1]'),
        (PartitionSpec("?", priorities=(3,)), "[{?}p3, {}, {}]"),
        (PartitionSpec("x", replicated="y", unreduced=["z"]), '[{"x"}, {}, {}], replicated={"y"}, unreduced={"z"}'),
    ],
)
def test_what_a_spec_says(spec: PartitionSpec, text: str) -> None:
    assert spec.sharding("mesh", 3) is parse_sharding(f"<@mesh, {text}>")
    assert eval(repr(spec)) is spec


@given(on_a_mesh(tensor_shardings))
def test_a_spec_forgets_the_mesh_alone(drawn: tuple[Mesh, TensorSharding]) -> None:
    _, sharding = drawn
    if sharding.unreduced and sharding.reduction.value != "sum":
        with pytest.raises(InvalidShardingError, match="needed partial sums"):
            PartitionSpec.of(sharding)
    else:
        spec = PartitionSpec.of(sharding)
        assert spec.sharding(sharding.mesh, sharding.rank) is sharding
        assert eval(repr(spec)) is spec


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PartitionSpec("x", "x"), 'axis "x" twice'),
        (lambda: PartitionSpec(None, priorities=(0,)), "priority 0 on an empty closed dimension"),
        (lambda: PartitionSpec("x", priorities=(0, 1)), "got 2 priorities, needed at most 1, one per entry"),
        (lambda: PartitionSpec(3), "got the entry 3, needed None, an axis, several axes"),
        (lambda: PartitionSpec(("?", "x")), "got the entry '\\?'"),
        (lambda: PartitionSpec("x").sharding("mesh", 0), "got 1 entries, needed at most 0"),
    ],
)
def test_what_is_no_spec(make, message: str) -> None:
    with pytest.raises(InvalidShardingError, match=message):
        make()


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        ("", PartitionSpec()),
        ("None,model", PartitionSpec(None, "model")),
        (" data + model:(1)2 @1 ", PartitionSpec(("data", "model:(1)2"), priorities=(1,))),
        ("data+model:(1)2@1,?", PartitionSpec(("data", "model:(1)2"), "?", priorities=(1,))),
        ("?@2", PartitionSpec("?", priorities=(2,))),
    ],
)
def test_text(text: str, spec: PartitionSpec) -> None:
    assert parse_spec(text) is spec


@pytest.mark.parametrize("text", [",", "x,", "x+", "+x,None"])
def test_text_that_is_none(text: str) -> None:
    with pytest.raises(NotationError, match="reading a PartitionSpec"):
        parse_spec(text)


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        ([], "P()"),
        ([(), ()], "P()"),
        ([("a",), ()], "P('a')"),
        ([(), ["a", "b"], ("c",)], "P(None, ('a', 'b'), 'c')"),
        ([("it's",)], """P("it's")"""),
        ([(), PartitionSpec.UNCONSTRAINED, ()], "P(None, P.UNCONSTRAINED)"),
    ],
)
def test_a_spec_as_python_writes_it(entries: list[tuple[str, ...]], text: str) -> None:
    assert format_spec(entries) == text
    assert format_spec(entries, "jax.P") == text.replace("P(", "jax.P(").replace("P.UN", "jax.P.UN")
    read = [*eval(text, {"P": lambda *found: found, "__builtins__": {}})] if "UNCON" not in text else None
    wanted = [entry[0] if len(entry) == 1 else tuple(entry) or None for entry in entries]
    assert read is None or read + [None] * (len(entries) - len(read)) == wanted
