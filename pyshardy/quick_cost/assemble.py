"""Assembles the cost program of one device from versions of ops and from the excerpt that was partitioned in place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyshardy.core.mesh import device_count
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.costing.program import Block, Kind, Op, OpOrigin, Program, walk
from pyshardy.ir.cost_program import CostReader, NodePlace, SharedKinds, input_of, output_name
from pyshardy.ir.nodes import Block as NodeBlock
from pyshardy.ir.nodes import Op as Node
from pyshardy.ir.nodes import Value
from pyshardy.ir.trip_counts import LOOP, TripCounts
from pyshardy.quick_cost.excerpt import ENTRY, INDEX, KEEPS, MARK, Excerpt
from pyshardy.quick_cost.skeleton import BlockSkeleton, Entry
from pyshardy.quick_cost.versions import Version

CONSTANT = "stablehlo.constant"


def assemble(
    excerpt: Excerpt,
    versions: Mapping[Entry, Version | None],
    meshes: Meshes,
    trips: TripCounts,
    interned: SharedKinds,
    name: str,
) -> Program:
    """The cost program of one device.

    Args:
        excerpt: The part of the program that was partitioned in place; the passes have run on its module.
        versions: The versions of all other ops.
        meshes: The meshes of the program.
        trips: Gives the number of rounds of the loops of the whole program.
        interned: The objects that cost programs share.
        name: The name of the text that the program was read from.
    """
    return _Assembler(excerpt, versions, meshes, trips, interned, name).assemble()


class _Assembler(CostReader):
    """Reads the module, and inserts versions of ops at the marks."""

    def __init__(
        self,
        excerpt: Excerpt,
        versions: Mapping[Entry, Version | None],
        meshes: Meshes,
        trips: TripCounts,
        interned: SharedKinds,
        name: str,
    ) -> None:
        super().__init__(excerpt.piece.root, meshes, name, interned)
        self.excerpt, self.versions, self.whole_trips = excerpt, versions, trips
        self.skeleton = excerpt.skeleton
        self.numbers: dict[Value, int] = {}
        """The numbers of values of the module."""
        self.places: dict[int, int] = {}
        """The numbers of values of the whole program that are unchanged in the module, or were left out of it."""
        self.kept: dict[int, Value] = {}
        """The values of the whole program that the module has."""
        self.constants: dict[Kind, int] = {}
        self.front: list[Op] = []
        """The constants; the partitioner's passes move them to the start of the program."""

    def assemble(self) -> Program:
        main, skeleton = self.excerpt.piece.function, self.skeleton
        block = main.region.blocks[0]
        inputs = block.args[: len(skeleton.body.arguments)]
        arguments = tuple([self._new(value, self.numbers) for value in inputs])
        self.places.update(zip(skeleton.body.arguments, arguments))
        body = self._inside(block, skeleton.body, arguments, {})
        meshes = [mesh for mesh in self.meshes.values() if mesh.axes]
        function, count = skeleton.function, len(body.results)
        return Program(
            tensors=tuple(self.tensors),
            functions=(_constants_first(body, self.front),),
            main=0,
            inputs=tuple([input_of(function, arg) for arg in function.region.blocks[0].args]),
            outputs=tuple([output_name(function, index, count) for index in range(count)]),
            devices=device_count(self.meshes) if self.meshes else 1,
            mesh_axes=tuple(meshes[0].axes) if meshes else (),
        )

    def _inside(
        self, node: NodeBlock, block: BlockSkeleton, arguments: tuple[int, ...], known: dict[Value, int]
    ) -> Block:
        """A block of the module, with the ops that were left out of it."""
        ops: list[Op] = []
        results: tuple[int, ...] = ()
        last = node.last
        keeper = next((op for op in reversed(node) if KEEPS in op.attrs), None)
        if keeper is not None:
            self.kept.update(zip(self.excerpt.kept[block], keeper.operands))
        left_out = iter([entry for entry in block.entries if entry not in self.excerpt.taken])
        waiting = next(left_out, None)
        for op in node:
            if op is last:
                results = tuple([self.numbers[value] for value in op.operands])
            elif op.name == MARK:
                upto = op.attrs[INDEX]
                while waiting is not None and waiting.index < upto:
                    self._put(waiting, ops)
                    waiting = next(left_out, None)
            elif ENTRY in op.attrs:
                ops.append(self._structure(op, self.excerpt.entries[op.attrs[ENTRY]], known))
            elif op is not keeper:
                ops.append(self.read_op(op, self.numbers, {}))
        return Block(arguments, tuple(ops), results)

    def _put(self, entry: Entry, ops: list[Op]) -> None:
        """The version of an op that was left out."""
        version = self.versions[entry]
        assert version is not None
        places = self.places
        numbers = [places[value] if value in places else self._number(value) for value in entry.operands]
        first = len(self.tensors)
        self.tensors += version.made
        numbers += range(first, len(self.tensors))
        place: OpOrigin = NodePlace(entry.op, self.name)
        unused = self._unused(entry, version)
        for index, op in enumerate(version.ops):
            if index in unused:
                continue
            if op.traffic is not None:
                made = _CollectivePlace(entry.op, self.name, version.causes[index])
                ops.append(_moved(op, numbers, made))
            elif op.kind.name == CONSTANT:
                numbers[op.results[0]] = self._constant(op, numbers)
            else:
                ops.append(_moved(op, numbers, place))
        excerpt = self.excerpt
        for value, result in zip(entry.results, version.results):
            number = self.places[value] = numbers[result]
            argument = excerpt.arguments.get(value)
            if argument is not None:
                self.numbers[argument] = number

    def _unused(self, entry: Entry, version: Version) -> set[int]:
        """The ops of a version that make only what nobody uses, as a reshard of a result that nobody uses."""
        pairs = zip(entry.results, version.results)
        needed = {number for value, number in pairs if self.skeleton.is_used(value)}
        unused = set[int]()
        if len(needed) == len(entry.results):
            return unused
        for index, op in reversed(list(enumerate(version.ops))):
            if needed.isdisjoint(op.results):
                unused.add(index)
            else:
                needed.update(op.operands, *(inner.operands for inner in _inner(op)))
        return unused

    def _constant(self, op: Op, numbers: list[int]) -> int:
        """The number of a constant, which occurs once, at the start of the program."""
        found = self.constants.get(op.kind)
        if found is None:
            self.front.append(_moved(op, numbers, None))
            found = self.constants[op.kind] = numbers[op.results[0]]
        return found

    def _number(self, value: int) -> int:
        found = self.places.get(value)
        if found is None:
            found = self.places[value] = self.numbers[self.kept[value]]
        return found

    def _structure(self, node: Node, entry: Entry, known: dict[Value, int]) -> Op:
        """A loop or a conditional."""
        regions = []
        for region, inner in zip(node.regions, entry.blocks):
            arguments = tuple([self._new(value, self.numbers) for value in region.block.args])
            self.places.update(zip(inner.arguments, arguments))
            regions.append(self._inside(region.block, inner, arguments, known))
        rounds = self.whole_trips.trip_count(entry.op, known) if node.name == LOOP else None
        branch = self._branch_of(entry.op, known)
        if branch is not None:
            self._note_results(entry.op, entry.op.regions[branch].block, known)
        operands = tuple([self.numbers[value] for value in node.operands])
        results = tuple([self._new(value, self.numbers) for value in node.results])
        place = NodePlace(node, self.name)
        return Op(self._kind(node), operands, results, tuple(regions), rounds, None, None, place, branch)

    def _branch_of(self, node: Node, known: dict[Value, int]) -> int | None:
        own, self.trips = self.trips, self.whole_trips
        try:
            return self._branch(node, known)
        finally:
            self.trips = own


