"""The base class of passes, and the data that passes share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar, NamedTuple

from pyshardy.core.record import Record
from pyshardy.core.sharding import TensorSharding
from pyshardy.graph.program import Program
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.ir.shardings import Meshes, module_meshes
from pyshardy.propagation.run import Propagated


class Anchor(Enum):
    """The kind of op that a pass runs on."""

    MODULE = "module"
    FUNCTION = "func"


class Traced(NamedTuple):
    """A run of propagation with recorded steps, and the ops and values behind its numbers.

    Attributes:
        program: The program that shardings propagated through.
        places: The ops and values behind its numbers; later passes change them in place.
        propagated: The result.
        grouped: The shardings of members of sharding groups before they were made equal, by number.
    """

    program: Program
    places: ProgramIndex
    propagated: Propagated
    grouped: Mapping[int, TensorSharding]


@dataclass(slots=True)
class PassContext:
    """The data that the passes over one module share.

    Attributes:
        root: The module op.
        attrs: The attributes and types of its context.
        specs: Describes ops for the sharding rules.
        diagnostics: The list that warnings go to.
        propagated: The results of the propagation passes that ran.
        traced: Those results whose steps were recorded, for explanations.
    """

    root: Op
    attrs: AttrTable
    specs: OpSpecReader
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    propagated: list[Propagated] = field(default_factory=list)
    traced: list[Traced] = field(default_factory=list)

    @property
    def meshes(self) -> Meshes:
        """The current meshes of the module by name."""
        return module_meshes(self.root)


class Pass(Record):
    """A pass; its options are the fields of the subclass, spelled with dashes on the command line.

    name: Its name on the command line.
        name: Its name on the command line.
        anchor: Whether it runs on the module or on every function.
    """

    name: ClassVar[str]
    anchor: ClassVar[Anchor] = Anchor.MODULE

    def run(self, op: Op, context: PassContext) -> None:
        """Change the module or function `op` in place.

        Raises:
            PassError: The module breaks a requirement of the pass.
        """
        raise NotImplementedError
