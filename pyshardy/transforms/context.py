"""What the passes over one module share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.graph.program import Program
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.ir.shardings import Meshes, module_meshes
from pyshardy.propagation.run import Propagated


class Traced(NamedTuple):
    """A run of propagation whose steps were recorded, with what its numbers stand for.

    Attributes:
        program: What was propagated through.
        places: The ops and values of its numbers; later passes change them in place.
        propagated: The result.
        grouped: The shardings that members of sharding groups had before they were made equal, by number.
    """

    program: Program
    places: ProgramIndex
    propagated: Propagated
    grouped: Mapping[int, TensorSharding]


@dataclass(slots=True)
class PassContext:
    """What the passes over one module share.

    Attributes:
        root: The module op.
        attrs: The attributes and types of its context.
        specs: Describes ops for the sharding rules.
        diagnostics: Where warnings go.
        propagated: The results of the propagation passes that ran.
        traced: Those of them whose steps were recorded, for explanations.
    """

    root: Op
    attrs: AttrTable
    specs: OpSpecReader
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    propagated: list[Propagated] = field(default_factory=list)
    traced: list[Traced] = field(default_factory=list)

    @property
    def meshes(self) -> Meshes:
        """The meshes of the module by name, as they are now."""
        return module_meshes(self.root)
