"""The plain description of a program of one device for cost estimates, read from its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import device_count
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.costing.program import (
    CostBlock,
    CostInput,
    CostOp,
    CostProgram,
    CostTensor,
    OpOrigin,
    OpTraffic,
    SourceLine,
)
from pyshardy.ir.compiler_causes import CompilerCauses
from pyshardy.ir.cost_kinds import RUN_ONCE, WITH_REGIONS, SharedKinds
from pyshardy.ir.functions import (
    CALL,
    arg_attrs,
    calls,
    functions,
    is_declaration,
    main_function,
    result_attrs,
    return_op,
)
from pyshardy.ir.locations import argument_name, scope_of, source_frames
from pyshardy.ir.nodes import Block, Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.strings import result_name
from pyshardy.ir.traffic import TrafficReader, is_collective
from pyshardy.ir.trip_counts import LOOP, TripCounts
from pyshardy.source.places import user_place

_Known = tuple[tuple[int, int], ...]
_ALIAS, _DONOR = "tf.aliasing_output", "jax.buffer_donor"
_MEMORY_KIND, _HOST = "mhlo.memory_kind", "host"
"""The memory of an argument; that of the host is "pinned_host" or "unpinned_host"."""


def cost_program(root: Op, meshes: Meshes, name: str = "-", compiler: CompilerCauses | None = None) -> CostProgram:
    """The description of a program of one device.

    Args:
        root: The module, with the shapes on one device.
        meshes: The meshes whose axes its collectives use.
        name: The name of the text that the program was read from; MLIR calls it "-".
        compiler: What collectives are for, if a compiler partitioned the program.
    """
    return CostReader(root, meshes, name, compiler=compiler).program()


class NodePlace:
    """The place that a node comes from; its location, which may hold a deep stack, is read on first use."""

    def __init__(self, node: Op, name: str, compiler: CompilerCauses | None = None) -> None:
        self._node, self._name, self._compiler = node, name, compiler

    @property
    def node(self) -> Op:
        """The node."""
        return self._node

    @cached_property
    def scope(self) -> str | None:
        """The name that JAX gave the op, or the op that it serves, if it is a compiler's collective."""
        return scope_of(self._served.location)

    @property
    def cause(self) -> str | None:
        """What made it necessary, if it is a collective."""
        if self._compiler is not None:
            return self._compiler.cause(self._node)
        need = self._node.need
        return None if need is None else str(need)

    @property
    def source(self) -> SourceLine | None:
        """The user's line."""
        return user_place(source_frames(self._served.location, self._name))

    @property
    def windowed(self) -> str | None:
        """The collective that a permute is a part of, if a compiler made that of it."""
        return None if self._compiler is None else self._compiler.windowed(self._node)

    @property
    def _served(self) -> Op:
        if self._compiler is None or not is_collective(self._node):
            return self._node
        return self._compiler.served(self._node)


