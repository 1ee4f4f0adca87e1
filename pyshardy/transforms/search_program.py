"""Makes the input of a search for shardings from the nodes of a module."""

from __future__ import annotations

from pyshardy.autopartition.problem import InputFact, OutputFact, Problem
from pyshardy.core.mesh import Mesh
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import Topology
from pyshardy.errors import UsageError
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import CALL, arg_attrs, main_function, result_attrs, return_op
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program import build_program
from pyshardy.ir.program_index import FunctionResultPlace, ProgramIndex
from pyshardy.ir.run_counts import run_counts
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.strings import location_name, shown, string_value
from pyshardy.ir.trip_counts import LOOP
from pyshardy.rules.properties import CONDITIONALS

_AROUND_OTHERS = CONDITIONALS | {
    LOOP, CALL, "func.func", "builtin.module", "sdy.manual_computation", "sdy.named_computation",
}  # fmt: skip


def mesh_to_search(root: Op) -> tuple[str, Mesh]:
    """The only mesh with axes of a module, with its name.

    Raises:
        UsageError: There is none, or there are several.
    """
    found = {name: mesh for name, mesh in module_meshes(root).items() if mesh.axes}
    if len(set(found.values())) != 1:
        got = "a program without a mesh" if not found else f"the meshes {', '.join(found)}"
        hint = "mesh={'data': 4, 'model': 2}"
        raise UsageError("searching for shardings", got=got, needed="one mesh", hint=hint)
    return next(iter(found.items()))


def build_problem(
    root: Op, specs: OpSpecReader, topology: Topology, collectives: CollectiveModel, limit: float
) -> Problem:
    """The input of a search.

    Args:
        root: The module, ready for propagation; inputs with a sharding keep it.
        specs: Describes ops for the sharding rules.
        topology: The chip, and the position of the mesh in its network.
        collectives: The prices of collectives.
        limit: The memory that a device may use, in bytes.

    Raises:
        UsageError: No mesh, or several.
        PassError: The sharding rule of an op does not fit it.
    """
    name, mesh = mesh_to_search(root)
    program, index = build_program(root, specs)
    main = main_function(root)
    return Problem(
        program=program,
        mesh_name=name,
        mesh=mesh,
        inputs=_inputs(main, index),
        outputs=_outputs(main, index),
        times=_times(root, index),
        bytes=_element_bytes(index),
        topology=topology,
        collectives=collectives,
        limit=limit,
    )


def _inputs(main: Op, index: ProgramIndex) -> tuple[InputFact, ...]:
    numbers = {id(value): number for number, value in enumerate(index.values) if isinstance(value, Value)}
    found = []
    for arg in main.region.blocks[0].args:
        shape, element = arg.type.shape, arg.type.element
        if shape is None:
            continue
        name = location_name(arg.location)
        attrs = arg_attrs(main, arg.index)
        donated = "tf.aliasing_output" in attrs or "jax.buffer_donor" in attrs
        text = f"arg{arg.index}" if name is None else shown(name)
        found.append(InputFact(text, numbers[id(arg)], shape, element, known_bytes(shape, element), donated))
    return tuple(found)


def _outputs(main: Op, index: ProgramIndex) -> tuple[OutputFact, ...]:
    returned = return_op(main).operands
    found = []
    for number, place in enumerate(index.values):
        if not isinstance(place, FunctionResultPlace) or place.function is not main:
            continue
        shape, element = returned[place.result].type.shape, returned[place.result].type.element
        if shape is not None:
            name = _result_name(main, place.result, len(returned))
            found.append((place.result, OutputFact(name, number, shape, element, known_bytes(shape, element))))
    return tuple(fact for _, fact in sorted(found, key=lambda pair: pair[0]))


def _result_name(main: Op, index: int, count: int) -> str:
    info = result_attrs(main, index).get("jax.result_info")
    text = "" if info is None else shown(string_value(info))
    if text:
        return text if text.startswith("result") else f"result{text}"
    return "result" if count == 1 else f"result[{index}]"


def _element_bytes(index: ProgramIndex) -> list[float]:
    found = []
    for place in index.values:
        is_tensor = isinstance(place, Value) and place.type.shape is not None and place.type.is_static
        found.append(known_bytes((8,), place.type.element) / 8 if is_tensor and isinstance(place, Value) else 0.0)
    return found


def _times(root: Op, index: ProgramIndex) -> list[int]:
    names = {op.name for op in index.ops} - _AROUND_OTHERS
    counts = run_counts(root, names, lambda op: 1)
    return [counts[op].times if op in counts else int(op.name == LOOP) for op in index.ops]
