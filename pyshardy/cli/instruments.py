"""Instrumentation of `pyshardy-opt` between passes: dumps of the module, times, and the search for a broken pass."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from jaxlib.mlir import ir

from pyshardy.cli.opt_command import Command
from pyshardy.core.text import format_symbol
from pyshardy.errors import InvalidModuleError, ShardyError
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.strings import string_value
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.options import format_options
from pyshardy.passes.pipeline import run_on_root

_WIDTH = 100
_MLIR_CLASSES = {"SymbolDce": "SymbolDCE", "Canonicalize": "Canonicalizer"}


class InvalidAfterPass(InvalidModuleError):
    """MLIR's verifier refuses the module after a pass.

    Args:
        pass_: The pass.
        error: The error of the verifier.
    """

    def __init__(self, pass_: Pass, error: InvalidModuleError) -> None:
        super().__init__(f"verifying the module after {pass_.name}", where=error.where, got=error.got)
        self.pass_name = pass_.name
        self.diagnostics = error.diagnostics


class Timer:
    """Adds up the wall time of the steps of a command, over all modules of its input."""

    def __init__(self) -> None:
        self.steps: dict[Any, tuple[str, float]] = {}
        self._start = time.perf_counter()

    def add(self, key: Any, name: str, seconds: float) -> None:
        """Add to a step. The key distinguishes steps with the same name."""
        self.steps[key] = (name, self.steps.get(key, (name, 0.0))[1] + seconds)

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Measure the time of a block."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(name, name, time.perf_counter() - start)

    def print_table(self, stream: TextIO) -> None:
        """Print all steps with their share of the time so far."""
        from io import StringIO

        from rich.console import Console
        from rich.table import Table

        from pyshardy.report.summary import format_seconds

        total = time.perf_counter() - self._start
        rest = max(total - sum(seconds for _, seconds in self.steps.values()), 0.0)
        table = Table(title="wall time", title_justify="left", show_edge=False, header_style="bold")
        table.add_column("step", overflow="fold")
        table.add_column("time", justify="right")
        table.add_column("share", justify="right")
        for name, seconds in [*self.steps.values(), ("rest", rest), ("total", total)]:
            table.add_row(name, format_seconds(seconds), f"{100 * seconds / total:.1f}%")
        if stream.isatty():
            Console(file=stream).print(table)
            return
        text = StringIO()
        Console(file=text, width=_WIDTH, color_system=None).print(table)
        stream.write("\n".join(line.rstrip() for line in text.getvalue().splitlines()) + "\n")


class Instruments:
    """The instrumentation of the passes over one module.

    Args:
        command: The command line.
        module: The module that the passes start from.
        timer: Where the times of passes go.
        stderr: Where dumps go.
    """

    def __init__(self, command: Command, module: Module, timer: Timer, stderr: TextIO) -> None:
        self._command = command
        self._module = module
        self._timer = timer
        self._stderr = stderr
        self._root: Op | None = None
        self._last = ""

    def run(self, diagnostics: Diagnostics) -> Module:
        """The module after the passes.

        Raises:
            InvalidAfterPass: `-verify-each` is set, and the module is invalid after a pass.
            InvalidModuleError: A pass failed.
        """
        command = self._command
        with self._timer.step("read"):
            self._root = root = self._module.copy_root()
        if "mlir-print-ir-after-change" in command.flags:
            self._last = self._text()
        run_on_root(
            self._module,
            root,
            command.passes,
            diagnostics,
            self._after_pass,
            before_pass=self._dump_before,
            on_failure=self._failed,
        )
        return self._module.with_root(root)

    def _after_pass(self, pass_: Pass, op: Op, seconds: float) -> None:
        flags = self._command.flags
        self._timer.add(id(pass_), pass_.name, seconds)
        if self._command.values.get("verify-each") == "true":
            verify_after(pass_, self._written())
        has_changed = True
        if "mlir-print-ir-after-change" in flags:
            before, self._last = self._last, self._text()
            has_changed = self._last != before
        if has_changed and self._is_chosen(pass_) and "mlir-print-ir-after-failure" not in flags:
            self._dump("After", pass_, op)

    def _failed(self, pass_: Pass, op: Op) -> None:
        if self._is_chosen(pass_):
            self._dump("After", pass_, op, " Failed")

    def _dump_before(self, pass_: Pass, op: Op) -> None:
        command = self._command
        if "mlir-print-ir-before-all" in command.flags or pass_.name in command.names("mlir-print-ir-before"):
            self._dump("Before", pass_, op)

    def _is_chosen(self, pass_: Pass) -> bool:
        """Whether to print the module after this pass."""
        command = self._command
        is_after_all = command.flags & {"mlir-print-ir-after-all", "mlir-print-ir-after-failure"}
        return bool(is_after_all) or pass_.name in command.names("mlir-print-ir-after")

    def _written(self) -> Module:
        """The current module."""
        assert self._root is not None
        return self._module.with_root(self._root)

    def _text(self) -> str:
        return self._written().text(debug_info=True)

    def _dump(self, when: str, pass_: Pass, op: Op, outcome: str = "") -> None:
        options = format_options(pass_)
        heading = f"// -----// IR Dump {when} {mlir_class(pass_)}{outcome}: {pass_.name}"
        heading += f"{{{options}}}" if options else ""
        with self._module.context:
            try:
                whole = self._written().mlir.operation
            except (ir.MLIRError, ShardyError, KeyError, ValueError) as error:  # a failed pass has left it incomplete
                self._stderr.write(f"{heading} //----- //\n// cannot be written: {error}\n\n")
                return
            if pass_.anchor is not Anchor.FUNCTION:
                self._stderr.write(f"{heading} //----- //\n{print_op(whole, self._command)}\n\n")
                return
            name = op.attrs["sym_name"]
            if "mlir-print-ir-module-scope" in self._command.flags:
                scope, text = f" ('func.func' operation: {format_symbol(name)})", print_op(whole, self._command) + "\n"
            else:
                operations = whole.regions[0].blocks[0].operations
                function = next(one for one in operations if is_function(one) and function_name(one) == name)
                scope, text = "", print_op(function.operation, self._command, is_local=True)
            self._stderr.write(f"{heading}{scope} //----- //\n{text}\n")


def is_function(operation: Any) -> bool:
    """Whether an MLIR op is a function."""
    return bool(operation.operation.name == "func.func")


def function_name(operation: Any) -> str:
    """The name of an MLIR function."""
    return string_value(operation.operation.attributes["sym_name"])


def mlir_class(pass_: Pass) -> str:
    """The name of a pass in MLIR's dumps.

    >>> from pyshardy.passes.table import pass_class
    >>> mlir_class(pass_class("sdy-basic-propagate")()), mlir_class(pass_class("symbol-dce")())
    ('BasicPropagationPass', 'SymbolDCEPass')
    """
    name = type(pass_).__name__
    if name.endswith("Propagate"):
        name = name.removesuffix("e") + "ion"
    return _MLIR_CLASSES.get(name, name) + "Pass"


def print_op(operation: Any, command: Command, *, is_local: bool = False) -> str:
    """The text of an MLIR op, printed as the flags say, with a final newline; its context must be entered."""
    flags = command.flags
    text = operation.get_asm(
        enable_debug_info="mlir-print-debuginfo" in flags or "mlir-pretty-debuginfo" in flags,
        pretty_debug_info="mlir-pretty-debuginfo" in flags,
        print_generic_op_form="mlir-print-op-generic" in flags,
        use_local_scope=is_local or "mlir-print-local-scope" in flags,
        use_name_loc_as_prefix="mlir-use-nameloc-as-prefix" in flags,
        large_elements_limit=command.limit("mlir-elide-elementsattrs-if-larger"),
        large_resource_limit=command.limit("mlir-elide-resource-strings-if-larger"),
    )
    return str(text).rstrip("\n") + "\n"


def verify_after(pass_: Pass, module: Module) -> None:
    """Raise `InvalidAfterPass` unless MLIR's verifier accepts the module."""
    try:
        module.verify()
    except InvalidModuleError as error:
        raise InvalidAfterPass(pass_, error) from error


def find_invalid_pass(module: Module, command: Command) -> None:
    """Raise `InvalidAfterPass` at the first pass after which the module is invalid."""

    root = module.copy_root()

    def verify(pass_: Pass, op: Op, seconds: float) -> None:
        verify_after(pass_, module.with_root(root))

    run_on_root(module, root, command.passes, Diagnostics(), verify)
