"""The reference in a child process: it ends its process on some modules, and that must not end the tests."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext  # noqa: F401 (registers the passes)
from jaxlib.mlir.passmanager import PassManager

from pyshardy.ir.context import make_context
from pyshardy.ir.locations import format_location


class Refused(Exception):
    """A module that is refused; the message starts with the place."""

    @property
    def place(self) -> str:
        """Where the error is."""
        return str(self).partition(": ")[0]


class Died(Exception):
    """The reference ended its process."""


def run_in_process(text: str, pipeline: str, allow_unregistered: bool = False) -> str:
    """What the reference makes of a module, in generic form with locations.

    Raises:
        Refused: It refuses the module.
    """
    try:
        # In one thread: a diagnostic from another one ends the process.
        with make_context(allow_unregistered) as context, ir.Location.unknown():
            context.enable_multithreading(False)
            module = ir.Module.parse(text)
            PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
            return str(module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))
    except ir.MLIRError as error:
        first = error.error_diagnostics[0]
        raise Refused(f"{format_location(first.location)}: {first.message}") from error


class ReferenceProcess:
    """A child process that runs the reference; starts when it is first needed, and again after it has died.

    Use it as a context manager, or call `stop`.
    """

    def __init__(self) -> None:
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> ReferenceProcess:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def run(self, text: str, pipeline: str, allow_unregistered: bool = False) -> str:
        """What the reference makes of a module, in generic form with locations.

        Raises:
            Refused: It refuses the module.
            Died: It ends its process.
        """
        pipe = self._start()
        try:
            pipe.send((text, pipeline, allow_unregistered))
            accepted, answer = pipe.recv()
        except (EOFError, OSError) as error:
            self.stop()
            raise Died from error
        if not accepted:
            raise Refused(answer)
        return str(answer)

    def _start(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        return self._pipe

    def stop(self) -> None:
        """End the child process."""
        if self._pipe is not None and self._process is not None:
            self._pipe.close()
            self._process.join()
            self._pipe = self._process = None


def _serve(pipe: Connection) -> None:
    while True:
        try:
            arguments = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send((True, run_in_process(*arguments)))
        except Refused as error:
            pipe.send((False, str(error)))
