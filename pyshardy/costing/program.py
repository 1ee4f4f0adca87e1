"""A per-device program as plain data, with only what an estimate of its cost depends on.

Values are numbers from 0, unique in the whole program. If calls of a function lead to different known numbers of
rounds of a loop, the program has one copy of the function for each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field, replace
from math import prod
from typing import NamedTuple, Protocol

SourceLine = tuple[str, int, int]
"""File, line and column."""


@dataclass(frozen=True, slots=True)
class CostTensor:
    """Shape and element type of a value.

    Attributes:
        shape: The shape on one device; None for a value that is not a tensor, such as a token.
        dtype: The element type in MLIR's notation.
        bytes: The size in memory; 0 if unknown.
    """

    shape: tuple[int, ...] | None
    dtype: str
    bytes: int

    @property
    def elements(self) -> int:
        """The number of elements; 0 if unknown.

        >>> CostTensor((4, 8), "f32", 128).elements
        32
        """
        return 0 if self.shape is None or -1 in self.shape else prod(self.shape)


KERNEL_NAME, KERNEL_COST, KERNEL_CAUSAL = "kernel_name", "kernel_cost", "kernel_causal"
"""Facts of custom calls: the name of the kernel; the operations, evaluations of functions and bytes that its author
states; whether a causal mask halves its products."""


@dataclass(frozen=True, slots=True, eq=False)
class CostKind:
    """The properties that equal ops share; compared by identity, which makes look-ups fast.

    Attributes:
        name: The full name of the op, such as "stablehlo.add".
        operands: The types of the operands.
        results: The types of the results.
        facts: The decoded attributes that the cost depends on, in order of name.
    """

    name: str
    operands: tuple[CostTensor, ...]
    results: tuple[CostTensor, ...]
    facts: tuple[tuple[str, Hashable], ...] = ()

    def fact(self, name: str, default: Hashable = None) -> Hashable:
        """An attribute, or `default` if the op does not have it."""
        return next((value for found, value in self.facts if found == name), default)


PAIRS = "source_target_pairs"
"""The fact of a permutation: who sends to whom."""
MATRIX_UNIT_OPS = frozenset(("stablehlo.convolution", "stablehlo.dot", "stablehlo.dot_general"))
"""Ops whose operands the matrix unit reads, in a precision that they may ask for."""
IS_PRECISE = "is_precise"
"""The fact of a product: it asks for more than the default precision."""
RAGGED_NUMBERS = "ragged_dot_dimension_numbers"


class RaggedNumbers(NamedTuple):
    """The dimensions of the first operand of a ragged product.

    Attributes:
        lhs_contracting: Those that are summed over.
        lhs_ragged: The one that is divided into groups.
    """

    lhs_contracting: tuple[int, ...]
    lhs_ragged: tuple[int, ...]


RAGGED = "ragged_all_to_all"
"""The collective that sends other numbers of rows to every device, which are known only when it runs."""


@dataclass(frozen=True, slots=True)
class OpTraffic:
    """The traffic of a collective.

    Attributes:
        kind: The op's name without the dialect, such as "all_gather".
        mesh: The name of the mesh of the axes; None if there is none.
        axes: The name and size of each mesh axis in a group; None if the groups match no axes.
        group_size: The number of devices in a group; 2 for a permutation.
        bytes_before: The bytes that a device holds before.
        bytes_after: The bytes that it holds after.
        sent_bytes: The bytes that every device sends each time.
    """

    kind: str
    mesh: str | None
    axes: tuple[tuple[str, int], ...] | None
    group_size: int
    bytes_before: int
    bytes_after: int
    sent_bytes: int

    @property
    def whole_bytes(self) -> int:
        """The bytes of the array that a group holds together; bandwidths of collectives refer to them.

        >>> OpTraffic("all_gather", None, None, 4, 8, 32, 24).whole_bytes
        32
        """
        return max(self.bytes_before, self.bytes_after) * (
            self.group_size if self.kind in ("all_to_all", RAGGED) else 1
        )


class OpOrigin(Protocol):
    """The origin of an op, looked up on demand."""

    @property
    def scope(self) -> str | None:
        """JAX's name for the op."""

    @property
    def cause(self) -> str | None:
        """The op or reshard that needs a collective."""

    @property
    def source(self) -> SourceLine | None:
        """The user's line."""

    @property
    def windowed(self) -> str | None:
        """The collective that a compiler cuts into permutes beside a product, such as "all_gather"; None for others."""


