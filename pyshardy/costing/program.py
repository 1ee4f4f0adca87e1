"""A program of one device as plain data: what an estimate of its cost depends on, and nothing else.

Values are numbers from 0, unique in the whole program. Functions that are called with different known numbers of
rounds are there once for each.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from math import prod
from typing import NamedTuple, Protocol

SourceLine = tuple[str, int, int]
"""File, line and column."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """Shape and element type of a value.

    Attributes:
        shape: Sizes of the dimensions on one device; None for what is no tensor, such as a token.
        dtype: MLIR's text of the element type.
        bytes: Its size in memory; 0 if that is not known.
    """

    shape: tuple[int, ...] | None
    dtype: str
    bytes: int

    @property
    def elements(self) -> int:
        """Number of elements; 0 if it is not known.

        >>> Tensor((4, 8), "f32", 128).elements
        32
        """
        return 0 if self.shape is None or -1 in self.shape else prod(self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Kind:
    """What ops have in common that do the same with their operands: compared by identity, so that it is looked up fast.

    Attributes:
        name: Full name of the op, "stablehlo.add".
        operands: Types of its operands.
        results: Types of its results.
        facts: The attributes that its cost depends on, decoded, in order of name.
    """

    name: str
    operands: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    facts: tuple[tuple[str, Hashable], ...] = ()

    def fact(self, name: str, default: Hashable = None) -> Hashable:
        """An attribute, or `default` if it is not there."""
        return next((value for found, value in self.facts if found == name), default)


@dataclass(frozen=True, slots=True)
class Traffic:
    """What a collective does.

    Attributes:
        kind: Its name without the dialect, such as "all_gather".
        mesh: The mesh that the axes are of; None if it has no name, or there is none.
        axes: Name and size of each mesh axis along which devices work together; None if they fit no axes.
        group_size: How many devices work together; 2 for a permutation.
        bytes_before: What a device holds before.
        bytes_after: What it holds after.
        sent_bytes: What every device sends each time.
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
        """Bytes of the array that the group has together, as bandwidths of collectives are stated.

        >>> Traffic("all_gather", None, None, 4, 8, 32, 24).whole_bytes
        32
        """
        return max(self.bytes_before, self.bytes_after) * (self.group_size if self.kind == "all_to_all" else 1)


class OpOrigin(Protocol):
    """Where an op comes from; looked up when it is asked for."""

    @property
    def scope(self) -> str | None:
        """The name that JAX gave the op."""

    @property
    def cause(self) -> str | None:
        """What made a collective necessary."""

    @property
    def source(self) -> SourceLine | None:
        """The user's line."""


class Op(NamedTuple):
    """One op.

    Attributes:
        kind: What it is.
        operands: The values it uses.
        results: The values it makes.
        regions: What a loop (condition, body) or a conditional (branches) holds.
        rounds: How many rounds a loop makes; None for other ops, and where it is not known.
        callee: The function that it calls, as an index.
        traffic: What it sends, if it is a collective.
        place: Where it comes from.
        branch: The branch that a conditional takes, if that is always the same one.
    """

    kind: Kind
    operands: tuple[int, ...]
    results: tuple[int, ...]
    regions: tuple[Block, ...] = ()
    rounds: int | None = None
    callee: int | None = None
    traffic: Traffic | None = None
    place: OpOrigin | None = None
    branch: int | None = None

    @property
    def is_loop(self) -> bool:
        """Whether it is a loop; its regions are the condition and the body."""
        return self.kind.name == "stablehlo.while"


class Block(NamedTuple):
    """Ops one after the other.

    Attributes:
        arguments: The values that it is given.
        ops: The ops, without the one that returns.
        results: The values that it returns.
    """

    arguments: tuple[int, ...]
    ops: tuple[Op, ...]
    results: tuple[int, ...]


class Input(NamedTuple):
    """An argument of the program.

    Attributes:
        name: Its path in the user's program, such as "params['w']".
        alias: The result that takes its memory; None if there is none.
        is_donated: Whether any result may take its memory.
    """

    name: str
    alias: int | None = None
    is_donated: bool = False


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program of one device.

    Attributes:
        tensors: The type of every value.
        functions: The bodies of the functions.
        main: Which of them runs.
        inputs: The arguments of the main function.
        outputs: The names of its results.
        devices: Number of devices that the program is for.
    """

    tensors: tuple[Tensor, ...]
    functions: tuple[Block, ...]
    main: int
    inputs: tuple[Input, ...]
    outputs: tuple[str, ...]
    devices: int = 1
    mesh_axes: tuple[tuple[str, int], ...] = field(default=())

    @property
    def body(self) -> Block:
        """The body of the main function."""
        return self.functions[self.main]


def walk(block: Block) -> Iterator[Op]:
    """All ops of a block and inside of them, every op before what it holds; calls are not followed."""
    for op in block.ops:
        yield op
        for region in op.regions:
            yield from walk(region)
