from __future__ import annotations

import pytest

from pyshardy.ir.dataflow import (
    DATA_FLOW_OPS,
    block_arg_owners,
    edge_held,
    edge_of,
    edge_of_source,
    is_data_flow_op,
    owner_of,
    owners,
    source_uses,
    targets_besides_owner,
)
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.rules.properties import EDGE

from . import data_flow_programs as programs
from .data_flow_programs import label, program, use_label
from .reading import args, find

OWNERS = {
    "stablehlo.while": ["while#0", "while#1"],
    "stablehlo.case": ["case#0", "case#1"],
    "stablehlo.if": ["if#0"],
    "stablehlo.optimization_barrier": ["optimization_barrier#0", "optimization_barrier#1"],
    "sdy.named_computation": ["named_computation.0.0", "named_computation.0.1", "named_computation#0"],
    "sdy.manual_computation": ["manual_computation.0.0", "manual_computation.0.1", "manual_computation#0"],
}
SOURCES = {
    "stablehlo.while": {
        "while#0": ["while:0", "while.1.return:0"],
        "while#1": ["while:1", "while.1.return:1"],
    },
    "stablehlo.case": {
        "case#0": ["case.0.return:0", "case.1.return:0"],
        "case#1": ["case.0.return:1", "case.1.return:1"],
    },
    "stablehlo.if": {"if#0": ["if.0.return:0", "if.1.return:0"]},
    "stablehlo.optimization_barrier": {
        "optimization_barrier#0": ["optimization_barrier:0"],
        "optimization_barrier#1": ["optimization_barrier:1"],
    },
    **{
        f"sdy.{name}": {
            f"{name}.0.0": [f"{name}:0"],
            f"{name}.0.1": [f"{name}:1"],
            f"{name}#0": [f"{name}.0.return:0"],
        }
        for name in ("named_computation", "manual_computation")
    },
}
RECOGNISED = {
    "stablehlo.while": {
        "while:0": "while#0",
        "while:1": "while#1",
        "while.1.return:0": "while#0",
        "while.1.return:1": "while#1",
    },
    "stablehlo.case": {
        "case.0.return:0": "case#0",
        "case.0.return:1": "case#1",
        "case.1.return:0": "case#0",
        "case.1.return:1": "case#1",
    },
    "stablehlo.if": {"if.0.return:0": "if#0", "if.1.return:0": "if#0"},
    "stablehlo.optimization_barrier": {
        "optimization_barrier:0": "optimization_barrier#0",
        "optimization_barrier:1": "optimization_barrier#1",
    },
    "sdy.named_computation": {"named_computation.0.return:0": "named_computation#0"},
    "sdy.manual_computation": {"manual_computation.0.return:0": "manual_computation#0"},
}
each_kind = pytest.mark.parametrize("name", programs.DATA_FLOW_OPS)


def op_of(name: str, *, edges: bool = False) -> Op:
    return find(program(programs.DATA_FLOW_OPS[name], edges=edges), name)


def values_of(op: Op) -> list[Value]:
    return [*op.results, *(arg for region in op.regions for block in region.blocks for arg in block.args)]


def test_every_kind_of_op_is_tested() -> None:
    assert set(programs.DATA_FLOW_OPS) == DATA_FLOW_OPS == set(OWNERS) == set(SOURCES) == set(RECOGNISED)


@each_kind
def test_ops_with_edges(name: str) -> None:
    op = op_of(name)
    assert is_data_flow_op(op)
    assert op.parent_op is not None
    assert not is_data_flow_op(op.parent_op)


@pytest.mark.parametrize("name", ["stablehlo.add", "stablehlo.reduce", "func.call", "func.func", EDGE])
def test_ops_without_edges(name: str) -> None:
    assert not is_data_flow_op(Op(name))


@each_kind
def test_owners(name: str) -> None:
    op = op_of(name)
    assert [label(owner) for owner in owners(op)] == OWNERS[name]
    assert [label(owner) for owner in block_arg_owners(op)] == [owner for owner in OWNERS[name] if "." in owner]


@each_kind
def test_sources(name: str) -> None:
    found = {label(owner): [use_label(use) for use in source_uses(owner)] for owner in owners(op_of(name))}
    assert found == SOURCES[name]


@each_kind
def test_targets_belong_to_their_owner(name: str) -> None:
    op = op_of(name)
    for owner in owners(op):
        assert owner_of(owner) is owner
        for target in targets_besides_owner(owner):
            assert owner_of(target) is owner
    found = {value for owner in owners(op) for value in (owner, *targets_besides_owner(owner))}
    assert found == set(values_of(op))


def test_the_arguments_of_both_regions_of_a_loop_are_targets() -> None:
    op = op_of("stablehlo.while")
    assert [label(target) for target in targets_besides_owner(op.results[1])] == ["while.0.1", "while.1.1"]


@each_kind
def test_without_edge_ops_nothing_is_held(name: str) -> None:
    op = op_of(name)
    assert [edge_of(owner) for owner in owners(op)] == [None] * len(OWNERS[name])
    assert [edge_held(value) for value in values_of(op)] == [None] * len(values_of(op))
    assert all(edge_of_source(*use) is None for owner in owners(op) for use in source_uses(owner))


@each_kind
def test_the_edge_op_of_an_owner_holds_all_its_targets(name: str) -> None:
    op = op_of(name, edges=True)
    for owner in owners(op):
        edge = edge_of(owner)
        assert edge is not None
        assert (edge.name, edge.operands) == (EDGE, (owner,))
        for value in (owner, *targets_besides_owner(owner)):
            assert edge_held(value) is edge


@each_kind
def test_sources_that_the_reference_recognises(name: str) -> None:
    function = program(programs.DATA_FLOW_OPS[name], edges=True)
    found = {}
    for op in walk(function):
        for index in range(len(op.operands)):
            edge = edge_of_source(op, index)
            if edge is not None:
                found[use_label((op, index))] = label(edge.operands[0])
    assert found == RECOGNISED[name]


def test_an_edge_op_beside_another_use_is_none_of_the_owner() -> None:
    op = op_of("stablehlo.if", edges=True)
    edge = edge_of(op.result)
    assert edge is not None
    Op("t.use", [op.result]).insert_after(edge)
    assert edge_of(op.result) is None
    assert edge_held(op.result) is None


def test_another_user_is_no_edge() -> None:
    op = op_of("stablehlo.if")
    Op("t.use", [op.result]).insert_after(op)
    assert edge_of(op.result) is None


def test_values_that_no_edge_is_about() -> None:
    function = program(f"%0 = stablehlo.add %a, %b : {programs.T}", edges=True)
    assert [edge_held(value) for value in (*args(function), find(function, "stablehlo.add").result)] == [None] * 5
    assert edge_of_source(find(function, "stablehlo.add"), 0) is None


def test_the_return_of_a_function_is_no_source() -> None:
    function = program(programs.IF, edges=True)
    returned = find(function, "func.return")
    returned.add_operand(args(function)[0])
    assert edge_of_source(returned, 0) is None
