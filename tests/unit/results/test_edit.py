"""`result.edit`: what another annotation changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import pyshardy
from pyshardy import Partition, Propagation, UsageError
from pyshardy.passes.xla.simplify import Simplify
from pyshardy.results import edit_base

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
PROGRAMS = Path(__file__).parents[2] / "golden" / "programs"


@pytest.fixture(scope="module")
def result() -> Propagation:
    return pyshardy.propagate(MLP)


def same(edit: Any, annotations: dict[str, Any], before: Propagation) -> None:
    """That a result is that of annotating and propagating from the start."""
    expected = pyshardy.propagate(before.before.annotate(annotations), before.options)
    assert edit.result.module.text(debug_info=True) == expected.module.text(debug_info=True)


def test_an_edit_is_local_and_right(result: Propagation) -> None:
    annotations = {"params['w1']": "model,None", "x": None}
    edit = result.edit(annotations)
    assert edit.reach.why_all is None
    same(edit, annotations, result)
    found = edit.difference
    assert [(one.kind, one.name) for one in found.shardings][:3] == [
        ("input", "x"),
        ("input", "params['w1']"),
        ("input", "params['w2']"),
    ]
    assert [(one.what, one.kind, one.bytes_before, one.bytes_after) for one in found.collectives] == [
        ("added", "all_reduce", 0, 32768),
        ("removed", "all_reduce", 2048, 0),
    ]
    assert {one.name: (one.before, one.after) for one in found.totals} == {
        "inputs": (67584, 102400),
        "outputs": (2048, 8192),
        "sent in collectives": (2048, 32768),
        "held at most": (75776, 176128),
    }


DEAD = """
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>} loc("x"),
                %y: tensor<8x8xf32> loc("y")) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %x : tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  %2 = stablehlo.sine %y : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize("view", ["xla", "stablehlo"])
def test_dead_code_is_no_reason_to_go_over_everything(view: str) -> None:
    result = pyshardy.propagate(DEAD, view=view)
    assert bool(result.sharded.runs[-1].propagated.erased) is (view == "stablehlo")
    annotations = {"x": "b", "y": "a"}
    edit = result.edit(annotations)
    assert edit.reach.why_all is None
    same(edit, annotations, result)
    found, compared = edit.difference, pyshardy.diff(result, edit.result)
    assert [(one.kind, one.name) for one in found.changes] == [(one.kind, one.name) for one in compared.changes]
    assert found.compared == compared.compared


def test_the_difference_is_that_of_both_results(result: Propagation) -> None:
    edit = result.edit({"params['w2']": "None,model"})
    compared = pyshardy.diff(result, edit.result)
    found = edit.difference
    assert [(one.kind, one.name, one.before, one.after) for one in found.changes] == [
        (one.kind, one.name, one.before, one.after) for one in compared.changes
    ]
    assert found.totals == compared.totals and found.collectives == compared.collectives


def test_edits_of_edits_add_up(result: Propagation) -> None:
    first = result.edit({"x": None})
    second = first.edit({"params['w1']": "model,None"})
    same(second, {"x": None, "params['w1']": "model,None"}, result)
    assert second.before is first.result
    assert first.result.editing.base is result.editing.base
    back = second.edit({"x": "data", "params['w1']": "None,model"})
    assert back.result.module.text() == result.module.text()


def test_an_edit_back_changes_nothing(result: Propagation) -> None:
    edit = result.edit({"x": "data,None"})
    assert not edit.difference.differs
    assert "every tensor is sharded alike" in str(edit)


def test_a_partition_is_partitioned_again() -> None:
    before = pyshardy.partition(MLP, halo_exchange=False)
    edit = before.edit({"params['w1']": None})
    assert isinstance(edit.result, Partition)
    assert edit.result.options == before.options
    expected = pyshardy.partition(before.before.annotate({"params['w1']": None}), before.options)
    assert edit.result.module.text() == expected.module.text()


def test_steps_of_an_edited_program_are_those_of_a_whole_run() -> None:
    before = pyshardy.propagate(MLP, trace=True)
    edit = before.edit({"params['w1']": "model,None"})
    expected = pyshardy.propagate(before.before.annotate({"params['w1']": "model,None"}), trace=True)
    assert edit.result.steps == expected.steps != ()
    assert str(edit.result.explain("params['w2']")) == str(expected.explain("params['w2']"))


def test_debug_attributes_of_an_edited_program_are_those_of_a_whole_run() -> None:
    before = pyshardy.propagate(MLP, origins=True, edges=True)
    same(before.edit({"params['w1']": "model,None"}), {"params['w1']": "model,None"}, before)


