"""The per-device version of every op that can be partitioned without its neighbours."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes
from pyshardy.costing.program import Op as CostOp
from pyshardy.costing.program import Tensor
from pyshardy.errors import ShardyError
from pyshardy.ir.cost_program import CostReader, SharedKinds
from pyshardy.ir.nodes import Op, Value
from pyshardy.quick_cost.pieces import Passes, Piece, ops_behind, with_shardings
from pyshardy.quick_cost.skeleton import Entry, Skeleton, is_of_shardings
from pyshardy.rules.properties import ELEMENTWISE

Shardings = Sequence[TensorSharding | None]


class Version(NamedTuple):
    """The ops of one device in place of an op of the whole program.

    Attributes:
        ops: The ops; they number the operands from 0, and then the values that they compute.
        made: The types of the values that they compute.
        results: The numbers of the results.
        taken: Which operands are resharded or changed otherwise.
        given: Which results are resharded or completed.
        causes: The causes of its collectives, by position of the op; empty if there are none.
    """

    ops: tuple[CostOp, ...]
    made: tuple[Tensor, ...]
    results: tuple[int, ...]
    taken: tuple[int, ...] = ()
    given: tuple[int, ...] = ()
    causes: tuple[str | None, ...] = ()

    @property
    def is_independent(self) -> bool:
        """Whether nothing is resharded or completed, so neighbours do not matter."""
        return not (self.taken or self.given)


class Versions:
    """The versions of ops, by op and shardings; missing ones are made together on first use.

    Args:
        skeleton: The program.
        passes: The partitioner's passes.
        meshes: The meshes of the program.
        interned: The objects that cost programs share.
    """

    def __init__(self, skeleton: Skeleton, passes: Passes, meshes: Meshes, interned: SharedKinds) -> None:
        self.skeleton, self.passes, self.meshes, self.interned = skeleton, passes, meshes, interned
        self.known: dict[Hashable, Version | None] = {}

    def find(self, entries: Sequence[Entry], shardings: Shardings) -> list[Version | None]:
        """The version of every op; None for an op that depends on its neighbours."""
        keys: list[Hashable] = []
        known, new = self.known, dict[Hashable, Entry]()
        for entry in entries:
            if entry.static is None:
                keys.append(None)
                continue
            key = (
                entry.static,
                tuple([shardings[value] for value in entry.operands]),
                tuple([shardings[value] for value in entry.results]),
            )
            keys.append(key)
            if key not in known:
                new[key] = entry
                known[key] = None
        if new:
            self._make(new, shardings)
        return [None if key is None else known[key] for key in keys]

    def _make(self, new: dict[Hashable, Entry], shardings: Shardings) -> None:
        """Make versions; an op that cannot be partitioned alone gets none."""
        try:
            self.known.update(zip(new, self._batch(list(new.values()), shardings)))
        except ShardyError:
            if len(new) == 1:
                self.known.update(dict.fromkeys(new))
                return
            half = len(new) // 2
            self._make(dict(islice(new.items(), half)), shardings)
            self._make(dict(islice(new.items(), half, None)), shardings)

    def _batch(self, entries: list[Entry], shardings: Shardings) -> list[Version | None]:
        piece = Piece(self.skeleton.root, self.meshes)
        arguments = [self._add(entry, piece, shardings) for entry in entries]
        results = [value for _, copy in arguments for value in copy.results]
        piece.finish(results, [shardings[value] for entry in entries for value in entry.results])
        context = self.passes.plan(piece.root)
        borders = [_border(given, values, piece) for (given, _), values in zip(arguments, _split(piece, entries))]
        self.passes.make(piece.root, context)
        reader = CostReader(piece.root, self.meshes, "-", self.interned)
        return [
            None if border is None else _read(reader, piece, given, values, border)
            for (given, _), values, border in zip(arguments, _split(piece, entries), borders)
        ]

    def _add(self, entry: Entry, piece: Piece, shardings: Shardings) -> tuple[list[Value | None], Op]:
        """Copy an op into a piece, with arguments or constants as operands; return its arguments and its copy."""
        skeleton, mapping = self.skeleton, dict[Value, Value]()
        given: list[Any] = []
        for number, value in zip(entry.operands, entry.op.operands):
            if number in skeleton.constants and entry.op.name not in ELEMENTWISE:
                if value not in mapping:
                    made = skeleton.maker[number].op.clone()
                    mapping[value] = piece.block.append(with_shardings(made, [shardings[number]])).result
                given.append(None)
                continue
            given.append(piece.argument(value.type, shardings[number]))
            mapping[value] = given[-1]
        copy = piece.block.append(entry.op.clone(mapping))
        for index, argument in enumerate(given):
            if argument is not None and copy.operands[index] is not argument:
                copy.set_operand(index, argument)  # an op that uses one value twice is treated like one that uses two
        return given, with_shardings(copy, [shardings[number] for number in entry.results])


def _split(piece: Piece, entries: list[Entry]) -> list[list[Value]]:
    """The values that every op returns."""
    returned = iter(piece.block.terminator.operands)
    return [list(islice(returned, len(entry.results))) for entry in entries]


def _border(given: list[Any], results: list[Value], piece: Piece) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Which operands and results are resharded or completed; None if data moves otherwise."""
    marks = [op for op in ops_behind(results, piece.block) if is_of_shardings(op.name)]
    if any(op.name not in _AT_BORDER for op in marks):
        return None
    before = {op.operands[0] for op in marks}
    after = {op.result for op in marks}
    return (
        tuple([index for index, value in enumerate(given) if value in before]),
        tuple([index for index, value in enumerate(results) if value in after]),
    )


_AT_BORDER = frozenset(("sdy.reshard", "sdy.all_reduce"))


def _read(
    reader: CostReader,
    piece: Piece,
    given: list[Any],
    results: list[Value],
    border: tuple[tuple[int, ...], tuple[int, ...]],
) -> Version:
    numbers: dict[Value, int] = {}
    reader.tensors = []
    for index, value in enumerate(given):
        reader.tensors.append(_NOTHING)
        if value is not None:
            numbers.setdefault(value, index)
    ops = tuple([reader.read_op(op, numbers, {}) for op in ops_behind(results, piece.block)])
    has_traffic = any(op.traffic is not None for op in ops)
    return Version(
        tuple([op._replace(place=None) for op in ops]),
        tuple(reader.tensors[len(given) :]),
        tuple([numbers[value] for value in results]),
        *border,
        tuple([op.place.cause if op.traffic and op.place else None for op in ops]) if has_traffic else (),
    )


_NOTHING = Tensor(None, "", 0)
