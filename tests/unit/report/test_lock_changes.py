"""What differs between two locks."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from pyshardy.report.lock import (
    LOCK_VERSION,
    Lock,
    LockedCollective,
    LockedConstraint,
    LockedMesh,
    LockedReplication,
    LockedTensor,
    LockedTypes,
)
from pyshardy.report.lock_changes import CHANGE_KINDS, compare_locks, is_other_peak, totals_of
from pyshardy.report.lock_difference import LockDifference

LOCK = Lock(
    version=LOCK_VERSION,
    program="module @jit_step",
    pyshardy="1.0",
    jaxlib="0.12",
    sent_bytes=100,
    peak_bytes=1000,
    meshes=(LockedMesh("mesh", "x=2"),),
    constraints=(LockedConstraint("block", "f32[8]", "P('x')"),),
    inputs=(LockedTensor("w[0..3]", "f32[8]", "P('x')", layers=4),),
    outputs=(LockedTensor("result", "f32[8]", "P('x')"),),
    types=(LockedTypes("block", "bf16, f32"),),
    collectives=(LockedCollective("all_reduce", "x", "block", "sum of dot", "f32[8]", 2, 64),),
    replications=(LockedReplication("the result of `mul`", "block", "f32[8]", "P('x')", "replicated", 32),),
)
OTHERS = {
    "meshes": LockedMesh("mesh", "x=2", "1, 0"),
    "constraints": LockedConstraint("block", "f32[8]", "P()"),
    "inputs": LockedTensor("w[0..3]", "f32[8]", "P('x')", layers=4, donated=True),
    "outputs": LockedTensor("result", "f32[8]", "replicated"),
    "types": LockedTypes("block", "f32"),
    "collectives": LockedCollective("all_reduce", "x", "block", "sum of dot", "f32[8]", 2, 64, per_round=True),
    "replications": LockedReplication("the result of `mul`", "block", "f32[8]", "P('x')", "P(None)", 32),
}


@pytest.mark.parametrize(
    "kind, name",
    list(zip(CHANGE_KINDS, ["meshes", "constraints", "inputs", "outputs", "types", "collectives", "replications"])),
)
def test_every_kind_of_row_is_compared(kind: str, name: str) -> None:
    assert compare_locks(LOCK, LOCK) == ()
    for other in ((OTHERS[name],), ()):
        (change,) = compare_locks(LOCK, replace(LOCK, **{name: other}))  # type: ignore[arg-type]
        assert (change.kind, change.verb) == (kind, "changed" if other and name != "types" else "removed")
        (change,) = compare_locks(replace(LOCK, **{name: other}), LOCK)  # type: ignore[arg-type]
        assert (change.kind, change.verb) == (kind, "changed" if other and name != "types" else "added")


def test_nothing_else_is_compared() -> None:
    compared = {"meshes", "constraints", "inputs", "outputs", "types", "collectives", "replications"}
    assert {field.name for field in fields(Lock)} - compared == {
        "version", "program", "pyshardy", "jaxlib", "compiler", "compiled_by", "chip", "covers", "budgets",
        "input_bytes", "output_bytes", "sent_bytes", "peak_bytes", "memory",
    }  # fmt: skip
    other = replace(LOCK, program="other", inputs=(replace(LOCK.inputs[0], annotated=True),))
    assert compare_locks(LOCK, other) == ()


def test_one_layer_alone() -> None:
    rows = (LockedTensor("w[0]", "f32[8]", "P('x')"), LockedTensor("w[1]", "f32[8]", "replicated", annotated=True))
    rest = (LockedTensor("w[2]", "f32[8]", "P('x')"), LockedTensor("w[3]", "f32[8]", "P('x')"))
    (change,) = compare_locks(LOCK, replace(LOCK, inputs=(*rows, *rest)))
    assert (change.name, change.before, change.after) == (
        "w[1]",
        ("f32[8] P('x')",),
        ("f32[8] replicated (annotated)",),
    )


def test_layers_that_change_alike_are_one() -> None:
    other = LockedTensor("w[0..3]", "f32[8]", "replicated", layers=4)
    (change,) = compare_locks(LOCK, replace(LOCK, inputs=(other,)))
    assert (change.name, len(change.members), change.count_before) == ("w[0..3]", 4, 4)


def test_only_what_is_new_of_a_name_is_shown() -> None:
    new = replace(LOCK.collectives[0], tensor="f32[9]", bytes=72)
    (change,) = compare_locks(LOCK, replace(LOCK, collectives=(*LOCK.collectives, new)))
    assert (change.verb, change.after, change.bytes_after) == ("added", ("×2 f32[9], 72 B",), 72)


def test_the_peak_is_an_estimate() -> None:
    assert not is_other_peak(LOCK, replace(LOCK, peak_bytes=1010))
    assert is_other_peak(LOCK, replace(LOCK, peak_bytes=1011)) and is_other_peak(LOCK, replace(LOCK, peak_bytes=989))
    names = ["inputs", "outputs", "sent in collectives", "peak memory (estimated)"]
    assert [total.name for total in totals_of(LOCK, LOCK)] == names


def test_what_is_in_another_scope_is_moved() -> None:
    (row,) = LOCK.collectives
    other = replace(row, where="objective")
    (change,) = compare_locks(LOCK, replace(LOCK, collectives=(other,)))
    assert (change.verb, change.before, change.after) == ("moved", ("block",), ("objective",))
    assert change.what == "all_reduce along x, sum of dot, ×2 f32[8], 64 B"
    assert (change.bytes_before, change.bytes_after) == (64, 64)
    changes = compare_locks(LOCK, replace(LOCK, collectives=(replace(other, bytes=66),)))
    assert [one.verb for one in changes] == ["added", "removed"]
    changes = compare_locks(LOCK, replace(LOCK, collectives=(other, replace(other, where="third"))))
    assert sorted(one.verb for one in changes) == ["added", "moved"]


def test_the_first_line_counts_what_differs() -> None:
    types = (LockedTypes("block", "f32"), LockedTypes("head", "f32"))
    found = replace(LOCK, types=types, constraints=(), replications=(*LOCK.replications, OTHERS["replications"]))
    said = LockDifference("step", "step.lock", LOCK, found, tuple(compare_locks(LOCK, found))).verdict
    assert said == "step differs from step.lock: 1 constraint, types of ops in 2 scopes, 1 tensor gathered whole"
