"""The long comparison with XLA's dumps, for eight devices.

`PYTHONPATH=tests python -m tests.differential.xla_campaign [--seeds 5] [--random 100] [--only NAME]` compares every
program of the corpus and of the packages under plain and random annotations, and random programs of every family. It
prints every program that differs, and the figures at the end. Programs of packages that are not installed are left out.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from programs import PROGRAMS
from pyshardy.core.mesh import Mesh
from pyshardy.errors import ShardyError
from pyshardy.ir.context import make_context
from pyshardy.ir.module import Module
from support.programs import module_text
from support.xla import DEVICES, XlaFailed, XlaProcess
from tests.end_to_end.number_programs import FAMILIES
from tests.packages import PROGRAMS as OF_PACKAGES
from tests.packages.annotate import Annotator

from .xla_compare import difference, normal_form, parsed_dump, xla_view
from .xla_known import known_difference

PLAIN_MESH = Mesh([("data", 4), ("model", 2)])
MESHES = (
    Mesh([("a", 2), ("b", 2), ("c", 2)]), Mesh([("a", 4), ("b", 2)]), Mesh([("a", 2), ("b", 4)]), Mesh([("a", 8)]),
)  # fmt: skip


def lowered(only: str) -> Iterator[tuple[str, str]]:
    """Every program that can be lowered here, with its text: first those of the corpus, with shardings of their own."""
    for name, program in sorted(PROGRAMS.items()):
        if only in name and not program.skip() and not program.in_process:
            yield name, module_text(program)
    for name, package in sorted(OF_PACKAGES.items()):
        if only in name and not package.missing():
            try:
                yield name, package.lower().as_text()
            except Exception as error:  # a package that does not fit this JAX
                print(f"{name}: cannot be lowered: {error}", file=sys.stderr)


def plain(text: str, seed: int | str) -> str:
    """The module with whole axes on some inputs, where they divide, and everything else open."""
    random = Random(f"{seed}")

    def dims_of(shape: list[int]) -> str:
        dims: list[list[str]] = [[] for _ in shape]
        for axis, size in PLAIN_MESH.axes:
            sizes = [rest // (4 if "data" in dim else 1) for rest, dim in zip(shape, dims)]
            fitting = [index for index, rest in enumerate(sizes) if rest and rest % size == 0]
            if fitting and random.random() < 0.6:
                dims[random.choice(fitting)].append(axis)
        inside = ", ".join("{" + ", ".join(f'"{axis}"' for axis in dim) + "}" for dim in dims)
        return f"#sdy.sharding<@mesh, [{inside}]>" if any(dims) else ""

    return _annotated(text, PLAIN_MESH, lambda main: _annotate_inputs(main, dims_of, random))


def _annotate_inputs(main: Any, dims_of: Any, random: Random) -> None:
    inputs = main.attributes["function_type"].value.inputs
    given = main.attributes["arg_attrs"] if "arg_attrs" in main.attributes else [{}] * len(inputs)
    attrs = [{item.name: item.attr for item in attr} if len(attr) else {} for attr in given]
    for attr, type_ in zip(attrs, inputs):
        is_tensor = isinstance(type_, ir.RankedTensorType) and type_.has_static_shape and type_.rank > 0
        if is_tensor and random.random() < 0.6:
            found = dims_of(list(type_.shape))
            if found:
                attr["sdy.sharding"] = ir.Attribute.parse(found)
    main.attributes["arg_attrs"] = ir.ArrayAttr.get([ir.DictAttr.get(attr) for attr in attrs])


def annotated(text: str, seed: int | str) -> str:
    """The module with random shardings on inputs, outputs and ops, on a random mesh of eight devices."""

    def annotate(main: Any) -> None:
        annotator.mesh = mesh
        main.operation.parent.operation.walk(annotator.visit)

    mesh = Random(f"{seed}").choice(MESHES)
    annotator: Any = None

    def start(main: Any) -> None:
        nonlocal annotator
        annotator = Annotator(main.operation.parent, seed, 0.0)
        annotate(main)

    return _annotated(text, mesh, start)


def _annotated(text: str, mesh: Mesh, change: Any) -> str:
    with make_context(True), ir.Location.unknown():
        module = ir.Module.parse(text)
        main = next(op for op in module.body.operations if op.attributes["sym_name"].value == "main")
        change(main)
        ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(f"sdy.mesh @mesh = {mesh}"))
        module.operation.attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(32), DEVICES
        )
        return str(module)


def variants(name: str, text: str, seeds: int) -> Iterator[tuple[str, str]]:
    """A program as it is if it has shardings, else under annotations."""
    if "sdy.mesh" in text:
        yield name, text
        return
    for seed in range(seeds):
        yield f"{name} plain {seed}", plain(text, f"{name} {seed}")
        yield f"{name} random {seed}", annotated(text, f"{name} {seed}")


def random_programs(count: int) -> Iterator[tuple[str, str]]:
    """The first random programs of every family, as a module that XLA's compiler takes from JAX."""
    for family, program in FAMILIES.items():
        for seed in range(count):
            yield f"{family} {seed}", as_jax_writes(Module.parse(program(seed)).text())


