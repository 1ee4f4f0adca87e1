"""Random programs for eight devices whose numbers can be compared with one device's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from random import Random

from differential.draw import Draw
from differential.random_programs import Features, random_program
from differential.reshard_shardings import Sharder, Style
from differential.rule_instances import KINDS, MESH
from end_to_end import (
    called_programs,
    composed_programs,
    indexed_programs,
    moving_programs,
    odd_programs,
    typed_programs,
)

from pyshardy.core.mesh import Mesh
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes
from pyshardy.transforms.builder import Builder

DEVICES = 8
_AXES = (
    (("a", 2), ("b", 2), ("c", 2)),
    (("a", 2), ("b", 4)),
    (("a", 4), ("b", 2)),
    (("a", 8),),
    (("a", 3), ("b", 2)),
    (("a", 6),),
    (("a", 2), ("b", 1), ("c", 2)),
    (("a", 4),),
    (("a", 7),),
)
_STYLES = (
    Style(missing=0.2, density=0.6),
    Style(missing=0.5, density=0.8, sub_axes=0.5),
    Style(missing=0.1, density=0.9, repeat=0.7),
    Style(missing=0.3, density=0.6, other_mesh=0.4),
)
_FEW = (Style(missing=0.9, density=0.7), Style(missing=0.95, density=0.9, sub_axes=0.3))
_NOT_ON_ONE_DEVICE = frozenset(
    [
        "sharding_constraint",
        "all_reduce",
        "all_gather",
        "reduce_scatter",
        "all_to_all",
        "pointwise_call",
        "token_call",
        "call_without_rule",
        "linear_algebra_call",
        "mhlo_topk",
        "topk",
        "approximate_topk",
        "x64_combine",
        "without_rule",
        "select_and_scatter",  # XLA's compiler for CPUs ends the process over some, on one device too
    ]
)
"""Kinds of ops that are written for several devices, or that nobody here can run.