class CostReader:
    """Numbers values and functions as it meets them.

    Args:
        root: The module.
        meshes: The meshes that its collectives are along.
        name: What to call the text that the program was read from.
        kinds: What it shares with other readers.
        compiler: What collectives are for, if a compiler partitioned the program.
    """

    def __init__(
        self,
        root: Op,
        meshes: Meshes,
        name: str,
        kinds: SharedKinds | None = None,
        compiler: CompilerCauses | None = None,
    ) -> None:
        self.root, self.meshes, self.name, self.compiler = root, meshes, name, compiler
        self.kinds = SharedKinds() if kinds is None else kinds
        self.trips = TripCounts(root)
        self.traffic = TrafficReader(root, meshes)
        self.by_name = {function.attrs["sym_name"]: function for function in functions(root)}
        self.with_loops = self._functions_with_loops()
        self.tensors: list[CostTensor] = []
        self.functions: list[CostBlock] = []
        self.found: dict[tuple[str, _Known], int] = {}
        self.pending: set[tuple[str, _Known]] = set()

    def program(self) -> CostProgram:
        """The description of the whole module."""
        main = main_function(self.root)
        index = self._function(main, ())
        returned = () if is_declaration(main) else return_op(main).operands
        meshes = [mesh for mesh in self.meshes.values() if mesh.axes]
        return CostProgram(
            tensors=tuple(self.tensors),
            functions=tuple(self.functions),
            main=index,
            inputs=tuple(input_of(main, arg) for arg in ([] if is_declaration(main) else main.region.blocks[0].args)),
            outputs=tuple(output_name(main, place, len(returned)) for place in range(len(returned))),
            devices=device_count(self.meshes) if self.meshes else 1,
            mesh_axes=tuple(meshes[0].axes) if meshes else (),
        )

    def _functions_with_loops(self) -> set[str]:
        callees = {name: {call.attrs["callee"] for call in calls(one)} for name, one in self.by_name.items()}
        found = {name for name, function in self.by_name.items() if ops_named(function, (LOOP,))}
        while more := {name for name, called in callees.items() if name not in found and called & found}:
            found |= more
        return found

    def _function(self, function: Op, known: _Known) -> int:
        key = (function.attrs["sym_name"], known)
        if key in self.found:
            return self.found[key]
        if is_declaration(function) or key in self.pending:  # do not follow recursion
            body = CostBlock((), (), ())
        else:
            self.pending.add(key)
            block = function.region.blocks[0]
            numbers = {block.args[index]: number for index, number in known}
            body = self._block(block, {}, numbers)
            self.pending.discard(key)
        self.found[key] = len(self.functions)
        self.functions.append(body)
        return self.found[key]

    def _block(self, block: Block, outer: Mapping[Value, int], known: dict[Value, int]) -> CostBlock:
        numbers = dict(outer)
        arguments = tuple([self._new(value, numbers) for value in block.args])
        ops: list[CostOp] = []
        results: tuple[int, ...] = ()
        for node in block:
            if node.is_terminator:
                results = tuple([numbers[value] for value in node.operands])
            else:
                ops.append(self.read_op(node, numbers, known))
        return CostBlock(arguments, tuple(ops), results)

    def _new(self, value: Value, numbers: dict[Value, int]) -> int:
        number = numbers[value] = len(self.tensors)
        self.tensors.append(self.kinds.tensor(value.type))
        return number

    def read_op(self, node: Op, numbers: dict[Value, int], known: dict[Value, int]) -> CostOp:
        """The description of an op.

        Args:
            node: The op.
            numbers: The numbers of the values that are there; those of its results are added.
            known: Values that are known to be a certain whole number.
        """
        operands = tuple([numbers[value] for value in node.operands])
        regions: tuple[CostBlock, ...] = ()
        rounds: int | None = None
        callee: int | None = None
        traffic: OpTraffic | None = None
        branch: int | None = None
        if node.name in RUN_ONCE:
            regions, branch = (self._block(node.region.block, numbers, known),), 0
        elif node.name in WITH_REGIONS:
            regions = tuple(self._block(region.block, numbers, known) for region in node.regions)
            rounds = self.trips.trip_count(node, known) if node.name == LOOP else None
            branch = self._branch(node, known)
            if branch is not None:
                self._note_results(node, node.regions[branch].block, known)
        elif node.name == CALL and node.attrs["callee"] in self.by_name:
            callee = self._function(self.by_name[node.attrs["callee"]], self._known_at(node, known))
        elif is_collective(node):
            traffic = self._traffic(node)
        results = tuple([self._new(value, numbers) for value in node.results])
        place: OpOrigin = NodePlace(node, self.name, self.compiler)
        return CostOp(self.kinds.kind(node), operands, results, regions, rounds, callee, traffic, place, branch)

    def _note_results(self, node: Op, taken: Block, known: dict[Value, int]) -> None:
        """Record the known numbers among the results of a conditional that always takes the same branch."""
        for result, returned in zip(node.results, taken.terminator.operands):
            number = self.trips.constant(returned, known)
            if number is not None:
                known[result] = number

    def _branch(self, node: Op, known: Mapping[Value, int]) -> int | None:
        """The branch that a conditional always takes; an index out of range takes the last one."""
        index = self.trips.constant(node.operands[0], known) if node.name == "stablehlo.case" else None
        last = len(node.regions) - 1
        return None if index is None else index if 0 <= index <= last else last

    def _known_at(self, call: Op, known: Mapping[Value, int]) -> _Known:
        if call.attrs["callee"] not in self.with_loops:
            return ()
        numbers = [self.trips.constant(operand, known) for operand in call.operands]
        return tuple((index, number) for index, number in enumerate(numbers) if number is not None)

    def _traffic(self, node: Op) -> OpTraffic:
        groups = self.traffic.groups(node)
        mesh = None if groups.mesh_name is None else self.traffic.mesh(groups.mesh_name)
        axes = None
        if groups.axes is not None and mesh is not None:
            axes = tuple((axis.name, axes_size((axis,), mesh)) for axis in groups.axes)
        return OpTraffic(
            self.traffic.kind(node),
            groups.mesh_name,
            axes,
            groups.size,
            sum(self.kinds.tensor(value.type).bytes for value in node.operands[: len(node.results)]),
            sum(self.kinds.tensor(value.type).bytes for value in node.results),
            self.traffic.sent_bytes(node),
        )


def input_of(main: Op, arg: Value) -> CostInput:
    """The description of an argument of the main function."""
    attrs = arg_attrs(main, arg.index)
    alias = attrs.get(_ALIAS)
    return CostInput(
        argument_name(arg.location, arg.index),
        None if alias is None else int(getattr(alias, "value", alias)),
        alias is not None or _DONOR in attrs,
        _HOST in str(attrs.get(_MEMORY_KIND, "")),
    )


def output_name(main: Op, index: int, count: int) -> str:
    """The name of a result of the main function; `count` is the number of its results."""
    return result_name(result_attrs(main, index).get("jax.result_info"), index, count)
