from __future__ import annotations

import pytest

from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.properties import ELEMENTWISE, Priority, is_elementwise, preserves_constants, priority_of
from pyshardy.rules.table import RULES

from .probe import spec

NOT_ELEMENTWISE = """
    stablehlo.map stablehlo.reverse stablehlo.transpose stablehlo.reshape stablehlo.broadcast_in_dim
    stablehlo.batch_norm_inference stablehlo.all_reduce stablehlo.collective_broadcast stablehlo.collective_permute
    stablehlo.cross-replica-sum stablehlo.optimization_barrier stablehlo.slice stablehlo.pad stablehlo.dot
    chlo.zeta chlo.next_after chlo.polygamma chlo.mulhi chlo.top_k mhlo.reshape mhlo.bitcast_convert
    sdy.data_flow_edge sdy.all_gather
"""


@pytest.mark.parametrize("name", NOT_ELEMENTWISE.split())
def test_not_elementwise(name: str) -> None:
    assert not is_elementwise(OpSpec(name, [(4,)], [(4,)]))


def test_pointwise_ops_are_elementwise_but_for_the_collectives() -> None:
    pointwise = {name for name, entry in RULES.items() if entry == "elementwise:pointwise" and name[0] != "@"}
    assert {name.partition(".")[2] for name in pointwise - ELEMENTWISE} == {
        "collective_broadcast",
        "collective_permute",
        "cross-replica-sum",
    }


@pytest.mark.parametrize("target", ["mhlo.erf", "MoveToHost", "annotate_device_placement"])
def test_no_custom_call_is_elementwise(target: str) -> None:
    assert not is_elementwise(spec(f"@{target}", "4 -> 4"))


def test_operands_may_be_scalars() -> None:
    assert is_elementwise(spec("select", "(), 4, 4 -> 4"))
    assert is_elementwise(spec("clamp", "(), 4, () -> 4"))


def test_bitcast_convert_counts_if_it_keeps_the_shape() -> None:
    assert is_elementwise(spec("bitcast_convert", "4 -> 4"))
    assert not is_elementwise(spec("bitcast_convert", "4 -> 4x2"))


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("add", "4, 4 -> 4", True),
        ("broadcast_in_dim", "() -> 4", True),
        ("reshape", "4 -> 2x2", True),
        ("slice", "4 -> 2", True),
        ("transpose", "4 -> 4", False),
        ("concatenate", "4 -> 4", False),
        ("sdy.reshard", "4 -> 4", True),
        ("sdy.propagation_barrier", "4 -> 4", True),
        ("sdy.sharding_constraint", "4 -> 4", False),
        ("arith.floordivsi", "4, 4 -> 4", True),
        ("arith.divsi", "4, 4 -> 4", False),
        ("mhlo.tan", "4 -> 4", True),
        ("mhlo.acos", "4 -> 4", False),
        ("@mhlo.erf", "4 -> 4", False),
    ],
)
def test_what_preserves_constants(name: str, shapes: str, expected: bool) -> None:
    assert preserves_constants(spec(name, shapes)) is expected


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("abs", "? -> ?", True),
        ("abs", "? -> 4", False),
        ("abs", "4 -> ?", True),
        ("slice", "? -> 4", False),
        ("reshape", "? -> 4x2", False),
        ("add", "?, ? -> ?", False),
        ("add", "4, 4 -> ?", True),
        ("clamp", "(), ?, () -> ?", False),
        ("chlo.erf", "? -> 4", True),
        ("mhlo.add", "?, 4 -> 4", True),
    ],
)
def test_dynamic_shapes_that_may_not_fit_do_not_preserve_constants(name: str, shapes: str, expected: bool) -> None:
    assert preserves_constants(spec(name, shapes)) is expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("tanh", Priority.PASS_THROUGH),
        ("reshape", Priority.PASS_THROUGH),
        ("transpose", Priority.PASS_THROUGH),
        ("sdy.data_flow_edge", Priority.PASS_THROUGH),
        ("sdy.func_data_flow_edge", Priority.PASS_THROUGH),
        ("sdy.sharding_constraint", Priority.PASS_THROUGH),
        ("@MoveToDevice", Priority.PASS_THROUGH),
        ("@MoveToHost", Priority.PASS_THROUGH),
        ("@mhlo.erf", Priority.OTHER),
        ("dynamic_slice", Priority.FORWARD),
        ("dynamic_update_slice", Priority.FORWARD),
        ("broadcast_in_dim", Priority.BROADCAST),
        ("sdy.propagation_barrier", Priority.FIXED),
        ("dot_general", Priority.OTHER),
        ("reverse", Priority.OTHER),
    ],
)
def test_priorities(name: str, expected: Priority) -> None:
    assert priority_of(spec(name, "4 -> 4")) is expected
