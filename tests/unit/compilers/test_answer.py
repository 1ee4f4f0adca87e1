"""Warnings of compilers."""

from __future__ import annotations

from pyshardy.compilers.answer import rematerializations_in

NAMED = (
    "W1126 20:36:33.635658    4363 spmd_partitioner.cc:666] [SPMD] Involuntary full rematerialization. The compiler "
    "cannot go from sharding {mesh['x'=4,'y'=2], [{'y'}, {}, {'x'}]} to {mesh['x'=4,'y'=2], [{}, {'x', 'y'}, {}]} "
    "efficiently for HLO operation %mul.0 = f32[32,64,16]{2,1,0} multiply(%param, %param), "
    "sharding={mesh['x'=4,'y'=2], [{'y'}, {}, {'x'}]}, metadata={op_name=\"jit(step)/mul\" stack_frame_id=8}. "
    "As the last resort, SPMD will replicate the tensor"
)
TILED = (
    "[SPMD] Involuntary full rematerialization. The compiler cannot go from sharding {devices=[2,1,4]<=[4,2]T(1,0)} to "
    "{devices=[1,8,1]<=[8]} efficiently for HLO operation %fusion.1 = bf16[32]{0:T(256)} add(%a, %b). As the last"
)


def test_shardings_with_names_and_the_place() -> None:
    (found,) = rematerializations_in(NAMED)
    assert found.before == "{mesh['x'=4,'y'=2], [{'y'}, {}, {'x'}]}"
    assert found.after == "{mesh['x'=4,'y'=2], [{}, {'x', 'y'}, {}]}"
    assert (found.instruction, found.type, found.scope, found.frame) == ("mul.0", "f32[32,64,16]", "jit(step)/mul", 8)


def test_tilings_without_a_place() -> None:
    (found,) = rematerializations_in(TILED)
    assert (found.before, found.after) == ("{devices=[2,1,4]<=[4,2]T(1,0)}", "{devices=[1,8,1]<=[8]}")
    assert (found.instruction, found.type, found.scope, found.frame) == ("fusion.1", "bf16[32]", None, None)


def test_one_warning_twice_is_one() -> None:
    assert len(rematerializations_in(f"{NAMED}\n{NAMED}\n{TILED}")) == 2


def test_other_lines_are_none() -> None:
    assert rematerializations_in("I1126 GetPjrtApi was found for tpu\n") == ()
