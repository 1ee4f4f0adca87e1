"""Random edits of random programs."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.propagation.options import PropagateOptions, StrategyOption, View
from pyshardy.propagation.program import Program
from pyshardy.propagation.run import Propagated
from pyshardy.results.program_result import ProgramResult
from support.small_programs import Builder

Changes = dict[int, TensorSharding | None]


def random_options(random: Random) -> PropagateOptions:
    """Some of the options of propagation."""
    return PropagateOptions(
        view=random.choice([View.XLA, View.STABLEHLO]),
        strategy=random.choice(list(StrategyOption)),
        op_priorities=random.random() < 0.8,
        user_priorities=random.random() < 0.8,
        conservative=random.random() < 0.2,
    )


def random_changes(random: Random, program: Program, run: Propagated) -> Changes:
    """Annotations on a few values of a program, similar to those of others, opened or closed, or removed."""
    values = [
        value for value, shape in enumerate(program.shapes) if shape is not None and program.holders[value] == value
    ]
    pool = [sharding for sharding in (*run.shardings, *program.shardings) if sharding is not None]
    return {
        value: random_sharding(random, pool, len(program.shapes[value] or ()))
        for value in random.choices(values, k=random.randint(1, 3))
    }


def random_sharding(random: Random, pool: list[TensorSharding], rank: int) -> TensorSharding | None:
    """None, or a sharding of a rank similar to an existing one."""
    like = [sharding for sharding in pool if sharding.rank == rank]
    if not like or random.random() < 0.3:
        return None
    found = random.choice(like)
    if random.random() < 0.5:
        return found
    return found.with_dims(
        DimSharding(dim.axes, random.random() < 0.5, dim.priority if dim.axes else None) for dim in found.dims
    )


def program_with_dead_code(random: Random) -> Program:
    """A short program in which most ops are used only by each other, some in regions."""
    b = Builder(m=Mesh([("p", 2), ("q", 2)]))
    annotations = [None, '[{"p", ?}, {?}]', '[{?}, {"q", ?}]', '[{"q", ?}, {"p", ?}]', '[{"p"}p1, {?}]', "[{}, {?}]"]
    values = [b.value((8, 8), random.choice(annotations)) for _ in range(3)]
    for _ in range(random.randint(4, 14)):
        if random.random() < 0.1:
            ops_with_region(b, random, values)
        else:
            values.append(random_op(b, random, values[-6:]))
    b.returns(*random.choices(values, k=random.randint(1, 2)))
    return b.build()


def random_op(b: Builder, random: Random, values: list[int]) -> int:
    """The result of an op on some of the values."""
    kind = random.choice([b.elementwise, b.elementwise, b.transpose, b.dot])
    operands = [random.choice(values) for _ in range(1 if kind == b.transpose else 2)]
    sharding = '[{"p", ?}, {?}]' if random.random() < 0.1 else None
    return kind(*operands[: random.choice([1, 2]) if kind == b.elementwise else 2], sharding=sharding)


def ops_with_region(b: Builder, random: Random, values: list[int]) -> None:
    """An op, dead unless it has effects, with some ops on values from outside in its region."""
    number = len(b.ops)
    b.op("region", None, results=[], is_erasable=random.random() < 0.7)
    with b.inside(number):
        inner = [random_op(b, random, values) for _ in range(random.randint(1, 3))]
        b.terminator(random.choice(inner))


def with_changes(program: Program, changes: Changes) -> Program:
    """The program with other annotations."""
    shardings = list(program.shardings)
    for value, sharding in changes.items():
        shardings[value] = sharding
    return replace(program, shardings=tuple(shardings))


def random_annotations(random: Random, result: ProgramResult) -> dict[str, Any]:
    """Annotations for a few inputs and outputs of a result, by name, like those that are there, or None."""
    given = result.sharded.annotations
    ports = [*result.inputs, *result.outputs]
    pool = [one for one in (*(port.sharding for port in ports), *given.inputs, *given.outputs) if one is not None]
    chosen = random.choices(ports, k=random.randint(1, 2))
    return {port.name: random_sharding(random, pool, len(port.shape)) for port in chosen}
