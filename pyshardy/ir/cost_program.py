"""The plain description of a program of one device for cost estimates, read from its nodes."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from functools import cached_property
from typing import Any

from pyshardy.core.axis_lists import axes_size
from pyshardy.core.mesh import device_count
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.costing.program import (
    IS_PRECISE,
    MATRIX_UNIT_OPS,
    PAIRS,
    RAGGED_NUMBERS,
    CostBlock,
    CostInput,
    CostKind,
    CostOp,
    CostProgram,
    CostTensor,
    OpOrigin,
    OpTraffic,
    RaggedNumbers,
    SourceLine,
)
from pyshardy.ir.compiler_causes import CompilerCauses
from pyshardy.ir.constants import splat_number
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.dtypes import known_bytes
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
from pyshardy.ir.kernel_facts import kernel_facts
from pyshardy.ir.locations import argument_name, scope_of, source_frames
from pyshardy.ir.nodes import Block, Op, Value, ValueType
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.opspec import CONTEXT_FACTS, OpSpecReader
from pyshardy.ir.plain_attributes import plain_attribute
from pyshardy.ir.strings import result_name
from pyshardy.ir.traffic import TrafficReader, is_collective
from pyshardy.ir.trip_counts import LOOP, TripCounts
from pyshardy.rules.properties import CUSTOM_CALL, ELEMENTWISE
from pyshardy.source.places import user_place

_Known = tuple[tuple[int, int], ...]
_WITH_REGIONS = frozenset((LOOP, "stablehlo.case", "stablehlo.if"))
"""Ops whose regions run as they stand; the regions of other ops say how to combine two elements."""
_RUN_ONCE = frozenset(("sdy.manual_computation", "sdy.named_computation", "stablehlo.async_start"))
"""Ops whose only region runs as if it stood in place of the op."""
_ALIAS, _DONOR = "tf.aliasing_output", "jax.buffer_donor"
_MEMORY_KIND, _HOST = "mhlo.memory_kind", "host"
"""The memory of an argument; that of the host is "pinned_host" or "unpinned_host"."""
_EXTRA = {
    "stablehlo.convolution": ("lhs_dilation", "padding", "rhs_dilation", "window_strides"),
    "stablehlo.constant": (),
    "sdy.constant": (),
    "stablehlo.rng_bit_generator": ("rng_algorithm",),
    "stablehlo.reduce_window": ("base_dilations", "window_dilations"),
    "stablehlo.gather": ("slice_sizes",),
    "stablehlo.composite": (),
    **dict.fromkeys(("chlo.ragged_dot", "mhlo.ragged_dot"), (RAGGED_NUMBERS,)),
}
"""Attributes that a cost depends on, besides those that the rule of an op reads."""
_RAGGED_DIMS = re.compile(r"lhs_(contracting|ragged)_dimensions = \[([\d, ]+)\]")


def cost_program(root: Op, meshes: Meshes, name: str = "-", compiler: CompilerCauses | None = None) -> CostProgram:
    """The description of a program of one device.

    Args:
        root: The module, with the shapes on one device.
        meshes: The meshes whose axes its collectives use.
        name: The name of the text that the program was read from; MLIR calls it "-".
        compiler: What collectives are for, if a compiler partitioned the program.
    """
    return CostReader(root, meshes, name, compiler=compiler).program()


class SharedKinds:
    """What several modules of one context share, so that equal ops have one kind in all of them.

    It holds MLIR attributes, so it must not outlive the context.
    """

    def __init__(self) -> None:
        self.specs = OpSpecReader()
        self.of_type: dict[ValueType, CostTensor] = {}
        self.tensors: dict[CostTensor, CostTensor] = {}
        self.kinds: dict[Hashable, CostKind] = {}
        self.of_node: dict[Hashable, CostKind] = {}
        """The same kinds by what is quicker to read of a node, for nodes that this describes in full."""
        self.decoded: dict[Any, Hashable] = {}
        self.units: dict[Any, int | None] = {}


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
        interned: What it shares with other readers.
        compiler: What collectives are for, if a compiler partitioned the program.
    """

    def __init__(
        self,
        root: Op,
        meshes: Meshes,
        name: str,
        interned: SharedKinds | None = None,
        compiler: CompilerCauses | None = None,
    ) -> None:
        self.root, self.meshes, self.name, self.compiler = root, meshes, name, compiler
        self.interned = SharedKinds() if interned is None else interned
        self.specs, self.kinds, self.decoded = self.interned.specs, self.interned.kinds, self.interned.decoded
        self.units = self.interned.units
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
        self.tensors.append(self._tensor(value.type))
        return number

    def _tensor(self, type: ValueType) -> CostTensor:
        of_type = self.interned.of_type
        found = of_type.get(type)
        if found is None:
            tensor = CostTensor(type.shape, type.element, known_bytes(type.shape, type.element))
            found = of_type[type] = self.interned.tensors.setdefault(tensor, tensor)
        return found

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
        if node.name in _RUN_ONCE:
            regions, branch = (self._block(node.region.block, numbers, known),), 0
        elif node.name in _WITH_REGIONS:
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
        return CostOp(self.kind(node), operands, results, regions, rounds, callee, traffic, place, branch)

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
            sum(self._tensor(value.type).bytes for value in node.operands[: len(node.results)]),
            sum(self._tensor(value.type).bytes for value in node.results),
            self.traffic.sent_bytes(node),
        )

    def kind(self, node: Op) -> CostKind:
        """The properties of an op that its cost depends on."""
        attributes = self._attributes(node)
        if attributes is None or node.regions or node.name in CONTEXT_FACTS:
            return self._new_kind(node, attributes)
        operands = tuple([value.type for value in node.operands])
        key = (node.name, attributes, operands, tuple([value.type for value in node.results]))
        of_node = self.interned.of_node
        found = of_node.get(key)
        if found is None:
            found = of_node[key] = self._new_kind(node, attributes)
        return found

    def _new_kind(self, node: Op, attributes: Hashable) -> CostKind:
        spec = self.specs.spec(node)
        operands = tuple([self._tensor(value.type) for value in node.operands])
        results = tuple([self._tensor(value.type) for value in node.results])
        extra = self._extra(node)
        key = (spec, tuple(map(id, operands)), tuple(map(id, results)), extra, attributes)
        found = self.kinds.get(key)
        if found is None:
            facts = tuple(sorted({**dict(spec.attributes), **dict(extra)}.items()))
            found = self.kinds[key] = CostKind(node.name, operands, results, facts)
        return found

    def _attributes(self, node: Op) -> Hashable:
        """All attributes of an op, which tell it from others of its name; none for calls and collectives."""
        if node.name == CALL or is_collective(node):
            return None
        return tuple(node.attrs.items())

    def _extra(self, node: Op) -> tuple[tuple[str, Hashable], ...]:
        names = _EXTRA.get(node.name, ())
        found: list[tuple[str, Hashable]] = [
            (name, self._decode(name, node.attrs[name])) for name in names if name in node.attrs
        ]
        if node.name in ("stablehlo.constant", "sdy.constant"):
            found.append(("is_splat", bool(getattr(node.attrs.get("value"), "is_splat", False))))
            found.append(("unit", self._unit(node.attrs.get("value"))))
        elif node.regions and node.name not in _WITH_REGIONS and node.name not in _RUN_ONCE:
            found.append(("body", _body_names(node)))
        elif node.name == CUSTOM_CALL:
            found += kernel_facts(node)
        elif node.name == "stablehlo.collective_permute":
            found.append((PAIRS, self._decode(PAIRS, node.attrs[PAIRS])))
        elif node.name in MATRIX_UNIT_OPS and _is_precise(node):
            found.append((IS_PRECISE, True))
        return tuple(found)

    def _unit(self, attr: Any) -> int | None:
        """0 or 1 if a constant is that everywhere."""
        if attr not in self.units:
            number = splat_number(attr)
            self.units[attr] = int(number) if number is not None and number in (0, 1) else None
        return self.units[attr]

    def _decode(self, name: str, attr: Any) -> Hashable:
        if attr not in self.decoded:
            if name == "padding":
                numbers = [int(number) for number in attr]
                self.decoded[attr] = tuple(zip(numbers[::2], numbers[1::2]))
            elif name == RAGGED_NUMBERS:
                self.decoded[attr] = _ragged_numbers(str(attr))
            else:
                self.decoded[attr] = plain_attribute(attr)
        return self.decoded[attr]


def _is_precise(product: Op) -> bool:
    """Whether a product asks for more than the default precision."""
    config = product.attrs.get("precision_config")
    return "algorithm" in product.attrs or any(stablehlo.PrecisionAttr(one).value != "DEFAULT" for one in config or ())


def _ragged_numbers(text: str) -> RaggedNumbers:
    """The dimensions of a ragged product, which MLIR's bindings give as text only.

    >>> _ragged_numbers("#mhlo.ragged_dot<... lhs_contracting_dimensions = [1, 2], ..., lhs_ragged_dimensions = [0]>")
    RaggedNumbers(lhs_contracting=(1, 2), lhs_ragged=(0,))
    """
    dims = {name: tuple(map(int, found.split(","))) for name, found in _RAGGED_DIMS.findall(text)}
    return RaggedNumbers(dims.get("contracting", ()), dims.get("ragged", ()))


def _body_names(node: Op) -> tuple[str, ...]:
    """The names of the elementwise ops with which an op combines elements."""
    return tuple(
        op.name for region in node.regions for block in region.blocks for op in block if op.name in ELEMENTWISE
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
