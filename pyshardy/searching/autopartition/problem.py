"""The problem of a search: a program as propagation sees it, its named inputs and outputs, and the hardware."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from pyshardy.core.axes import Dims
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.program import CostKind
from pyshardy.costing.topology import Topology
from pyshardy.propagation.program import Program
from pyshardy.searching.autopartition.objective import Objective


class Permitted(Protocol):
    """Which axes a tensor may have. Inputs of which it is not equal are not sharded alike."""

    def allows(self, dims: Dims) -> bool:
        """Whether the tensor may have these axes."""


class InputFact(NamedTuple):
    """An input of the program.

    Attributes:
        name: Its path in the user's program, such as "params['w']".
        value: Its number in the program; -1 if it belongs to a layer that was left out.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: Its unsharded size.
        is_donated: Whether a result may reuse its memory.
        sharding: Its given sharding, which it keeps; None if the search finds one.
        permitted: Which axes it may have; None for all.
    """

    name: str
    value: int
    shape: tuple[int, ...]
    element: str
    bytes: int
    is_donated: bool = False
    sharding: TensorSharding | None = None
    permitted: Permitted | None = None


class OutputFact(NamedTuple):
    """An output of the program.

    Attributes:
        name: Its path in the results, such as "result[0]['w']".
        value: The number of the value that holds its sharding; -1 if it belongs to a layer that was left out.
        shape: Sizes of its dimensions.
        element: MLIR's text of the element type.
        bytes: Its unsharded size.
    """

    name: str
    value: int
    shape: tuple[int, ...]
    element: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Problem:
    """A program to find shardings for.

    Attributes:
        program: The program before propagation. Inputs and outputs whose shardings the search finds have none. Of many
            equal layers it has three: the first, the last, and one that represents those between them.
        mesh_name: The name of the mesh in the program.
        mesh: The mesh.
        inputs: The inputs of the whole program.
        outputs: The outputs of the whole program.
        kinds: Per op, what its cost depends on besides the shards. An op that costs nothing has its name only.
        times: Per op, how often it runs; an op of a middle layer counts for all layers that it represents.
        bytes: Per value, the bytes of an element.
        topology: The chip, and the placement of the mesh on the networks.
        collectives: The cost model of collectives.
        objective: What makes a plan better, with the bytes of memory that a device may use.
        layers: Empty if no layer is left out. Else per op the number of its stretch of repeated layers, or -1, and the
            number of layers that the op represents.
        places: Gives the numbers of the values that lines of the source compute, by the line and the shape.
        permitted: Which axes a constraint of an intermediate value may have; None for all.
    """

    program: Program
    mesh_name: str
    mesh: Mesh
    inputs: tuple[InputFact, ...]
    outputs: tuple[OutputFact, ...]
    kinds: Sequence[CostKind]
    times: Sequence[int]
    bytes: Sequence[float]
    topology: Topology
    collectives: CollectiveModel
    objective: Objective
    layers: Sequence[tuple[int, int]] = ()
    places: Callable[[], Mapping[Hashable, int]] = dict
    permitted: Permitted | None = None

    @property
    def limit(self) -> float:
        """The bytes of memory that a device may use."""
        return self.objective.limit
