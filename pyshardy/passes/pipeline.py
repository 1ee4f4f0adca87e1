"""Pipelines: lists of passes, from text and back, and running them over a module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, groupby

from pyshardy.core.text import named_type
from pyshardy.errors import InvalidModuleError, UsageError
from pyshardy.ir.diagnostics import Diagnostic, Diagnostics, Severity
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.passes.base import Anchor, Pass
from pyshardy.transforms.context import PassContext

Hook = Callable[[Pass, Op, float], None]
"""Called with a pass, the module or function that it has run on, and the seconds it took."""
EarlyHook = Callable[[Pass, Op], None]
"""Called with a pass and the module or function that it is about to run on, or has failed on."""


def run_passes(
    module: Module, passes: Iterable[Pass], diagnostics: Diagnostics | None = None, after_pass: Hook | None = None
) -> Module:
    """Run passes in order; return the resulting module. The given module does not change.

    Args:
        module: The module.
        passes: The passes.
        diagnostics: Where warnings go.
        after_pass: Called after every pass.

    Raises:
        PassError: The module does not meet the requirements of a pass.
    """
    with pause_gc():
        root = module.copy_root()
        run_on_root(module, root, passes, diagnostics, after_pass)
    return module.with_root(root)


def run_on_root(
    module: Module,
    root: Op,
    passes: Iterable[Pass],
    diagnostics: Diagnostics | None = None,
    after_pass: Hook | None = None,
    *,
    before_pass: EarlyHook | None = None,
    on_failure: EarlyHook | None = None,
    context: PassContext | None = None,
) -> PassContext:
    """Run passes over the nodes of a module in place; return their context, with what they recorded.

    Args:
        module: The module that the nodes come from.
        root: The nodes.
        passes: The passes.
        diagnostics: Where warnings go.
        after_pass: Called after every pass.
        before_pass: Called before every pass.
        on_failure: Called with the pass that refuses the module.
        context: The context of earlier passes on the same nodes, to continue with.

    As in MLIR, consecutive passes on functions all run on one function before they run on the next one. If one of them
    fails, they still run on the other functions, and the errors of all are reported together.
    """
    with module.context, pause_gc():
        if context is None:
            context = PassContext(root, module.attrs, OpSpecReader(), diagnostics or Diagnostics())
        for anchor, group in groupby(passes, key=lambda pass_: pass_.anchor):
            together = list(group)
            failures = []
            for op in [root] if anchor is Anchor.MODULE else list(functions(root)):
                try:
                    for pass_ in together:
                        if before_pass is not None:
                            before_pass(pass_, op)
                        start = time.perf_counter()
                        pass_.run(op, context)
                        if after_pass is not None:
                            after_pass(pass_, op, time.perf_counter() - start)
                except InvalidModuleError as error:
                    failures.append(error)
                    if on_failure is not None:
                        on_failure(pass_, op)
            if failures:
                raise _joined(failures)
    return context


def _joined(failures: Sequence[InvalidModuleError]) -> InvalidModuleError:
    """The first error, with the diagnostics of all."""
    first = failures[0]
    if len(failures) > 1:
        of_each = [failure.diagnostics or (Diagnostic(Severity.ERROR, str(failure)),) for failure in failures]
        first.diagnostics = tuple(chain.from_iterable(of_each))
    return first


def run_pipeline(module: Module, text: str, diagnostics: Diagnostics | None = None) -> Module:
    """Run a textual pipeline; return the resulting module.

    Args:
        module: The module; it is not changed.
        text: Names of passes and pipelines with their options, `a,b{option=value},func.func(c)`, optionally inside
            `builtin.module(...)`. Passes on functions need no `func.func(...)` around them.
        diagnostics: Where warnings go.

    Raises:
        UsageError: The text is not a pipeline.
        PassError: The module does not meet the requirements of a pass.
    """
    from pyshardy.passes.pipelines import parse_pipeline

    if not isinstance(module, Module):
        raise UsageError("running a pipeline", got=named_type(module), needed="what load returns")
    if not isinstance(text, str):
        raise UsageError("running a pipeline", got=f"{named_type(text)} as the pipeline", needed="text: 'a,b{c=d}'")
    return run_passes(module, parse_pipeline(text), diagnostics)
