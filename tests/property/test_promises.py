"""What every pass promises of the module after it, on random programs, where the pipelines run it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from functools import cache

import pytest

from pyshardy.core.axis_lists import axes_size
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.dataflow import edge_of, is_data_flow_op
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import functions, is_declaration, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes
from pyshardy.passes.base import Pass
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.passes.table import PASSES
from pyshardy.rules.properties import FUNCTION_EDGE

from ..differential.random_programs import Features, random_program

FEATURES = Features(ops=8, calls=0.2, groups=0.1, manual=0.1, priorities=0.2, constraints=0.15)
SEEDS = range(12)
EXPORT = "sdy-export-pipeline{enable-insert-explicit-collectives=true}"
PIPELINES = (
    "pyshardy-xla-view-pipeline,sdy-propagation-pipeline,pyshardy-restore-chlo",
    f"sdy-propagation-pipeline,{EXPORT}",
    "sdy-propagation-pipeline{dedup-functions-fully=true},sdy-inline-meshes,sdy-lift-inlined-meshes,"
    "sdy-populate-op-sharding-rules,sdy-drop-sharding-and-mesh",
    "sdy-import-pipeline,sdy-populate-op-sharding-rules,sdy-basic-propagate{debug-sharding-origins=true},"
    "sdy-remove-propagation-debug-info",
    "sdy-import-pipeline,sdy-populate-op-sharding-rules,sdy-aggressive-propagate",
    "sdy-import-pipeline,sdy-populate-op-sharding-rules,sdy-op-priority-propagate",
)

OPTIONS = {"canonicalize": "{enable-patterns=sdy-reshard}"}

ABSENT: dict[str, str] = {
    "sdy-lift-inlined-meshes": r"<mesh<",
    "sdy-remove-size-one-axes": r'(\{|, )"one"(,|\})',
    "sdy-import-func-calls": r'"func\.call"',
    "sdy-user-priority-propagate": r"}p\d",
    "sdy-basic-propagate": r"sdy\.sharding_rule",
    "sdy-aggressive-propagate": r"sdy\.sharding_rule",
    "sdy-op-priority-propagate": r"sdy\.sharding_rule",
    "sdy-export-named-computations": r"sdy\.named_computation",
    "sdy-unflatten-call-graph": r"sdy\.(original_func_name|func_manual_axes)",
    "sdy-sink-data-flow-edges": r'"sdy\.data_flow_edge"',
    "sdy-sink-func-data-flow-edges": r"sdy\.func_data_flow_edge",
    "sdy-remove-sharding-groups": r"sdy\.sharding_group",
    "sdy-sharding-constraint-to-reshard": r"sdy\.sharding_constraint",
    "sdy-close-shardings": r"\?|replicated=",
    "sdy-reshard-to-collectives": r'"sdy\.reshard"',
    "sdy-drop-sharding-rules": r"sdy\.sharding_rule",
    "sdy-remove-propagation-debug-info": r"sdy\.(\w+_)?(propagation_edges|sharding_origins)",
    "sdy-inline-meshes": r'"sdy\.mesh"',
    "sdy-drop-sharding-and-mesh": r"sdy\.sharding = ",
}
"""What is no longer in a module after a pass; the programs here have one mesh, with "one" for every axis of size one."""


def _no_unused_functions(root: Op) -> bool:
    called = {op.attrs["callee"] for op in walk(root) if op.name == "func.call"}
    private = [one for one in functions(root) if one.attrs.get("sym_visibility") is not None]
    return all(one.attrs["sym_name"] in called for one in private)


def _edges_everywhere(root: Op) -> bool:
    return all(
        edge_of(result) is not None
        for op in walk(root)
        if is_data_flow_op(op)
        for result in op.results
        if result.type.is_static
    )


def _function_edges_everywhere(root: Op) -> bool:
    values = [result for op in walk(root) if op.name == "func.call" for result in op.results]
    for function in functions(root):
        if function is not main_function(root) and not is_declaration(function):
            values += function.region.block.args
    return all([user.name for user, _ in value.uses] == [FUNCTION_EDGE] for value in values if value.type.is_static)


def _called_once(root: Op) -> bool:
    calls = Counter(op.attrs["callee"] for op in walk(root) if op.name == "func.call")
    return all(count == 1 for count in calls.values())


def _groups_are_numbered(root: Op) -> bool:
    groups = [(op.operands[0], op.attrs["group_id"]) for op in walk(root) if op.name == "sdy.sharding_group"]
    numbers = {number for _, number in groups}
    return numbers == set(range(len(numbers))) and len(dict(groups)) == len(set(groups))


def _callers_first(root: Op) -> bool:
    seen: set[str] = set()
    for function in functions(root):
        seen.add(function.attrs["sym_name"])
        if any(op.attrs["callee"] in seen for op in walk(function) if op.name == "func.call"):
            return False
    return True


def _boundaries(root: Op) -> list[tuple[TensorSharding, tuple[int, ...]]]:
    """The shardings of arguments and results of functions with the shapes of their tensors."""
    found = []
    for function in functions(root):
        block = function.region.block
        for key, values in (("arg_attrs", block.args), ("res_attrs", block.terminator.operands)):
            for value, entry in zip(values, function.attrs.get(key) or ()):
                if "sdy.sharding" in entry and value.type.shape is not None:
                    found.append((entry["sdy.sharding"], value.type.shape))
    return found


def _boundaries_divide(root: Op) -> bool:
    meshes = module_meshes(root)
    return all(
        size % axes_size(dim.axes, mesh_of(sharding, meshes)) == 0
        for sharding, shape in _boundaries(root)
        for size, dim in zip(shape, sharding.dims)
    )


HOLDS: dict[str, Callable[[Op], bool]] = {
    "symbol-dce": _no_unused_functions,
    "sdy-add-data-flow-edges": _edges_everywhere,
    "sdy-add-func-data-flow-edges": _function_edges_everywhere,
    "sdy-flatten-call-graph": _called_once,
    "sdy-sharding-group-import": _groups_are_numbered,
    "sdy-pre-order-funcs": _callers_first,
    "sdy-update-non-divisible-input-output-shardings": _boundaries_divide,
}
"""What holds of a module after a pass."""
AGAIN = (
    "canonicalize",
    "pyshardy-drop-op-shardings",
    "pyshardy-expand",
    "pyshardy-sink-constants",
    "sdy-apply-sharding-constraints",
    "sdy-constant-or-scalar-merger",
    "sdy-constant-or-scalar-splitter",
    "sdy-insert-func-call-reshards",
    "sdy-optimize-collectives",
    "sdy-populate-op-sharding-rules",
    "sdy-propagate-sharding-from-func-to-call",
    "sdy-propagate-to-func-results",
    "sdy-remove-sub-axes-in-input-output-shardings",
)
"""Passes whose promise is that nothing is left to do: running again changes nothing."""
NOT_HERE = {
    "pyshardy-compare-places": "needs scatters of one kind: its file-check, tests/compilers/test_compared.py",
    "pyshardy-auto-partition": "needs inputs without shardings, on one mesh: its file-check, tests/unit/autopartition",
    "pyshardy-add-hlo-rules": "needs ops that StableHLO does not know: its file-check",
    "pyshardy-flatten-tuples": "needs functions with tuples: its file-check",
    "pyshardy-import-custom-calls": "needs annotations of XLA: its file-check",
    "pyshardy-import-frontend-attributes": "needs annotations of XLA: its file-check",
    "pyshardy-import-hlo-shardings": "needs annotations of XLA: its file-check",
    "pyshardy-import-manual-computations": "needs annotations of XLA: its file-check",
    "pyshardy-import-spmd-regions": "needs annotations of XLA: its file-check",
    "pyshardy-dedup-meshes": "needs several meshes: its file-check",
    "pyshardy-import-result-sharding": "needs a single result: its file-check",
    "pyshardy-inline-and-order": "puts ops in an order: tests/differential/test_view_conversions.py",
    "pyshardy-legalize-chlo": "needs ops of CHLO: its file-check",
    "pyshardy-exchange-shards": "the ops stay that exchange nothing: its file-checks, and numbers on devices",
    "pyshardy-known-indices": "needs indices that are known: its file-check, and numbers on devices",
    "pyshardy-gather-before": "depends on what is sent: its file-check",
    "pyshardy-make-partitionable": "depends on what the partitioner has for an op",
    "pyshardy-open-captured": "needs loops that capture: its file-check",
    "pyshardy-restore-chlo": "needs ops of CHLO: its file-check",
    "pyshardy-resolve-sub-axes": "needs sub-axes that exclude each other: its file-check",
    "pyshardy-shard-pointwise": "concerns ops that propagation does not know: its file-check",
    "pyshardy-share-reshards": "concerns reshards that are there: its file-check",
    "pyshardy-tell-copies-apart": "needs copies that are none: its file-check",
    "pyshardy-simplify": "stops where XLA stops: tests/differential/test_view_conversions.py",
    "sdy-per-instruction-partitioning": "needs operands that agree: tests/differential/test_per_instruction.py",
    "sdy-resolve-permutation-factors": "depends on the kind of permutation",
    "sdy-pad-for-divisibility": "refuses what it cannot pad",
    "sdy-convert-global-to-local": "changes all types: executions on devices show that it is right",
    "sdy-explicit-gather-scatter-batching": "needs gathers of one kind: tests/differential/test_batching.py",
    "sdy-manual-axes-cleanup": "needs shardings that do not name all manual axes: its file-checks",
    "sdy-resolve-single-device-sharding": "needs ops on single devices: tests/differential/test_reshards.py",
    "sdy-verify-unreduced-axes": "changes nothing: its file-checks",
    "sdy-insert-explicit-reshards": "leaves gaps where the reference does: tests/differential/test_reshards.py",
    "sdy-remove-all-gather-reduce-scatter-for-cmv1": "removes one pattern: its file-check",
}
"""Passes without a promise of this kind: why, or what tests them."""


def keeps_promise(pass_: Pass, module: Module) -> bool:
    """Whether a module is as it must be after a pass."""
    if pass_.name in ABSENT:
        return re.search(ABSENT[pass_.name], module.text(generic=True)) is None
    if pass_.name in HOLDS:
        return HOLDS[pass_.name](module.root)
    if pass_.name in AGAIN:
        return run_passes(module, [pass_]).text(generic=True) == module.text(generic=True)
    return True


@cache
def stages(seed: int, pipeline: str) -> tuple[tuple[Pass, Module, Module], ...]:
    """Every pass of a pipeline with the module before and after it, up to a pass that refuses the module."""
    module, found = Module.parse(random_program(seed, FEATURES)), []
    for pass_ in parse_pipeline(pipeline):
        before = module
        try:
            module = run_passes(before, [pass_])
        except PassError:
            break
        module.verify()
        found.append((pass_, before, module))
    return tuple(found)


@pytest.mark.slow_but_for("sdy-import-pipeline,sdy-populate-op-shar1")
@pytest.mark.parametrize("pipeline", PIPELINES, ids=lambda pipeline: pipeline[:40])
def test_promises_are_kept(pipeline: str) -> None:
    checked = Counter[str]()
    for seed in SEEDS:
        for pass_, _, module in stages(seed, pipeline):
            assert keeps_promise(pass_, module), f"seed {seed}: {pass_.name}\n{module.text()}"
            checked[pass_.name] += 1
    for pass_ in parse_pipeline(pipeline):
        assert checked[pass_.name] >= len(SEEDS) // 2, pass_.name


def test_every_pass_has_a_promise() -> None:
    promised = [*ABSENT, *HOLDS, *AGAIN, *NOT_HERE]
    assert sorted(promised) == sorted(PASSES)
    run = {pass_.name for pipeline in PIPELINES for pass_ in parse_pipeline(pipeline)}
    assert set(PASSES) - run <= set(NOT_HERE)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*ABSENT, *HOLDS, *AGAIN])
def test_a_pass_that_does_nothing_breaks_its_promise(name: str) -> None:
    """On some program, the module before a pass is not as it must be after it."""
    (cls,) = {type(pass_) for pass_ in parse_pipeline(name + OPTIONS.get(name, ""))}
    assert any(
        not keeps_promise(pass_, before)
        for pipeline in PIPELINES
        for seed in SEEDS
        for pass_, before, _ in stages(seed, pipeline)
        if type(pass_) is cls
    )
