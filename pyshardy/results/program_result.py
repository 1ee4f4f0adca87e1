"""The common surface of the results of `propagate` and `partition`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from pyshardy.compilers.choice import stand_in_of
from pyshardy.core.mesh import Mesh
from pyshardy.core.text import counted, format_symbol
from pyshardy.frontend.interface import Interface, InterfaceTensor
from pyshardy.ir.diagnostics import Diagnostic
from pyshardy.ir.functions import main_function
from pyshardy.ir.locations import source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.propagation.options import PropagateOptions
from pyshardy.results.edit_base import EditState, first_state
from pyshardy.results.sharded_program import ShardedProgram
from pyshardy.results.stopwatch import Seconds
from pyshardy.runtime.engine import Engine
from pyshardy.source.places import short_path, user_place

if TYPE_CHECKING:
    from pathlib import Path

    from pyshardy.compilers.answer import CompilerAnswer
    from pyshardy.costing.hardware import Hardware
    from pyshardy.costing.traffic import Traffic
    from pyshardy.explain.collectives import CollectiveStory, ExplainedCollectives
    from pyshardy.explain.why import Why
    from pyshardy.report.replications import Replication
    from pyshardy.runtime.executable import Executable


@dataclass(frozen=True, eq=False, repr=False)
class ProgramResult(ABC):
    """A program that was propagated or partitioned.

    It never changes. `print` shows it as tables, a notebook as HTML, `repr` in one line.

    Attributes:
        module: The resulting module.
        sharded: The program with final shardings that the result was made from.
        diagnostics: Messages for the user.
        stages: The name and seconds of every stage.
        passes: The name and seconds of every pass.
    """

    module: Module
    sharded: ShardedProgram
    diagnostics: tuple[Diagnostic, ...]
    stages: Seconds
    passes: Seconds
    _executables: dict[Any, Executable] = field(default_factory=dict, init=False)
    _known_to_fit: set[Any] = field(default_factory=set, init=False)

    @property
    def before(self) -> Module:
        """The given module."""
        return self.sharded.before

    @property
    def propagate_options(self) -> PropagateOptions:
        """The options of propagation."""
        return self.sharded.options

    @property
    def interface(self) -> Interface:
        """The inputs, outputs and meshes of the whole program."""
        return self.sharded.interface

    @property
    def meshes(self) -> Mapping[str, Mesh]:
        """The meshes by name."""
        return self.interface.meshes

    @property
    def inputs(self) -> tuple[InterfaceTensor, ...]:
        """The inputs of the whole program with their shardings."""
        return self.interface.inputs

    @property
    def outputs(self) -> tuple[InterfaceTensor, ...]:
        """The outputs of the whole program with their shardings."""
        return self.interface.outputs

    @property
    def device_count(self) -> int:
        """The number of devices that run the program."""
        return self.interface.device_count

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings and notes for the user, with places."""
        return self.diagnostic_texts()

    def diagnostic_texts(self) -> tuple[str, ...]:
        """The diagnostics as text, with places."""
        return tuple(warning_text(message, self.before.name) for message in self.diagnostics)

    @cached_property
    def answer(self) -> CompilerAnswer | None:
        """The answer of the compiler that was asked; None if none was."""
        compiler = self.propagate_options.compiler
        if not compiler:
            return None
        from pyshardy.compilers.ask import ask

        return ask(self.before, compiler)

    @property
    def stand_in(self) -> str:
        """Whose shardings these are, where XLA for CPUs stands in for the compiler of the program's platform."""
        options = self.propagate_options
        return "" if options.compiler or not options.view.is_of_jit else stand_in_of(self.before)

    @property
    def speaker(self) -> str:
        """Whose shardings and collectives these are, in words; empty for XLA for CPUs where nothing else is meant."""
        return self.stand_in if self.answer is None else f"as compiled by {self.answer}"

    @cached_property
    def replications(self) -> tuple[Replication, ...]:
        """The tensors that the compiler gathers whole on every device, as it warns of them; the largest first."""
        if self.answer is None:
            return ()
        from pyshardy.results.compiled import replications_of

        return replications_of(self.answer, self.meshes)

    @property
    def title(self) -> str:
        """The title of the program: "module @jit_step" or "function @main"."""
        root = self.module.root
        name = root.attrs.get("sym_name")
        return (
            f"module {format_symbol(name)}"
            if name
            else f"function {format_symbol(main_function(root).attrs['sym_name'])}"
        )

    @property
    @abstractmethod
    def summary(self) -> Any:
        """A summary of the result, as plain data."""

    @property
    @abstractmethod
    def propagated(self) -> ProgramResult:
        """The whole program with its shardings; it is not propagated again."""

    @property
    @abstractmethod
    def per_device(self) -> PerDevice:
        """The program of one device."""

    @property
    @abstractmethod
    def why(self) -> Why:
        """Explains the values of the whole program by their numbers."""

    @abstractmethod
    def remade(self, sharded: ShardedProgram, root: Op) -> Self:
        """The same result of another program.

        Args:
            sharded: The program with final shardings.
            root: A copy of its nodes that may be changed.
        """

    @cached_property
    def editing(self) -> EditState:
        """The start of all edits of this program."""
        known = self.sharded.edited_from
        return known if isinstance(known, EditState) else first_state(self.sharded)

    @property
    @abstractmethod
    def default_engine(self) -> Engine:
        """The engine that runs it by default."""

    @property
    @abstractmethod
    def bytes_on_all_devices(self) -> int:
        """An estimate of the peak memory of all devices together."""

    def for_engine(self, engine: Engine) -> ProgramResult:
        """The form of the program for an engine: the propagated one for XLA's partitioner, else that of one device."""
        return self.propagated if engine is Engine.XLA else self.per_device

    @abstractmethod
    def make_executable(self, engine: Engine, devices: Sequence[Any] | None) -> Executable:
        """This program, compiled for an engine."""

    @abstractmethod
    def tables(self) -> Any:
        """The tables that `print` shows, for a `rich` console."""

    def to_json(self, times: bool = False) -> dict[str, Any]:
        """The summary as JSON-ready data; `times` adds the time of every stage."""
        found: dict[str, Any] = self.summary.to_json(times)
        return found

    def __repr__(self) -> str:
        inputs, outputs = len(self.inputs), len(self.outputs)
        return (
            f"<{type(self).__name__} of {self.title}: {counted(inputs, 'input')}, {counted(outputs, 'output')}, "
            f"{counted(self.device_count, 'device')}>"
        )


class PerDevice(ProgramResult):
    """The program of one device."""

    @property
    @abstractmethod
    def traffic(self) -> Traffic:
        """Every collective."""

    @property
    @abstractmethod
    def bytes_per_device(self) -> int:
        """An estimate of the peak memory of a device."""

    @property
    @abstractmethod
    def explained_collectives(self) -> Sequence[ExplainedCollectives]:
        """Every collective with its reason and its causes."""

    @abstractmethod
    def hints(self, most: int = 3, hardware: Hardware | str | Path | None = None) -> tuple[CollectiveStory, ...]:
        """What makes the program send less, for the conflicts that send most."""


def warning_text(diagnostic: Diagnostic, name: str = "-") -> str:
    """A message with its place in the user's code, if it has one.

    Args:
        diagnostic: The message.
        name: The name of the text that the module was read from.
    """
    place = user_place(source_frames(diagnostic.location, name))
    if place is None:
        return diagnostic.message
    return f"{short_path(place[0])}:{place[1]}:{place[2]}: {diagnostic.message}"
