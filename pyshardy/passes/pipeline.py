"""Pipelines: lists of passes, from text and back, and running them over a module."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.functions import functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.passes.base import Anchor, Pass, PassContext

Hook = Callable[[Pass, Op, float], None]
"""Called after every pass with the pass, the module and the seconds it took."""


def run_passes(
    module: Module, passes: Iterable[Pass], diagnostics: Diagnostics | None = None, after_pass: Hook | None = None
) -> Module:
    """The module after the passes, in order; the module given is not changed.

    Args:
        module: The module.
        passes: The passes.
        diagnostics: Where warnings go.
        after_pass: Called after every pass.

    Raises:
        PassError: The module is not what a pass needs.
    """
    root = module.copy_root()
    run_on_root(module, root, passes, diagnostics, after_pass)
    return module.with_root(root)


def run_on_root(
    module: Module,
    root: Op,
    passes: Iterable[Pass],
    diagnostics: Diagnostics | None = None,
    after_pass: Hook | None = None,
) -> PassContext:
    """Run passes over the nodes of a module in place; what they shared, with what they recorded."""
    with module.context, pause_gc():
        context = PassContext(root, module.attrs, OpSpecReader(), diagnostics or Diagnostics())
        for pass_ in passes:
            start = time.perf_counter()
            if pass_.anchor is Anchor.MODULE:
                pass_.run(root, context)
            else:
                for function in list(functions(root)):
                    pass_.run(function, context)
            if after_pass is not None:
                after_pass(pass_, root, time.perf_counter() - start)
    return context


def run_pipeline(module: Module, text: str, diagnostics: Diagnostics | None = None) -> Module:
    """The module after the passes of a textual pipeline.

    Args:
        module: The module; it is not changed.
        text: Names of passes and pipelines with their options, `a,b{option=value},func.func(c)`, optionally
            inside `builtin.module(...)`. Passes on functions nest by themselves.
        diagnostics: Where warnings go.

    Raises:
        UsageError: The text is no pipeline.
        PassError: The module is not what a pass needs.
    """
    from pyshardy.passes.pipelines import parse_pipeline

    return run_passes(module, parse_pipeline(text), diagnostics)
