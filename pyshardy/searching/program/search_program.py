"""Makes the input of a search for shardings from the nodes of a module."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import partial

from pyshardy.core.mesh import Mesh
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.further_layers import MIDDLE
from pyshardy.costing.program import CostKind
from pyshardy.costing.topology import Topology
from pyshardy.errors import UsageError
from pyshardy.ir.cost_kinds import SharedKinds
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import CALL, SHARDING, arg_attrs, is_donated, main_function, result_attrs, return_op
from pyshardy.ir.locations import argument_name
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.program import build_program
from pyshardy.ir.program_index import FunctionResultPlace, ProgramIndex
from pyshardy.ir.run_counts import run_counts
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.source_values import first_values
from pyshardy.ir.strings import result_name
from pyshardy.ir.trip_counts import LOOP
from pyshardy.passes.flow import for_module, sharding_stages
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import NO_VALUE
from pyshardy.results.cost import view_for
from pyshardy.rules.properties import CONDITIONALS
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.autopartition.problem import InputFact, OutputFact, Problem
from pyshardy.searching.program.layers import LayerFamily, find_families
from pyshardy.searching.program.shorten import BETWEEN, Part, Short, layer_runs, part_of, shorten

DOING = "searching for shardings"
_AROUND_OTHERS = CONDITIONALS | {
    LOOP, CALL, "func.func", "builtin.module", "sdy.manual_computation", "sdy.named_computation",
}  # fmt: skip

ShortProgram = tuple[Short, tuple[LayerFamily, ...]]
"""A program with three layers of every family, and the families."""


def mesh_to_search(root: Op) -> tuple[str, Mesh]:
    """The only mesh with axes of a module, with its name.

    Raises:
        UsageError: There is none, or there are several.
    """
    found = {name: mesh for name, mesh in module_meshes(root).items() if mesh.axes}
    if len(set(found.values())) != 1:
        got = "a program without a mesh" if not found else f"the meshes {', '.join(found)}"
        hint = "mesh={'data': 4, 'model': 2}"
        raise UsageError(DOING, got=got, needed="one mesh", hint=hint)
    return next(iter(found.items()))


def short_program(root: Op) -> ShortProgram:
    """A program with three layers of every family of repeated ones, with the families."""
    families = find_families(root)
    return shorten(root, families, dict.fromkeys(range(len(families)), 1)), families


def build_problem(
    root: Op,
    short: Short,
    families: Sequence[LayerFamily],
    specs: OpSpecReader,
    topology: Topology,
    collectives: CollectiveModel,
    objective: Objective,
) -> Problem:
    """The input of a search.

    Args:
        root: The module as the user gave it; inputs with a sharding keep it.
        short: The short version of it, as propagation takes it.
        families: The repeated layers of which the short version has three.
        specs: Describes ops for the sharding rules.
        topology: The chip, and the position of the mesh in its network.
        collectives: The prices of collectives.
        objective: What makes a plan better, with the bytes of memory that a device may use.

    Raises:
        UsageError: No mesh, or several.
        PassError: The sharding rule of an op does not fit it.
    """
    name, mesh = mesh_to_search(root)
    program, index = build_program(short.root, specs)
    main, short_main = main_function(root), main_function(short.root)
    counts = [run.size for run in layer_runs(families)]
    layers = [_layer(part, counts) for part in _parts(short_main, index)]
    times = _times(short.root, index)
    return Problem(
        program=program,
        mesh_name=name,
        mesh=mesh,
        inputs=_inputs(main, short, short_main, index),
        outputs=_outputs(main, short, short_main, index),
        kinds=_kinds(index),
        times=[count * weight for count, (_, weight) in zip(times, layers)],
        bytes=_element_bytes(index),
        topology=topology,
        collectives=collectives,
        objective=objective,
        layers=layers if families else (),
        places=partial(_places, short.root, index),
    )


def _kinds(index: ProgramIndex) -> list[CostKind]:
    """What the cost of each op depends on."""
    kinds = SharedKinds()
    return [CostKind(op.name, (), ()) if op.name == "func.func" else kinds.kind(op) for op in index.ops]


def _places(root: Op, index: ProgramIndex) -> dict[Hashable, int]:
    """The numbers of the first values that expressions of the source compute, by the expression and the shape."""
    numbers = {id(value): number for number, value in enumerate(index.values) if isinstance(value, Value)}
    found = first_values(root).items()
    return {place: numbers[id(value)] for place, value in found if id(value) in numbers}


def _parts(main: Op, index: ProgramIndex) -> list[Part | None]:
    """The part of each op: if it is unknown, that of the op before it."""
    parts: dict[Op, Part | None] = {}
    latest: Part | None = None
    for op in main.region.blocks[0]:
        latest = parts[op] = part_of(op) or latest
    return [next((parts[one] for one in (op, *op.ancestors()) if one in parts), None) for op in index.ops]


def _layer(part: Part | None, counts: Sequence[int]) -> tuple[int, int]:
    """The stretch of layers that an op is in, and how many layers its own stands for."""
    if part is None:
        return -1, 1
    return (-1 if part.kind == BETWEEN else part.stretch), (counts[part.stretch] - 2 if part.kind == MIDDLE else 1)


def _inputs(main: Op, short: Short, short_main: Op, index: ProgramIndex) -> tuple[InputFact, ...]:
    numbers = {id(value): number for number, value in enumerate(index.values) if isinstance(value, Value)}
    args = short_main.region.blocks[0].args
    value_of = {place: numbers[id(args[at])] for at, place in enumerate(short.inputs) if id(args[at]) in numbers}
    found = []
    for arg in main.region.blocks[0].args:
        shape, element = arg.type.shape, arg.type.element
        if shape is None:
            continue
        attrs = arg_attrs(main, arg.index)
        donated = is_donated(main, arg.index)
        text = argument_name(arg.location, arg.index)
        value, size = value_of.get(arg.index, NO_VALUE), known_bytes(shape, element)
        found.append(InputFact(text, value, shape, element, size, donated, attrs.get(SHARDING)))
    return tuple(found)


def _outputs(main: Op, short: Short, short_main: Op, index: ProgramIndex) -> tuple[OutputFact, ...]:
    value_of = {
        short.outputs[place.result]: number
        for number, place in enumerate(index.values)
        if isinstance(place, FunctionResultPlace) and place.function is short_main
    }
    returned = return_op(main).operands
    found = []
    for place, value in enumerate(returned):
        if value.type.shape is not None:
            name = result_name(result_attrs(main, place).get("jax.result_info"), place, len(returned))
            size = known_bytes(value.type.shape, value.type.element)
            number = value_of.get(place, NO_VALUE)
            found.append(OutputFact(name, number, value.type.shape, value.type.element, size))
    return tuple(found)


def _element_bytes(index: ProgramIndex) -> list[float]:
    found = []
    for place in index.values:
        is_tensor = isinstance(place, Value) and place.type.shape is not None and place.type.is_static
        found.append(known_bytes((8,), place.type.element) / 8 if is_tensor and isinstance(place, Value) else 0.0)
    return found


def _times(root: Op, index: ProgramIndex) -> list[int]:
    names = {op.name for op in index.ops} - _AROUND_OTHERS
    counts = run_counts(root, lambda op: op.name in names, lambda op: 1)
    return [counts[op].times if op in counts else int(op.name == LOOP) for op in index.ops]


def problem_of(
    module: Module,
    topology: Topology,
    collectives: CollectiveModel,
    objective: Objective,
    short_one: ShortProgram | None = None,
) -> Problem:
    """The problem of a search: the input of propagation, with the mesh and the hardware.

    Args:
        module: The program; inputs with a sharding keep it.
        topology: The chip, and the networks of the mesh axes.
        collectives: The model of collectives.
        objective: What makes a plan better, with the bytes of memory that a device may use.
        short_one: The short program, which changes; by default, it is made.

    Raises:
        UsageError: The program has no mesh, or several.
        PassError: The module breaks a requirement of propagation.
    """
    with module.context, pause_gc():
        short, families = short_one or short_program(module.root)
        stage = sharding_stages(for_module(PropagateOptions(view=view_for(topology.hardware)), short.root))[0]
        context = run_on_root(module, short.root, stage.passes)
        return build_problem(module.root, short, families, context.specs, topology, collectives, objective)