class CostOp(NamedTuple):
    """One op.

    Attributes:
        kind: The name, types and attributes of the op.
        operands: The values it uses.
        results: The values it computes.
        regions: The blocks of a loop (condition, body) or a conditional (branches).
        rounds: The number of rounds of a loop; None for other ops, and if unknown.
        callee: The index of the function that it calls.
        traffic: Its traffic, if it is a collective.
        place: The origin of the op.
        branch: The branch that a conditional takes, if it is always the same.
    """

    kind: CostKind
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[CostBlock, ...] = ()
    rounds: int | None = None
    callee: int | None = None
    traffic: OpTraffic | None = None
    place: OpOrigin | None = None
    branch: int | None = None

    @property
    def is_loop(self) -> bool:
        """Whether the op is a loop; its regions are the condition and the body."""
        return self.kind.name == "stablehlo.while"


class CostBlock(NamedTuple):
    """A list of ops.

    Attributes:
        arguments: The arguments of the block.
        ops: The ops, without the one that returns.
        results: The values that the block returns.
    """

    arguments: tuple[int, ...]
    ops: tuple[CostOp, ...]
    results: tuple[int, ...]


class CostInput(NamedTuple):
    """An argument of the program.

    Attributes:
        name: The path in the user's program, such as "params['w']".
        alias: The result that reuses its memory; None if there is none.
        is_donated: Whether any result may reuse its memory.
        is_on_host: Whether it is in the memory of the host.
    """

    name: str
    alias: int | None = None
    is_donated: bool = False
    is_on_host: bool = False


@dataclass(frozen=True, slots=True)
class CostProgram:
    """A whole per-device program.

    Attributes:
        tensors: The type of every value.
        functions: The bodies of the functions.
        main: The index of the main function.
        inputs: The arguments of the main function.
        outputs: The names of its results.
        devices: The number of devices that run the program.
    """

    tensors: tuple[CostTensor, ...]
    functions: tuple[CostBlock, ...]
    main: int
    inputs: tuple[CostInput, ...]
    outputs: tuple[str, ...]
    devices: int = 1
    mesh_axes: tuple[tuple[str, int], ...] = field(default=())

    @property
    def body(self) -> CostBlock:
        """The body of the main function."""
        return self.functions[self.main]


def walk_ops(block: CostBlock) -> Iterator[CostOp]:
    """All ops of a block and of its inner blocks, outer ops first; it does not follow calls."""
    for op in block.ops:
        yield op
        for region in op.regions:
            yield from walk_ops(region)


def with_blocks(program: CostProgram, change: Callable[[CostBlock], CostBlock]) -> CostProgram:
    """A program whose blocks are changed, inner ones first; the same program if none changes."""

    def changed(block: CostBlock) -> CostBlock:
        ops = [op._replace(regions=tuple(map(changed, op.regions))) if op.regions else op for op in block.ops]
        return change(block._replace(ops=tuple(ops)))

    functions = tuple(map(changed, program.functions))
    return program if functions == program.functions else replace(program, functions=functions)


def uses_of(block: CostBlock) -> Counter[int]:
    """How often the ops of a block, those inside of them, and its results use each value."""
    uses = Counter(value for op in block.ops for value in read_by(op))
    uses.update(block.results)
    return uses


def read_by(op: CostOp) -> Iterator[int]:
    """The values that an op reads, with those that its regions use."""
    yield from op.operands
    for region in op.regions:
        for inner in region.ops:
            yield from read_by(inner)
        yield from region.results