def test_what_comes_before_propagation_is_done_once(monkeypatch: pytest.MonkeyPatch) -> None:
    result = pyshardy.propagate(MLP)
    runs = []
    run = Simplify.run
    monkeypatch.setattr(Simplify, "run", lambda self, *rest: (runs.append(self), run(self, *rest))[1])
    first = result.edit({"x": None})
    _ = first.difference.changes
    assert not runs
    for edit in (first, result.edit({"params['w1']": None}), first.edit({"params['w1']": None})):
        _ = edit.result
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("annotations", "mesh", "why"),
    [
        ({"x": "other"}, {"other": 4}, "the program gets another mesh"),
    ],
)
def test_programs_that_are_prepared_again(
    result: Propagation, annotations: dict[str, str], mesh: dict[str, int] | None, why: str
) -> None:
    edit = result.edit(annotations, mesh)
    assert str(edit.reach) == f"prepared and propagated again, because {why}"
    expected = pyshardy.propagate(result.before.annotate(annotations, mesh))
    assert edit.result.module.text() == expected.module.text()
    assert edit.difference.differs


TWO = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  %1 = stablehlo.sine %a : tensor<8x8xf32>
  return %0, %1 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""
ORDER = "the order of ops depends on whether any output is annotated"


def test_annotations_of_outputs() -> None:
    one = pyshardy.propagate(MLP)
    first = one.edit({"result": "None,model"})
    same(first, {"result": "None,model"}, one)
    gone = first.result.edit({"result": None})
    same(gone, {"result": None}, first.result)
    assert (first.reach.why_all, gone.reach.why_all) == (None, None)  # the base has none
    given = pyshardy.propagate(one.before.annotate({"result": "None,model"}))
    gone = given.edit({"result": None})
    same(gone, {"result": None}, given)
    assert gone.reach.why_all == "an output without annotation takes that of its op"
    two = pyshardy.propagate(TWO)
    first = two.edit({"result[0]": "x"})
    same(first, {"result[0]": "x"}, two)
    second = first.result.edit({"result[1]": "None,x"})
    same(second, {"result[1]": "None,x"}, first.result)
    assert (first.reach.why_all, second.reach.why_all) == (ORDER, None)
    assert pyshardy.propagate(TWO, view="stablehlo").edit({"result[0]": "x"}).reach.why_all is None


CONSTRAINED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
"""
LOOP = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>, %n: tensor<i32>) -> tensor<8x8xf32> {
  %0:2 = stablehlo.while(%i = %n, %c = %a) : tensor<i32>, tensor<8x8xf32>
    cond { %2 = stablehlo.compare LT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
           stablehlo.return %2 : tensor<i1> }
    do { %2 = stablehlo.add %c, %b : tensor<8x8xf32>
         stablehlo.return %i, %2 : tensor<i32>, tensor<8x8xf32> }
  return %0#1 : tensor<8x8xf32>
}
"""
RETURNED = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  return %a : tensor<8x8xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "name", "why"),
    [
        (RETURNED, "arg0", "arg0 is the only output, to which XLA gives the annotation too"),
        (CONSTRAINED, "arg0", "arg0 is used by sdy.sharding_constraint, which may take over its annotation"),
        (LOOP, "arg1", "arg1 is used inside a loop"),
        (LOOP, "arg0", None),
    ],
)
def test_inputs_that_passes_look_at(text: str, name: str, why: str | None) -> None:
    before = pyshardy.propagate(text)
    for spec in (None, "None,x", "x,?"):
        edit = before.edit({name: spec})
        assert edit.reach.why_all == why
        same(edit, {name: spec}, before)


@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.mlir")))
def test_situations(name: str) -> None:
    before = pyshardy.propagate(PROGRAMS / f"{name}.mlir")
    for tensor in before.inputs:
        if before.sharded.annotations.inputs[tensor.index] is not None:
            same(before.edit({tensor.name: None}), {tensor.name: None}, before)


def test_a_result_without_a_recording_is_run_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    edit = pyshardy.propagate(MLP).edit({"x": None})
    base = edit_base.Base(edit.result.sharded)
    assert base.run.propagated.recording is None
    assert base.timeline.last[: len(base.program.shapes)] == list(base.run.propagated.shardings)


def test_wrong_edits(result: Propagation) -> None:
    with pytest.raises(UsageError, match="which matches no input or output"):
        result.edit({"params['w3']": "data"})
    with pytest.raises(pyshardy.InvalidShardingError, match="params\\['w1'\\]"):
        result.edit({"params['w1']": "nothing"})


def test_an_edit_shows_itself(result: Propagation) -> None:
    edit = result.edit({"x": None})
    assert repr(edit) == "<Edit of function @main: propagated again through 4 of 5 ops>"
    assert edit._repr_html_().startswith("<pre ")
    assert json.loads(json.dumps(edit.to_json()))["how"] == "propagated again through 4 of 5 ops"
