"""What a search works on: a program as propagation sees it, its inputs by name, and the hardware."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.mesh import Mesh
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import Topology
from pyshardy.graph.program import Program


class InputFact(NamedTuple):
    """An input of the program.

    Attributes:
        name: Its path in the user's program, such as "params['w']".
        value: Its number in the program.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: Its size as a whole.
        is_donated: Whether a result may take its memory.
    """

    name: str
    value: int
    shape: tuple[int, ...]
    element: str
    bytes: int
    is_donated: bool = False


class OutputFact(NamedTuple):
    """An output of the program.

    Attributes:
        name: Such as "result[0]['w']".
        value: The number of the value that holds its sharding.
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
        program: The program, before propagation; inputs and outputs that are to be found have no sharding.
        mesh_name: The mesh that shardings are on, as the program calls it.
        mesh: The same.
        inputs: The inputs.
        outputs: The outputs.
        times: Per op, how often it runs; of ops that layers share, in all of them.
        bytes: Per value, the bytes of an element.
        topology: The chip, and where the mesh lies.
        collectives: How collectives are priced.
        limit: Bytes of memory that a device may use.
        layers: Where layers are folded, per op the stretch that it is in, and how many it stands for.
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
