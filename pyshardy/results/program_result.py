"""What the results of `propagate` and `partition` have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyshardy.core.mesh import Mesh
from pyshardy.core.text import format_symbol
from pyshardy.frontend.interface import Interface, InterfaceTensor
from pyshardy.ir.diagnostics import Diagnostic, source_position
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.tables import html, plain_text
from pyshardy.results.engines import Engine, as_engine, executable_of, run_on
from pyshardy.results.sharded_program import ShardedProgram
from pyshardy.results.stopwatch import Seconds

if TYPE_CHECKING:
    from pyshardy.results.propagation import Propagation
    from pyshardy.runtime.executable import Executable


@dataclass(frozen=True, eq=False, repr=False)
class ProgramResult(ABC):
    """A program that was propagated or partitioned.

    Nothing of it changes. `print` shows it as tables, a notebook as HTML, `repr` in one line.

    Attributes:
        module: The module that came out.
        sharded: The program with final shardings that it came from.
        diagnostics: What the user should know.
        stages: Name and seconds of every stage.
        passes: Name and seconds of every pass.
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
        """The module that was given."""
        return self.sharded.before

    @property
    def propagate_options(self) -> PropagateOptions:
        """How shardings were propagated."""
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
        """Number of devices that the program is for."""
        return self.interface.device_count

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the user should know, with places."""
        return self.diagnostic_texts()

    def diagnostic_texts(self) -> tuple[str, ...]:
        """The diagnostics as text, with places."""
        return tuple(warning_text(message, self.before.name) for message in self.diagnostics)

    @property
    def title(self) -> str:
        """What the program is called: "module @jit_step" or "function @main"."""
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
        """What there is to see of it, as plain data."""

    @property
    @abstractmethod
    def propagated(self) -> Propagation:
        """The whole program with its shardings; it is not propagated again."""

    @property
    @abstractmethod
    def default_engine(self) -> Engine:
        """What runs it unless the user says otherwise."""

    @property
    @abstractmethod
    def bytes_on_all_devices(self) -> int:
        """An estimate of the most that all devices hold at a time."""

    @abstractmethod
    def for_engine(self, engine: Engine) -> ProgramResult:
        """The form of the program that an engine runs; shardings are not propagated again."""

    @abstractmethod
    def make_executable(self, engine: Engine, devices: Sequence[Any] | None) -> Executable:
        """This program, compiled for an engine that runs this form of it."""

    @abstractmethod
    def tables(self) -> Any:
        """What `print` shows, for a `rich` console."""

    def run(
        self,
        *arrays: Any,
        devices: Sequence[Any] | None = None,
        engine: Engine | str | None = None,
        force: bool = False,
    ) -> tuple[Any, ...]:
        """The outputs of the program, global arrays; see `pyshardy.run`.

        Args:
            arrays: The inputs, one global array per input.
            devices: The devices, in the order that device ids count them; by default those that a JAX function was
                lowered for, or those that JAX has.
            engine: "local", "xla" or "interpreter"; by default what is natural for this result.
            force: Whether to run a program that seems to need more memory than this machine has for virtual devices.

        Raises:
            UsageError: Inputs that do not fit, too few devices, an unknown engine, or too little memory.
            ShardyError: What runs it cannot compile it or fails on the way.
        """
        return run_on(self, arrays, devices, as_engine(engine, self.default_engine), force)

    def executable(self, devices: Sequence[Any] | None = None, engine: Engine | str | None = None) -> Executable:
        """The program compiled for these devices, once; the arguments are those of `run`."""
        return executable_of(self, devices, as_engine(engine, self.default_engine))

    def to_json(self, times: bool = False) -> dict[str, Any]:
        """The summary as JSON-ready data; with `times`, also how long every stage took."""
        found: dict[str, Any] = self.summary.to_json(times)
        return found

    def __str__(self) -> str:
        return plain_text(self.tables())

    def __repr__(self) -> str:
        inputs, outputs = len(self.inputs), len(self.outputs)
        return (
            f"<{type(self).__name__} of {self.title}: {_counted(inputs, 'input')}, {_counted(outputs, 'output')}, "
            f"{_counted(self.device_count, 'device')}>"
        )

    def _repr_html_(self) -> str:
        return html(self.tables())


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def warning_text(diagnostic: Diagnostic, name: str = "-") -> str:
    """A message with its place, if it has one; `name` is what to call the text that the module was read from."""
    position = source_position(diagnostic.location)
    if position is None:
        return diagnostic.message
    file, *place = position
    return ":".join(map(str, (name if file == "-" else file, *place))) + f": {diagnostic.message}"