def _constants_first(body: Block, constants: list[Op]) -> Block:
    """A block with its constants and some others at the start, the last used first, about as the passes leave them."""
    first = [op for op in (*body.ops, *constants) if op.kind.name == CONSTANT]
    others = [op for op in body.ops if op.kind.name != CONSTANT]
    waiting = {op.results[0] for op in first}
    place: dict[int, int] = {}
    for op in others:
        if op.regions or not waiting.isdisjoint(op.operands):
            for value in (*op.operands, *(value for inner in _inner(op) for value in inner.operands)):
                if value in waiting:
                    waiting.discard(value)
                    place[value] = len(place)
    first.sort(key=lambda op: -place.get(op.results[0], len(place)))
    return body._replace(ops=(*first, *others))


def _inner(op: Op) -> Iterator[Op]:
    for block in op.regions:
        yield from walk(block)


class _CollectivePlace(NodePlace):
    """The origin of a collective that belongs to an op of the whole program."""

    __slots__ = ("_cause",)

    def __init__(self, node: Node, name: str, cause: str | None) -> None:
        super().__init__(node, name)
        self._cause = cause

    @property
    def cause(self) -> str | None:
        """The reshard or sum that needs the collective."""
        return self._cause


def _moved(op: Op, numbers: list[int], place: OpOrigin | None) -> Op:
    """An op of a version, with the numbers of values of a program."""
    operands = tuple([numbers[value] for value in op.operands])
    results = tuple([numbers[value] for value in op.results])
    regions = op.regions
    if regions:
        regions = tuple([_moved_block(block, numbers, place) for block in regions])
    return Op(op.kind, operands, results, regions, op.rounds, op.callee, op.traffic, place, op.branch)


def _moved_block(block: Block, numbers: list[int], place: OpOrigin | None) -> Block:
    return Block(
        tuple([numbers[value] for value in block.arguments]),
        tuple([_moved(inner, numbers, place) for inner in block.ops]),
        tuple([numbers[value] for value in block.results]),
    )
