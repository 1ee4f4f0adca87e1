"""Laws of the whole propagation pipeline, on random programs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from jaxlib.mlir import ir

from pyshardy.core.axis_lists import axes_size, is_prefix
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import arg_sharding, main_function, result_sharding, return_op
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value, ValueType, walk
from pyshardy.ir.shardings import get_sharding, module_meshes
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import parse_pipeline
from support.hash_seeds import printed_under_hash_seeds

from ..differential.random_programs import Features, random_program

FEATURES = Features(ops=25, priorities=0.2, groups=0.0, meshes=2)
ANNOTATED = replace(FEATURES, annotated=0.5, calls=0.0)
SEEDS = st.integers(0, 100_000)
FEW = settings(max_examples=settings().max_examples // 4)
MARK = "test.number"
SIZE_ONE = "one"
"""The axis of size one that some random meshes have."""


def propagated(module: Module) -> Module:
    """The module after the propagation pipeline, verified."""
    result = run_passes(module, parse_pipeline("sdy-propagation-pipeline"))
    result.verify()
    return result


def propagated_text(text: str) -> str:
    return propagated(Module.parse(text)).text()


def marked(text: str) -> tuple[Module, dict[int, tuple[TensorSharding, ...]]]:
    """A module with a number on every op that the user has annotated, and the annotations by number."""
    module = Module.parse(text)
    root = module.copy_root()
    given_: dict[int, tuple[TensorSharding, ...]] = {}
    with module.context:
        for op in walk(root):
            shardings = annotations(op)
            if shardings:
                number = len(given_)
                op.set_attr(MARK, ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number))
                given_[number] = shardings
    return module.with_root(root), given_


def annotations(op: Op) -> tuple[TensorSharding, ...]:
    """What an op says of its results: a constraint of one, another op of all."""
    if op.name in ("sdy.sharding_constraint", "sdy.reshard"):
        return (op.attrs["sharding"],)
    return op.attrs.get("sdy.sharding", ())


def without_size_one(mesh: Mesh) -> Mesh:
    """A mesh as the pipeline leaves it."""
    return Mesh([axis for axis in mesh.axes if axis[0] != SIZE_ONE], mesh.device_ids)


def all_values(root: Op) -> Iterator[tuple[Op, Value]]:
    """Every value of a module, with the op that computes it or holds its block."""
    for op in walk(root):
        blocks = [block for region in op.regions for block in region.blocks]
        for value in (*op.results, *(arg for block in blocks for arg in block.args)):
            yield op, value


def is_kept(before: TensorSharding, after: TensorSharding | None, of: ValueType, mesh: Mesh | None) -> bool:
    """Whether nothing that was given is weakened, and what was closed has not changed.

    With a mesh, dimensions that the axes given do not divide evenly, or that are cut by sub-axes, are left out: the
    export passes cut those of the program's inputs and outputs down. Axes of size one go everywhere.
    """
    if after is None or not set(before.unreduced) <= set(after.unreduced):
        return False
    for size, old, new in zip(of.shape, before.dims, after.dims, strict=True):
        axes = tuple(axis for axis in old.axes if axis.name != SIZE_ONE)
        if mesh is not None and not (all(axis.is_full for axis in axes) and size % axes_size(axes, mesh) == 0):
            continue
        if not (is_prefix(axes, new.axes) if old.is_open else new.axes == axes):
            return False
    return True


@FEW
@given(SEEDS)
def test_what_an_op_or_constraint_was_given_stays(seed: int) -> None:
    # Without calls: a call takes the sharding of the function it calls, and what a function returns that of its calls.
    module, given_ = marked(random_program(seed, ANNOTATED))
    try:
        after = propagated(module).root
    except PassError:  # axes whose sub-axes would have to be merged: the reference refuses the same programs
        reject()
    meshes_before, meshes = module_meshes(module.root), module_meshes(after)
    for op in walk(after):
        if MARK not in op.attrs:
            continue
        for old, new, result in zip(given_[op.attrs[MARK].value], annotations(op), op.results, strict=True):
            # An op may be computed in another way, and resharded to what was given.
            found = [new, *(user.attrs["sharding"] for user in result.users() if user.name == "sdy.reshard")]
            whole = meshes_before[old.mesh]
            split = axes_size(sum(old.dim_axes, ()), whole) > 1
            says_something = split or not all(dim.is_open for dim in old.dims)  # else it may go to another mesh
            mesh = without_size_one(whole)
            assert any(
                is_kept(old, one, result.type, None)
                and (not says_something or without_size_one(meshes[one.mesh]) == mesh)
                for one in found
            )


def test_the_law_above_is_about_many_ops() -> None:
    """Most annotated ops of random programs are dead code and go; enough stay."""
    found = 0
    for seed in range(10):
        module, _ = marked(random_program(seed, ANNOTATED))
        found += sum(MARK in op.attrs for op in walk(propagated(module).root))
    assert found > 15


@FEW
@given(SEEDS)
def test_what_an_argument_or_result_was_given_stays_where_it_divides_evenly(seed: int) -> None:
    module = Module.parse(random_program(seed, FEATURES))
    meshes = module_meshes(module.root)
    main, after = main_function(module.root), main_function(propagated(module).root)
    for arg in main.region.block.args:
        before = arg_sharding(main, arg.index)
        if before is not None:
            assert is_kept(before, arg_sharding(after, arg.index), arg.type, meshes[before.mesh])
    for index, value in enumerate(return_op(main).operands):
        before = result_sharding(main, index)
        if before is not None:
            assert is_kept(before, result_sharding(after, index), value.type, meshes[before.mesh])


@FEW
@given(SEEDS)
def test_every_sharding_is_valid_and_closed(seed: int) -> None:
    root = propagated(Module.parse(random_program(seed, FEATURES))).root
    meshes = module_meshes(root)
    for _, value in all_values(root):
        sharding = get_sharding(value)
        if sharding is None:
            continue
        check_sharding(sharding, meshes[sharding.mesh], value.type.rank)
        used = [axis for dim in sharding.dims for axis in dim.axes]
        assert not any(axis.overlaps(other) for i, axis in enumerate(used) for other in used[:i])
        assert all(not dim.is_open and dim.priority is None for dim in sharding.dims)


def splits(module: Module) -> list[tuple[str, str]]:
    """Every value of a module by the op that has it, and how it is split; replicated is no different from nothing."""
    found = []
    for op, value in all_values(module.root):
        sharding = get_sharding(value)
        is_split = sharding is not None and not (sharding.is_fully_replicated and not sharding.unreduced)
        found.append((op.name, str(sharding) if is_split else ""))
    return found


@FEW
@given(SEEDS)
def test_propagating_again_changes_no_split(seed: int) -> None:
    # Without calls and constraints: the pipeline makes copies of functions that differ from call to call, and closes
    # constraints, so a second run starts from another program. The reference does the same, as test_random_programs
    # in tests/differential shows; and it writes out more of what is replicated.
    once = propagated(Module.parse(random_program(seed, replace(FEATURES, calls=0.0, constraints=0.0))))
    assert splits(propagated(once)) == splits(once)


@FEW
@given(SEEDS)
def test_propagating_again_changes_nothing(seed: int) -> None:
    features = replace(FEATURES, calls=0.0, constraints=0.0, manual=0.0, annotated=0.0, meshes=1)
    once = propagated_text(random_program(seed, features))
    assert propagated_text(once) == once


def renamed(text: str) -> str:
    """The same module with other names for values, functions and meshes."""
    text = re.sub(r"%([a-z])(\d+)", lambda found: f"%v_{ord(found[1])}_{int(found[2]) * 7}", text)
    return re.sub(r'([@"])f(\d+)', r"\1zeta.\2", re.sub(r"@m(\d)", r"@a_grid_\1", text))


@FEW
@given(SEEDS)
def test_names_do_not_matter(seed: int) -> None:
    text = random_program(seed, FEATURES)
    other = renamed(text)
    assert other != text
    assert propagated_text(other) == re.sub(r"%v_", "%", renamed(propagated_text(text)))


@FEW
@given(SEEDS)
def test_text_and_bytecode_come_back_as_they_were(seed: int) -> None:
    module = Module.parse(random_program(seed, FEATURES))
    text, generic = module.text(debug_info=True), module.text(generic=True)
    through_nodes = module.with_root(module.copy_root())
    assert through_nodes.text(debug_info=True) == text
    again = Module.parse(through_nodes.text(debug_info=True))
    assert (again.text(debug_info=True), again.text(generic=True)) == (text, generic)
    bytecode = Module.parse(through_nodes.bytecode())
    assert bytecode.with_root(bytecode.copy_root()).text(generic=True) == generic


@pytest.mark.slow
def test_the_order_of_hashes_does_not_matter() -> None:
    code = (
        "from tests.property.test_programs import *\n"
        "for seed in range(20): print(propagated_text(random_program(seed, FEATURES)))"
    )
    (text,) = printed_under_hash_seeds(code)
    assert text.count(b"func.func public @main") + text.count(b"func.func @main") == 20