def as_jax_writes(text: str) -> str:
    """The module with the name and the counts that XLA's compiler reads, its first mesh called `mesh`."""
    text = re.sub(r"@m(0?)(?=[ ,])", "@mesh", text)
    counts = f"mhlo.num_partitions = {DEVICES} : i32, mhlo.num_replicas = 1 : i32"
    return re.sub(
        r"^module( @\w+)?( attributes \{)?",
        lambda found: f"module @jit_f attributes {{{counts}" + (", " if found[2] else "} "),
        text,
        count=1,
    )


def programs(seeds: int, count: int, only: str) -> Iterator[tuple[str, str]]:
    """All that is compared, by name."""
    for program, text in lowered(only):
        yield from variants(program, text, seeds)
    yield from (found for found in random_programs(count) if only in found[0])


class Outcome(NamedTuple):
    """How a program compares: the lines that differ, and how many ops there are."""

    difference: str
    ops: int


def dumped(xla: XlaProcess, text: str) -> str | None:
    """What XLA writes behind propagation; None for a program that it does not compile."""
    try:
        return xla.dumps(text).get("02")
    except XlaFailed:
        return None


def compared(text: str, dump: str) -> Outcome:
    """Our view of a program beside XLA's dump."""
    try:
        ours = xla_view(text, "02")
    except ShardyError as error:
        return Outcome(f"refused: {error}", 0)
    return Outcome(difference(ours, dump, 10**6), len(normal_form(ours)))


def explained(xla: XlaProcess, text: str, dump: str) -> str | None:
    """The name of the known difference that explains all of it; None if there is none."""

    def is_equal(other: str) -> bool:
        theirs = dumped(xla, other)
        return theirs is not None and compared(other, theirs).difference == ""

    try:
        ours = normal_form(xla_view(text, "02"))
    except ShardyError:
        return None
    return known_difference(text, ours, parsed_dump(dump), is_equal)


def main() -> int:
    """Compare; the exit status is 1 if anything differs that has no name."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--random", type=int, default=100, help="programs of every random family")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    found: Counter[str] = Counter()
    known: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder, XlaProcess(Path(folder) / "xla") as xla:
        for name, text in programs(arguments.seeds, arguments.random, arguments.only):
            dump = dumped(xla, text)
            if dump is None:
                found["not compiled"] += 1
                continue
            outcome = compared(text, dump)
            found["ops"] += outcome.ops
            if not outcome.difference:
                found["equal"] += 1
                continue
            reason = explained(xla, text, dump)
            if reason is not None:
                known[reason] += 1
                continue
            found["different"] += 1
            found["ops that differ"] += sum(line.startswith("-") for line in outcome.difference.splitlines())
            print(f"{name}:\n" + "\n".join(outcome.difference.splitlines()[:8]), flush=True)
    for reason, count in sorted(known.items()):
        print(f"{count} known: {reason}")
    print(
        f"{found['equal']} equal, {known.total()} known to differ, {found['different']} different in "
        f"{found['ops that differ']} of {found['ops']} ops; XLA compiles {found['not compiled']} not"
    )
    return int(found["different"] > 0)


if __name__ == "__main__":
    sys.exit(main())
