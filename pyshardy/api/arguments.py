"""What the public functions make of their arguments: options, the compiler, the module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pyshardy.api.load import load
from pyshardy.compilers.choice import compiler_of
from pyshardy.compilers.target import compiler_name
from pyshardy.core.options import options_of
from pyshardy.errors import ShardyError
from pyshardy.ir.module import Module
from pyshardy.propagation.options import PropagateOptions, View
from pyshardy.results.dumps import new_folder
from pyshardy.results.verbs import Result


def propagation_options(options: PropagateOptions | None, changes: Mapping[str, Any], doing: str) -> PropagateOptions:
    """The options of propagation with single changes, and the full name of their compiler."""
    given = {name: value for name, value in changes.items() if not (name in ("view", "compiler") and value is None)}
    found = options_of(PropagateOptions, options, given, doing)
    if found.compiler is None:
        return found
    name = compiler_name(found.compiler)
    return found if name == found.compiler else replace(found, compiler=name)


def with_compiler(options: PropagateOptions, module: Module) -> PropagateOptions:
    """The options, with the compiler of the program's platform if nobody chose one."""
    if options.compiler is not None:
        return options
    is_usual = options.view is View.XLA and not options.alters_results
    name = compiler_of(module) if is_usual else ""
    if name:
        from pyshardy.compilers.ask import ask

        try:
            ask(module, name)
        except ShardyError:  # nobody named a compiler: the first line of the result says how to ask, and so to see why
            name = ""
    return replace(options, compiler=name) if name else options


def dump_folder(module: Module, directory: str) -> str:
    """The folder for dumps of a program, if somebody asked for dumps and the options name no directory."""
    return "" if directory else new_folder(module)


def module_of(program: Any) -> Module:
    """The module of an argument of `propagate` or `partition`."""
    return program.before if isinstance(program, Result) else load(program)
