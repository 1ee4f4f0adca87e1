"""What users do with results: run them, edit their annotations, report on them, print them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Self

from pyshardy.core.text import counted, named_type
from pyshardy.errors import UsageError
from pyshardy.report.printing import printed
from pyshardy.results.program_result import PerDevice, ProgramResult
from pyshardy.results.running import executable_of, run_on
from pyshardy.runtime.engine import Engine, as_engine

if TYPE_CHECKING:
    from pyshardy.frontend.jax_calls import OtherArgumentsError
    from pyshardy.report.page.render import PageFormat
    from pyshardy.results.edit import Edit
    from pyshardy.runtime.executable import Executable

_LONGEST_TREE = 200
"""The number of characters of the structure of arguments in a message."""


class Result(ProgramResult):
    """A result with its verbs. What they use takes a `ProgramResult`."""

    def run(
        self,
        *arrays: Any,
        devices: Sequence[Any] | None = None,
        engine: Engine | str | None = None,
        force: bool = False,
        **keywords: Any,
    ) -> Any:
        """Run the program and return its outputs, global arrays; see `pyshardy.run`.

        Args:
            arrays: The inputs, one global array per input. For the program of a JAX function, its arguments as trees,
                with or without static ones.
            devices: The devices, in the order of device ids; by default those that a JAX function was lowered for, or
                JAX's own.
            engine: "local", "xla" or "interpreter"; the default depends on the kind of result.
            force: Whether to run a program that seems to need more memory than this machine has for virtual devices.
            keywords: The keyword arguments of a JAX function.

        Returns:
            The result of the function for its arguments; a tuple of all outputs for flat inputs.

        Raises:
            UsageError: Inputs do not fit, there are too few devices, the engine is unknown, or the program needs too
                much memory.
            ShardyError: The engine cannot compile the program, or fails while it runs.
        """
        signature = self.before.origin
        is_function = hasattr(signature, "in_tree")
        if is_function:
            from pyshardy.frontend.jax_calls import OtherArgumentsError, call

            try:
                return call(signature, arrays, keywords, lambda inputs: self.run_flat(inputs, devices, engine, force))
            except OtherArgumentsError as error:
                other = error
        is_other_call = is_function and len(arrays) != len(self.inputs)
        if keywords or is_other_call or not all(map(_may_be_array, arrays)):
            got = ", ".join(map(named_type, (*arrays, *keywords.values()))) or "nothing"
            needed = f"{counted(len(self.inputs), 'array')}, one per input"
            if is_function:
                self._check_leaves(signature, other)
                needed = f"arguments like those that it was loaded for, {_shortened(signature.in_tree)}, or {needed}"
            raise UsageError(f"running {self.title}", got=got, needed=needed)
        return self.run_flat(arrays, devices, engine, force)

    def _check_leaves(self, signature: Any, error: OtherArgumentsError) -> None:
        """Raise an error that says how arguments differ from those that the function was loaded for, if known."""
        if error.is_static:
            raise UsageError(
                f"running {self.title}",
                got="arguments that differ in something other than arrays",
                needed="the same functions and flags as in the arguments that it was loaded for",
                hint="create static objects, such as an optimizer of optax, once, and use them for load and for run",
            )
        if error.leaf in signature.kept:
            tensor = self.inputs[signature.kept.index(error.leaf)]
            raise UsageError(
                f"running {self.title}",
                got=f"an array of shape {error.shape} for {tensor.name}",
                needed=f"shape {tensor.shape}, as in the arguments that it was loaded for",
                hint="pyshardy.jit, which loads a function again for other shapes",
            )

    def run_flat(
        self,
        arrays: Sequence[Any],
        devices: Sequence[Any] | None = None,
        engine: Engine | str | None = None,
        force: bool = False,
    ) -> tuple[Any, ...]:
        """Run the program on flat inputs and return flat outputs, global arrays; other arguments are as in `run`."""
        return run_on(self, arrays, devices, as_engine(engine, self.default_engine), force)

    def executable(self, devices: Sequence[Any] | None = None, engine: Engine | str | None = None) -> Executable:
        """The compiled program for these devices, compiled once; the arguments are as in `run`."""
        return executable_of(self, devices, as_engine(engine, self.default_engine))

    def edit(self, shardings: Mapping[str, Any], mesh: Any = None) -> Edit[Self]:
        """Change annotations of inputs and outputs: the new result and the difference.

        Propagation visits only the ops that the edit reaches. The result equals that of annotating the program and
        propagating from the start.

        Args:
            shardings: The shardings by name, as for `pyshardy.annotate`; None removes an annotation.
            mesh: The mesh that specs refer to; by default that of the program.

        Raises:
            UsageError: No input or output has a name, and the error gives the nearest ones; or there is no mesh, or
                several.
            InvalidShardingError: A sharding does not fit its tensor or mesh.

        >>> from pyshardy import propagate
        >>> result = propagate('''
        ... sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }''')
        >>> edit = result.edit({"arg0": "x"})
        >>> [(change.name, str(change.after)) for change in edit.difference.shardings]
        [('arg0', '<@mesh, [{"x"}]>'), ('result', '<@mesh, [{"x"}]>'), ('`tanh` at the text:4', '<@mesh, [{"x"}]>')]
        >>> edit.result.outputs[0].sharding
        TensorSharding(<@mesh, [{"x"}]>)
        """
        from pyshardy.results.edit import make_edit

        return make_edit(self, shardings, mesh)

    def report(
        self,
        path: str | Path,
        *,
        compare: ProgramResult | None = None,
        names: tuple[str, str] | None = None,
        format: PageFormat | str = "html",
        hints: bool = True,
    ) -> None:
        """Write a report of the result: one HTML file that a browser opens without a network.

        Args:
            path: The file.
            compare: Another result, such as that of other annotations, to show beside this one.
            names: What to call the two, such as `("today", "with FSDP")`; by default the names of their programs.
            format: A `PageFormat` or its name: "html", "json", ...
            hints: Whether to look for annotations that make the program send less, which partitions it a few times.

        Raises:
            UsageError: The format is unknown, the names are not two different ones, or the file cannot be written.
            ShardyError: A program cannot be partitioned.

        >>> import pathlib, tempfile
        >>> from pyshardy import propagate
        >>> result = propagate('''
        ... sdy.mesh @mesh = <["x"=2]>
        ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
        ...   %0 = stablehlo.tanh %a : tensor<8xf32>
        ...   return %0 : tensor<8xf32>
        ... }''')
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder, "report.html")
        ...     result.report(path)
        ...     path.read_text()[:15]
        '<!doctype html>'
        """
        from pyshardy.core.files import write_whole
        from pyshardy.results.pages import report_bytes

        if not isinstance(compare, (ProgramResult, NoneType)):
            needed = "another result of propagate or partition"
            raise UsageError("writing a report", got=f"{named_type(compare)} to compare with", needed=needed)
        results = [self] if compare is None else [self, compare]
        are_two = isinstance(names, tuple) and len(names) == 2 == len({name for name in names if isinstance(name, str)})
        if names is not None and (compare is None or not are_two):
            needed = "two different names" if compare is not None else "`compare`, another result, for the second name"
            raise UsageError("writing a report", got=f"the names {names!r}", needed=needed)
        write_whole(path, report_bytes(results, format, names=names or (), hints=hints))

    def __str__(self) -> str:
        return printed(self.tables())

    def _repr_html_(self) -> str:
        from pyshardy.report.page.notebook import notebook_html
        from pyshardy.report.tables import traffic_tables

        sent = self.traffic if isinstance(self, PerDevice) else None
        folded = self.tables() if sent is None else traffic_tables(sent)
        return notebook_html(self.propagated.summary, sent, folded)


def _shortened(tree: Any) -> str:
    text = " ".join(str(tree).removeprefix("PyTreeDef(").removesuffix(")").split())
    return text if len(text) <= _LONGEST_TREE else f"{text[:_LONGEST_TREE]}..."


def _may_be_array(value: Any) -> bool:
    """Whether this is not a tree; a leaf that is not an array is refused later, where its input is known."""
    return not isinstance(value, (dict, str)) and value is not None