XLA's compiler for CPUs ends the process over a select-and-scatter that does not look at what it compares in order.
"""
_OF_REPLICAS = ("collective_", "cross-replica-sum")
"""Ops among them that work on several replicas of a program."""
OP_KINDS = tuple(sorted(set(KINDS) - _NOT_ON_ONE_DEVICE))
_OPAQUE = frozenset(["unknown"])
MOVES_DATA = frozenset(
    [
        "bitcast_convert",
        "broadcast_in_dim",
        "transpose",
        "reverse",
        "reshape",
        "slice",
        "concatenate",
        "pad",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "select",
        "sort",
    ]
)
"""Kinds of ops that compute nothing: all numbers must be the same to the last bit."""


def meshes_of(random: Random) -> dict[str, Mesh]:
    """One mesh of up to eight devices, or the same with two orders of the devices."""
    axes = random.choice(_AXES)
    mesh = Mesh(axes)
    if random.random() < 0.15:
        mesh = Mesh(axes, random.sample(range(mesh.size), mesh.size))
    meshes = {"m": mesh}
    if random.random() < 0.25:
        meshes["n"] = Mesh(axes, random.sample(range(mesh.size), mesh.size))
    return meshes


def sharded(text: str, random: Random, styles: Sequence[Style] = _STYLES) -> str:
    """The module with random shardings on everything, or on what a style leaves."""
    module = Module.parse(text)
    root = module.copy_root()
    with module.context:
        return_results(module, root)
        end_loops(module, root)
        Sharder(random, random.choice(styles), meshes_of(random)).shard(root)
        return module.with_root(root).text(generic=True)


def return_results(module: Module, root: Op) -> None:
    """Let a function that returns nothing return what its last op gives, tensors of static shape."""
    main = main_function(root)
    end = main.region.blocks[0].terminator
    last = end.prev
    if end.operands or last is None:
        return
    values = [result for result in last.results if result.type.is_ranked_tensor and result.type.is_static]
    Op("func.return", values, (), {}, location=end.location).insert_before(end)
    end.erase()
    given = ", ".join(str(arg.type) for arg in main.region.blocks[0].args)
    main.set_attr(
        "function_type", module.attrs.parse(f"({given}) -> ({', '.join(str(value.type) for value in values)})")
    )


def end_loops(module: Module, root: Op) -> None:
    """Let every loop that counts to a number count."""
    for loop in [op for op in walk(root) if op.name == "stablehlo.while"]:
        block = loop.regions[1].block
        counter, end = block.args[0], block.terminator
        if end.operands[0] is counter and "i" in counter.type.element:  # a counter, not what JAX carries unchanged
            builder = Builder(module.attrs, end, loop.location)
            end.set_operand(0, builder.combine("add", counter, builder.splat("1", counter.type)))


def ending(text: str) -> str:
    """The module with loops that end."""
    module = Module.parse(text)
    root = module.copy_root()
    with module.context:
        end_loops(module, root)
        return module.with_root(root).text(generic=True)


def with_indices(text: str, random: Random) -> str:
    """The program with indices, and numbers that loops count from, in bounds and out of them, instead of 0."""
    return re.sub(
        r"dense<0>(?= : tensor<(\d+x)*i32>)", lambda _: f"dense<{random.choice((0, 0, 1, 2, 5, 40, -1, -3))}>", text
    )


def op_program(kind: str, seed: int) -> str:
    """One op under random shardings."""
    draw = Draw(f"numbers {kind} {seed}")
    text = KINDS[kind](draw)
    while any(name in text for name in _OF_REPLICAS):
        text = KINDS[kind](draw)
    return sharded(MESH + text.replace("@NAME", "@main", 1), draw)


def chain_program(seed: int) -> str:
    """A dozen ops under random shardings on everything."""
    random = Random(f"chain {seed}")
    features = Features(
        ops=random.randint(3, 14), control_flow=0.1, groups=0, annotated=0, manual=0, calls=0.06, without=_OPAQUE
    )
    return sharded(with_indices(random_program(random.randrange(2**32), features), random), random)


def annotated_program(seed: int) -> str:
    """A few dozen ops with some annotations, for propagation to complete."""
    features = Features(ops=20, manual=0, priorities=0.1, meshes=1, without=_OPAQUE)
    for attempt in range(1000):
        text = random_program(seed * 1000 + attempt, features)
        if all(mesh.size <= DEVICES for mesh in module_meshes(Module.parse(text).root).values()):
            return ending(with_indices(text, Random(f"indices {seed}")))
    raise AssertionError("no small mesh in a thousand programs")


def typed_program(seed: int) -> str:
    """An op or a chain of them in any element types under random shardings; all that is computed is returned."""
    return sharded(*typed_programs.unsharded(seed))


def indexed_program(seed: int) -> str:
    """A gather, scatter or dynamic slice at indices of any kind, with a sharded input or random shardings on everything."""
    text, draw = indexed_programs.unsharded(seed)
    return text if "sdy.mesh" in text else sharded(text, draw)


FAMILIES: dict[str, Callable[[int], str]] = {
    "op": lambda seed: op_program(OP_KINDS[seed % len(OP_KINDS)], seed),
    "chain": chain_program,
    "annotated": annotated_program,
    "typed": typed_program,
    "indexed": indexed_program,
    "moving": moving_programs.program,
    "composed": lambda seed: sharded(*composed_programs.unsharded(seed)),
    "called": lambda seed: sharded(*called_programs.unsharded(seed)),
    "odd": lambda seed: sharded(*odd_programs.unsharded(seed), _FEW),
}
"""Per family, how to make a program from a seed."""


def is_move(family: str, seed: int) -> bool:
    """Whether a program computes nothing, so that all numbers must be the same to the last bit."""
    if family == "typed":
        return typed_programs.is_move(seed)
    if family == "indexed":
        return indexed_programs.is_move(seed)
    return family == "moving" or (family == "op" and OP_KINDS[seed % len(OP_KINDS)] in MOVES_DATA)


def is_wide(family: str, seed: int) -> bool:
    """Whether integers that a program takes may be out of bounds."""
    return family in ("typed", "indexed", "moving") or (
        family == "op" and OP_KINDS[seed % len(OP_KINDS)] in indexed_programs.KINDS
    )
