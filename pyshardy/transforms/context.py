"""What the passes over one module share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.ir.shardings import ModuleMeshes, module_meshes
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program
from pyshardy.propagation.recorder import Recording
from pyshardy.propagation.run import Propagated, propagate_program


class Traced(NamedTuple):
    """A run of propagation, with the ops and values that its numbers stand for.

    Attributes:
        program: The program that shardings propagated through.
        places: The ops and values that its numbers stand for; later passes change them in place.
        propagated: The result.
        grouped: By number, the shardings that members of sharding groups had before they were made equal.
    """

    program: Program
    places: ProgramIndex
    propagated: Propagated
    grouped: Mapping[int, TensorSharding]

    def recording(self, options: PropagateOptions) -> Recording:
        """The record of the run. If the run was left out because its result was known, it runs now."""
        found = self.propagated.recording or propagate_program(self.program, options).recording
        assert found is not None
        return found


class KnownPropagation(NamedTuple):
    """A run of propagation with a known result, and its program.

    Attributes:
        program: The program that shardings propagated through.
        propagated: The result.
    """

    program: Program
    propagated: Propagated


@dataclass(slots=True)
class PassContext:
    """The data that the passes over one module share.

    Attributes:
        root: The module op.
        attrs: The attributes and types of its context.
        specs: Describes ops for the sharding rules.
        diagnostics: The list that warnings go to.
        propagated: The results of the propagation passes so far.
        runs: The same results, with the ops and values that their numbers stand for.
        known: A run whose result is reused if the program equals its program.
    """

    root: Op
    attrs: AttrTable
    specs: OpSpecReader
    diagnostics: Diagnostics = field(default_factory=Diagnostics)
    propagated: list[Propagated] = field(default_factory=list)
    runs: list[Traced] = field(default_factory=list)
    known: KnownPropagation | None = None

    @property
    def meshes(self) -> ModuleMeshes:
        """The current meshes of the module by name."""
        return module_meshes(self.root)
