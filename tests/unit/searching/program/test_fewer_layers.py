"""Versions of a program with a few of its layers."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.errors import UsageError
from pyshardy.searching.program.fewer_layers import FewerLayers, LayerGroup, layer_groups
from pyshardy.searching.program.layers import find_families, top_ops

from .test_layers import two_ways

S = "tensor<8x8xf32>"


def chain(counts: dict[str, int]) -> str:
    """A chain of ops, so many of each name."""
    lines = [name for name, count in counts.items() for _ in range(count)]
    body = "\n".join(f"%a{at + 1} = stablehlo.{name} %a{at} : {S}" for at, name in enumerate(lines))
    return f"func.func @main(%a0: {S}) -> {S} {{\n{body}\nreturn %a{len(lines)} : {S}\n}}"


@pytest.mark.parametrize("count", [2, 5, 7])
def test_a_version_has_so_many_layers(count: int) -> None:
    module = pyshardy.load(two_ways(12))
    short = FewerLayers(module).with_layers([count])
    assert len(top_ops(short.root)) == count * 5
    assert len(top_ops(module.root)) == 12 * 5


def test_groups_are_shortened_apart() -> None:
    fewer = FewerLayers(pyshardy.load(chain({"tanh": 14, "negate": 20})))
    assert [group.size for group in fewer.groups] == [20, 14]
    assert fewer.versions() == [(2, 2), (5, 5), (7, 5), (5, 7)]
    names = [op.name for op in top_ops(fewer.with_layers([5, 3]).root)]
    assert (names.count("stablehlo.negate"), names.count("stablehlo.tanh")) == (5, 3)


def test_a_family_with_few_layers_stays_whole() -> None:
    fewer = FewerLayers(pyshardy.load(chain({"tanh": 6, "negate": 20})))
    assert [group.size for group in fewer.groups] == [20]
    names = [op.name for op in top_ops(fewer.with_layers([3]).root)]
    assert (names.count("stablehlo.negate"), names.count("stablehlo.tanh")) == (3, 6)


def test_families_that_differ_by_one_layer_lose_as_many() -> None:
    module = pyshardy.load(chain({"tanh": 16, "negate": 15}))
    assert layer_groups(find_families(module.root))[0].size == 16
    (group,) = FewerLayers(module).groups
    assert isinstance(group, LayerGroup) and len(group.families) == 2
    names = [op.name for op in top_ops(FewerLayers(module).with_layers([5]).root)]
    assert (names.count("stablehlo.tanh"), names.count("stablehlo.negate")) == (5, 4)


LOOP = f"""func.func @main(%x: {S}, %n: tensor<i32>) -> {S} {{
  %c = stablehlo.constant dense<0> : tensor<i32>
  %r:2 = stablehlo.while(%a = %x, %i = %c) : {S}, tensor<i32>
  cond {{
    %t = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{
    %y = stablehlo.tanh %a : {S}
    stablehlo.return %y, %i : {S}, tensor<i32>
  }}
  return %r#0 : {S}
}}"""


@pytest.mark.parametrize(
    ("text", "got"),
    [
        (chain({"tanh": 3}), "no layers that repeat"),
        (two_ways(6), "no layers that repeat"),
        (LOOP, "layers in a loop, of which one is compiled anyway"),
    ],
)
def test_a_program_without_many_layers_is_refused(text: str, got: str) -> None:
    with pytest.raises(UsageError) as refused:
        FewerLayers(pyshardy.load(text))
    assert str(refused.value) == (
        f"compiling a program with fewer of its layers: got {got}, needed at least 12 layers that are unrolled\n"
        "  try: compile it whole"
    )
