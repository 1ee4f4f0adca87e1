"""Comparing what passes make of a module with what the reference makes of it."""

from __future__ import annotations

from collections.abc import Callable
from difflib import unified_diff

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _jax_mlir_ext  # noqa: F401 (registers the passes)
from jaxlib.mlir.passmanager import PassManager

from pyshardy.errors import InvalidShardingError, ShardyError
from pyshardy.ir.context import make_context
from pyshardy.ir.diagnostics import PassError, format_location
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline

Runner = Callable[[str, str], str]
"""From a module and a pipeline to the text of the module after it, in generic form."""

FATAL = (
    "both must be on the same mesh",
    "stops and starts to be unreduced at once",
    "has results with different unreduced axes",
    "with unreduced axes but no results",
    "along which",
)
"""Parts of the messages of errors on which the reference ends its process."""


ANYWHERE = "anywhere"
"""The place of a refusal that the reference gives elsewhere: when it verifies the module after the pass."""


class Refused(Exception):
    """A module that is refused; holds where."""


def ours(text: str, pipeline: str) -> str:
    """What pyshardy makes of a module.

    Raises:
        Refused: It refuses the module.
    """
    try:
        result = run_pipeline(Module.parse(text), pipeline)
        result.verify()
    except PassError as error:
        if isinstance(error.__cause__, InvalidShardingError):
            raise Refused(f"{ANYWHERE}: {error.diagnostic.message}") from error
        raise Refused(f"{format_location(error.diagnostic.location)}: {error.diagnostic.message}") from error
    except ShardyError as error:
        raise Refused(f"{error.where}: {error}") from error
    return result.text(generic=True)


def theirs(text: str, pipeline: str) -> str:
    """What the reference makes of a module.

    Raises:
        Refused: It refuses the module.
    """
    try:
        # In one thread: diagnostics of another thread end the process.
        with make_context() as context, ir.Location.unknown():
            context.enable_multithreading(False)
            module = ir.Module.parse(text)
            PassManager.parse(f"builtin.module({pipeline})").run(module.operation)
            return str(module.operation.get_asm(print_generic_op_form=True))
    except ir.MLIRError as error:
        first = error.error_diagnostics[0]
        raise Refused(f"{format_location(first.location)}: {first.message}") from error


def is_fatal(error: Refused) -> bool:
    """Whether the reference ends its process where we refuse."""
    return any(part in str(error) for part in FATAL)


def difference(text: str, pipeline: str, candidate: Runner = ours, reference: Runner = theirs) -> str | None:
    """What is different, as text; None if nothing is, or if the reference cannot be asked.

    Args:
        text: A module.
        pipeline: Passes, as inside `builtin.module(...)`.
        candidate: What is tested.
        reference: What is right.
    """
    given = _outcome(candidate, text, pipeline)
    if isinstance(given, Refused) and is_fatal(given):
        return None
    wanted = _outcome(reference, text, pipeline)
    if isinstance(given, Refused) or isinstance(wanted, Refused):
        if isinstance(given, Refused) and isinstance(wanted, Refused) and _place(given) in (ANYWHERE, _place(wanted)):
            return None
        return f"given:  {_summary(given)}\nwanted: {_summary(wanted)}"
    if given.strip() == wanted.strip():
        return None
    return "\n".join(unified_diff(wanted.splitlines(), given.splitlines(), "wanted", "given", lineterm="", n=1))


def _outcome(runner: Runner, text: str, pipeline: str) -> str | Refused:
    try:
        return runner(text, pipeline)
    except Refused as error:
        return error


def _place(error: Refused) -> str:
    return str(error).partition(": ")[0]


def _summary(outcome: str | Refused) -> str:
    return f"refused at {outcome}" if isinstance(outcome, Refused) else "accepted"
