"""What a search works on: a program as propagation sees it, its inputs by name, and the hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import Topology
from pyshardy.graph.program import Program


class InputFact(NamedTuple):
    """An input of the program.

    Attributes:
        name: Its path in the user's program, such as "params['w']".
        value: Its number in the program; -1 for that of a layer that was left out.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: Its size as a whole.
        is_donated: Whether a result may take its memory.
        sharding: The sharding that it has and keeps; None if it is to be found.
    """

    name: str
    value: int
    shape: tuple[int, ...]
    element: str
    bytes: int
    is_donated: bool = False
    sharding: TensorSharding | None = None


class OutputFact(NamedTuple):
    """An output of the program.

    Attributes:
        name: Such as "result[0]['w']".
        value: The number of the value that holds its sharding; -1 for that of a layer that was left out.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: Its size as a whole.
    """

    name: str
    value: int
    shape: tuple[int, ...]
    element: str
    bytes: int


@dataclass(frozen=True)
class Problem:
    """A program to find shardings for.

    Attributes:
        program: The program, before propagation; inputs and outputs that are to be found have no sharding. Of many
            equal layers it has three: the first, one that stands for all in the middle, the last.
        mesh_name: The mesh that shardings are on, as the program calls it.
        mesh: The same.
        inputs: The inputs of the whole program.
        outputs: The outputs of the whole program.
        times: Per op, how often it runs; of ops of a layer that stands for others, in all of them.
        bytes: Per value, the bytes of an element.
        topology: The chip, and where the mesh lies.
        collectives: How collectives are priced.
        limit: Bytes of memory that a device may use.
        layers: Where layers are left out, per op the stretch of repeated layers that it is in, or -1, and how many
            it stands for.
    """

    program: Program
    mesh_name: str
    mesh: Mesh
    inputs: tuple[InputFact, ...]
    outputs: tuple[OutputFact, ...]
    times: Sequence[int]
    bytes: Sequence[float]
    topology: Topology
    collectives: CollectiveModel
    limit: float
    layers: Sequence[tuple[int, int]] = ()
