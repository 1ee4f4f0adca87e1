"""The program that propagation starts from: the user's, or what a compiler made of it."""

from __future__ import annotations

from pyshardy.frontend.annotated import import_annotations
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.propagation.options import PropagateOptions


def program_root(module: Module, options: PropagateOptions) -> Op:
    """The nodes that propagation starts from, to work on.

    Args:
        module: The user's module.
        options: The options of propagation. With a compiler, it is the module that this compiler passes to Shardy.

    Raises:
        UsageError: The compiler is not installed, or does not fit the program.
        ShardyError: The compiler refuses the program.
    """
    if not options.compiler:
        return module.copy_root()
    from pyshardy.compilers.ask import ask, given_module

    return import_annotations(given_module(ask(module, options.compiler), module)).root
