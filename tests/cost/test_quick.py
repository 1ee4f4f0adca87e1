"""A law: shardings alone give the same estimate as the program of one device, to the last byte and line."""

from __future__ import annotations

from dataclasses import replace

import pytest

import pyshardy
from programs import PROGRAMS
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.program import Program
from pyshardy.examples import transformer as example
from pyshardy.ir.cost_program import cost_program
from pyshardy.quick_cost.quick_program import QuickProgram

from .quick_compare import Figures, annotated_programs, random_modules, verdict

AS_A_WHOLE = {
    "explicit_types": "a program with unreduced shardings",
    "partitioned_by_user": "a program with the user's own partitioners",
}
"""Test programs that are partitioned as a whole, with the reason."""
OFTEN = ("mlp_training", "cnn_training", "sorting", "transformer_scan_remat", "uneven", "fully_sharded", "stencil")
"""Programs that are tried under other shardings too."""


@pytest.mark.parametrize("name", PROGRAMS)
def test_estimates_of_test_programs_are_the_same(name: str) -> None:
    if reason := PROGRAMS[name].skip():
        pytest.skip(reason)
    assert verdict(PROGRAMS[name].lower()) == AS_A_WHOLE.get(name, "equal")


@pytest.mark.parametrize("name", OFTEN)
def test_estimates_are_the_same_under_other_shardings(name: str) -> None:
    found = {title: verdict(module) for title, module in annotated_programs(2, [name])}
    assert set(found.values()) <= {"equal", "refused"}, found
    assert "equal" in found.values()


def test_estimates_of_random_programs_are_the_same() -> None:
    found = [verdict(text) for _, text in random_modules(6)]
    assert not [one for one in found if one.startswith("different")]
    assert found.count("equal") > 0.8 * len(found)


@pytest.mark.parametrize(
    "axes", ['"model"', '"model", "data"', '"data", "model"', '"model":(1)2', '"model":(2)2, "data"']
)
@pytest.mark.parametrize("rows", [(0, 1), (1, 2), (3, 4), (0, 2)])
def test_a_slice_that_is_needed_whole_is_not_estimated_alone(axes: str, rows: tuple[int, int]) -> None:
    """The slice sums on every device instead of gathering, but only if its neighbour needs all of the dimension."""
    first, last = rows
    count = (last - first) * 80
    found = verdict(f"""
    sdy.mesh @mesh = <["data"=2, "model"=4]>
    func.func @main(%a: tensor<4x80xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{axes}}}, {{}}]>}}) -> tensor<{count}xf32> {{
      %0 = stablehlo.slice %a [{first}:{last}, 0:80] : (tensor<4x80xf32>) -> tensor<{last - first}x80xf32>
      %2 = stablehlo.reshape %0 : (tensor<{last - first}x80xf32>) -> tensor<{count}xf32>
      %3 = stablehlo.tanh %2 : tensor<{count}xf32>
      return %3 : tensor<{count}xf32>
    }}""")
    assert found == "equal"


def small_example() -> tuple[Program, Program]:
    propagation = pyshardy.propagate(pyshardy.load(example.lower(example.Config(layers=2))))
    part = pyshardy.partition(propagation)
    whole = cost_program(part.module.root, part.meshes, part.before.name)
    return whole, QuickProgram(propagation.sharded).cost_program()


def test_estimate_of_the_example_is_the_same() -> None:
    whole, quick = small_example()
    assert Figures.of(whole).differences(Figures.of(quick)) == []


def test_a_wrong_program_is_found() -> None:
    whole, quick = small_example()
    sent = next(index for index, op in enumerate(quick.body.ops) if op.traffic is not None)
    fewer = replace(quick, functions=(quick.body._replace(ops=quick.body.ops[:sent] + quick.body.ops[sent + 1 :]),))
    with pytest.raises(KeyError):  # what uses its result finds no such value
        Figures.of(fewer)
    op = quick.body.ops[sent]
    assert op.traffic is not None
    more = op._replace(traffic=replace(op.traffic, sent_bytes=op.traffic.sent_bytes + 1))
    ops = (*quick.body.ops[:sent], more, *quick.body.ops[sent + 1 :])
    wrong = replace(quick, functions=(quick.body._replace(ops=ops),))
    assert Figures.of(whole).differences(Figures.of(wrong)) == ["collectives"]


@pytest.mark.parametrize("name", ["collectives", "causes", "flops", "bytes", "seconds", "peak"])
def test_another_figure_is_found(name: str) -> None:
    figures = Figures.of(small_example()[1])
    other = {"collectives": (), "causes": {}}.get(name, 1)
    assert figures.differences(replace(figures, **{name: other})) == [name]


def test_another_sharding_gives_other_figures_as_the_whole_does() -> None:
    """One `QuickProgram` serves many shardings; what it has learnt of one is not mixed up with another."""
    program = PROGRAMS["mlp_training"]
    propagation = pyshardy.propagate(pyshardy.load(program.lower()))
    quick = QuickProgram(propagation.sharded)
    given = quick.skeleton.shardings()
    plain = [None if one is None else TensorSharding.fully_replicated(one.mesh, one.rank) for one in given]
    first = Figures.of(quick.cost_program())
    assert Figures.of(quick.cost_program(plain)).peak > first.peak
    assert first.differences(Figures.of(quick.cost_program())) == []
