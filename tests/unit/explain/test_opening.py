"""What an explanation says that opens a closed dimension, opens it."""

from __future__ import annotations

import shlex

import jax
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from golden.situations import PROGRAMS, SITUATIONS, Situation
from pyshardy.cli.files import shardings_of
from pyshardy.core.notation import parse_sharding
from pyshardy.explain.explanation import Explanation, Opening
from pyshardy.explain.opening import port_path
from pyshardy.ir.module import Module

HEAD = 'sdy.mesh @mesh = <["x"=4, "y"=2]>\n'


def program(argument: str, name: str = "w") -> Module:
    return pyshardy.load(
        HEAD
        + f"""func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<{argument}>}} loc("{name}"),
                 %b: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}} loc("other")) -> tensor<8x8xf32> {{
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}"""
    )


def explain(module: Module, value: str) -> Explanation:
    return pyshardy.propagate(module, trace=True).explain(value)


def closed_dims(explanation: Explanation) -> set[tuple[int, int]]:
    """The values of an explanation and their dimensions that stay whole because they are closed."""
    return {
        (number, dim.dim)
        for number, value in enumerate(explanation.values)
        for dim in value.dims
        if any(reason.kind == "closed" for reason in dim.reasons)
    }


def pasted(opening: Opening) -> dict[str, str | None]:
    """What the printed option gives to `annotate`, after a shell has read it."""
    printed = opening.text.partition("--shard")[2].rpartition(", or in Python ")[0]
    (word,) = shlex.split(printed)
    return shardings_of([word], "--shard")


def called(opening: Opening) -> dict[str, str]:
    """What the printed call gives to `annotate`."""
    given: dict[str, str] = eval(opening.text.rpartition("module.annotate(")[2].removesuffix(")"))
    return given


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda one: one.name)
def test_the_printed_option_opens_the_dimensions(situation: Situation) -> None:
    module = pyshardy.load((PROGRAMS / f"{situation.name}.mlir").read_text())
    for ask in situation.asks:
        explanation = explain(module, ask)
        for opening in explanation.openings:
            wanted = {(number, dim) for number in opening.values for dim in opening.dims}
            assert wanted & closed_dims(explanation)
            if opening.option is not None:
                assert pasted(opening) == called(opening)
                assert opening.option in str(explanation)
                assert not wanted & closed_dims(explain(module.annotate(pasted(opening)), ask))
        told = {number for opening in explanation.openings for number in opening.values}
        assert told == {number for number, _ in closed_dims(explanation)}


@pytest.mark.parametrize(
    ("sharding", "name", "option"),
    [
        ('@mesh, [{"x"}, {}]', "w", "--shard 'w=x,?'"),
        ("@mesh, [{}, {}]", "w", "--shard 'w=?,?'"),
        ('@mesh, [{"x":(1)2}, {}]', "w", "--shard 'w=x:(1)2,?'"),
        ('@mesh, [{"x"}p1, {}]', "params['w']", "--shard 'params.w=x@1,?'"),
        ('@mesh, [{}, {}], replicated={"x"}', "w", """--shard 'w=<@mesh, [{?}, {?}], replicated={"x"}>'"""),
        ('@mesh, [{"x"}, {}]', "p['a.b']", """--shard 'p['"'"'a.b'"'"']=x,?'"""),
        ('@mesh, [{"x"}, {}]', "a=b", None),
    ],
)
def test_what_an_input_has_stays(sharding: str, name: str, option: str | None) -> None:
    module = program(sharding, name)
    explanation = explain(module, name)
    (opening,) = explanation.openings
    assert opening.option == option
    assert opening.name is not None
    given = {opening.name: opening.spec}
    assert called(opening) == given
    assert option is None or pasted(opening) == given
    changed = explain(module.annotate(given), name)
    assert not closed_dims(changed)
    assert [dim.sharding for dim in changed.values[0].dims] == [
        '"x":(1)2' if "(1)2" in sharding else '"x"' if '{"x"' in sharding.partition("replicated")[0] else "whole",
        '"y"',
    ]


def test_of_several_meshes_the_one_is_named() -> None:
    other = (
        program('@mesh, [{"x"}, {}]').text().replace("sdy.mesh @mesh", 'sdy.mesh @other = <["z"=8]>\nsdy.mesh @mesh')
    )
    module = pyshardy.load(other)
    (opening,) = explain(module, "arg0").openings
    assert opening.spec == '<@mesh, [{"x"}, {?}]>'
    assert not closed_dims(explain(module.annotate(pasted(opening)), "arg0"))


def test_an_annotation_is_named_once() -> None:
    text = str(explain(program("@mesh, [{}, {}]"), "w"))
    assert (text.count("because it is closed"), text.count("to open"), text.count("--shard")) == (2, 1, 1)


def test_nothing_is_said_where_nothing_is_closed() -> None:
    explanation = explain(program('@mesh, [{"x", ?}, {?}]'), "w")
    assert explanation.openings == ()
    assert "--shard" not in str(explanation)


def test_the_printed_spec_opens_a_constraint() -> None:
    mesh = AbstractMesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def module(spec: P) -> Module:
        def step(x: jax.Array, w: jax.Array) -> jax.Array:
            return jax.lax.with_sharding_constraint(x * 2, NamedSharding(mesh, spec)) @ w

        x = jax.ShapeDtypeStruct((8, 8), "float32")
        return pyshardy.load(step, x, x, mesh=mesh, in_shardings=(None, NamedSharding(mesh, P("model"))))

    explanation = explain(module(P("data", None)), "sharding_constraint")
    (opening,) = explanation.openings
    head, _, spec = opening.text.partition(", write ")
    assert head.startswith("to open dimension 1 of the sharding constraint at test_opening.py:")
    changed = explain(module(eval(spec, {"P": P})), "sharding_constraint")
    assert not closed_dims(changed)
    assert [dim.sharding for dim in changed.values[0].dims] == ['"data"', '"model"']


def test_manual_computations_have_specs() -> None:
    mesh = AbstractMesh((2, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)

    def step(x: jax.Array) -> jax.Array:
        return jax.shard_map(lambda part: part * 2, mesh=mesh, in_specs=P("data"), out_specs=P("data"))(x)

    module = pyshardy.load(step, jax.ShapeDtypeStruct((8, 8), "float32"), mesh=mesh)
    explanation = explain(module, "manual computation")
    (opening,) = explanation.openings
    assert opening.option is None
    assert opening.text.startswith("to split dimension 1 of result 0 of the manual computation at test_opening.py:")
    assert opening.text.endswith(", name an axis there in its specs")


@pytest.mark.parametrize("name", ["w", "params['layers'][0]['w1']", "params['a.b']", "p[0].q", "x*y", "a[b]"])
def test_a_path_stands_for_its_name_alone(name: str) -> None:
    module = program(str(parse_sharding('<@mesh, [{"x"}, {}]>'))[1:-1], name)
    changed = module.annotate({port_path(name): "None,x"})
    assert [str(value.sharding) for value in pyshardy.propagate(changed).inputs][0] == '<@mesh, [{}, {"x"}]>'
