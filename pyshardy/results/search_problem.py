"""From a module to what a search works on."""

from __future__ import annotations

from pyshardy.core.mesh import Mesh
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import Topology
from pyshardy.errors import UsageError
from pyshardy.frontend.interface import input_ports, output_ports
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import CALL, arg_attrs, main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.ir.program import build_program
from pyshardy.ir.program_index import FunctionResultPlace, ProgramIndex
from pyshardy.ir.run_counts import run_counts
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.trip_counts import LOOP
from pyshardy.passes.flow import for_module, sharding_stages
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.rules.properties import CONDITIONALS
from pyshardy.search.problem import InputFact, OutputFact, Problem

_DOING = "searching for shardings"
_AROUND_OTHERS = CONDITIONALS | {
    LOOP,
    CALL,
    "func.func",
    "builtin.module",
    "sdy.manual_computation",
    "sdy.named_computation",
}


def mesh_to_search(module: Module) -> tuple[str, Mesh]:
    """The one mesh of a module that has axes, with its name.

    Raises:
        UsageError: There is none, or there are several.
    """
    found = {name: mesh for name, mesh in module_meshes(module.root).items() if mesh.axes}
    if len(set(found.values())) != 1:
        got = "a program without a mesh" if not found else f"the meshes {', '.join(found)}"
        raise UsageError(_DOING, got=got, needed="one mesh", hint="mesh={'data': 4, 'model': 2}")
    return next(iter(found.items()))


def problem_of(module: Module, topology: Topology, collectives: CollectiveModel, limit: float) -> Problem:
    """What a search works on.

    Args:
        module: The program; inputs with a sharding keep it.
        topology: The chip, and where the mesh lies.
        collectives: How collectives are priced.
        limit: Bytes of memory that a device may use.

    Raises:
        UsageError: No mesh, or several.
        PassError: A module that breaks what propagation needs.
    """
    name, _ = mesh_to_search(module)
    with pause_gc():
        root = module.copy_root()
        options = for_module(PropagateOptions(), root)
        stage = sharding_stages(options)[0]
        context = run_on_root(module, root, stage.passes)
        program, index = build_program(root, context.specs)
        main = main_function(root)
        inputs, outputs = _inputs(root, main, index), _outputs(root, main, index)
        meshes = module_meshes(root)
        used = name if name in meshes else next(key for key, one in meshes.items() if one.axes)
        return Problem(
            program=program,
            mesh_name=used,
            mesh=meshes[used],
            inputs=inputs,
            outputs=outputs,
            times=_times(root, index),
            bytes=_element_bytes(index),
            topology=topology,
            collectives=collectives,
            limit=limit,
        )


def _inputs(root: Op, main: Op, index: ProgramIndex) -> tuple[InputFact, ...]:
    numbers = {id(value): number for number, value in enumerate(index.values) if isinstance(value, Value)}
    args = {arg.index: numbers[id(arg)] for arg in main.region.blocks[0].args}
    found = []
    for port in input_ports(root):
        attrs = arg_attrs(main, port.index)
        donated = "tf.aliasing_output" in attrs or "jax.buffer_donor" in attrs
        size = known_bytes(port.shape, port.element)
        found.append(InputFact(port.name, args[port.index], port.shape, port.element, size, donated))
    return tuple(found)


def _outputs(root: Op, main: Op, index: ProgramIndex) -> tuple[OutputFact, ...]:
    numbers = {
        place.result: number
        for number, place in enumerate(index.values)
        if isinstance(place, FunctionResultPlace) and place.function is main
    }
    return tuple(
        OutputFact(port.name, numbers[port.index], port.shape, port.element, known_bytes(port.shape, port.element))
        for port in output_ports(root)
    )


def _element_bytes(index: ProgramIndex) -> list[float]:
    found = []
    for place in index.values:
        if isinstance(place, FunctionResultPlace):
            found.append(0.0)
            continue
        shape = place.type.shape
        found.append(known_bytes((8,), place.type.element) / 8 if shape is not None and place.type.is_static else 0.0)
    return found


def _times(root: Op, index: ProgramIndex) -> list[int]:
    names = {op.name for op in index.ops} - _AROUND_OTHERS
    counts = run_counts(root, names, lambda op: 1)
    return [counts[op].times if op in counts else int(op.name == LOOP) for op in index.ops]
