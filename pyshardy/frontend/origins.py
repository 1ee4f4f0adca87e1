"""Which annotations the shardings of inputs and outputs go back to, in the user's words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.ir.diagnostics import THIS_FILE, source_frames
from pyshardy.ir.functions import arg_attrs, functions, is_declaration, main_function, result_attrs
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shardings import transform_shardings
from pyshardy.ir.strings import string_value
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import for_module, propagation_passes
from pyshardy.passes.pipeline import run_on_root
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.places import format_place, user_place
from pyshardy.transforms.debug_info import ORIGIN_NAME, ORIGINS

Origins = tuple[tuple[str, ...], ...]
_SELF = "self"


def origins_of(module: Module, options: PropagateOptions) -> tuple[Origins, Origins]:
    """The annotations that the axes of every input and of every output come from, without their own.

    An input or output is named as the user knows it; a constraint, or `shard_map`, by its line. The module is
    propagated up to where its shardings are found. Nothing is known of a program with several functions, in which
    such names would not say which function they are of.

    Args:
        module: What `load` returns.
        options: How it was propagated.

    >>> module = Module.parse('''
    ... sdy.mesh @mesh = <["x"=2]>
    ... func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
    ...   %0 = stablehlo.tanh %a : tensor<8xf32>
    ...   return %0 : tensor<8xf32>
    ... }''')
    >>> origins_of(module, PropagateOptions())
    (((),), (('arg0',),))
    """
    root = module.copy_root()
    if not options.user_priorities:
        transform_shardings(root, TensorSharding.without_priorities)
    run_on_root(module, root, _up_to_shardings(propagation_passes(for_module(options, root))))
    inputs, outputs = input_tensors(root), output_tensors(root)
    if sum(not is_declaration(function) for function in functions(root)) > 1:
        return ((),) * len(inputs), ((),) * len(outputs)
    names = {f"input: {tensor.index}": tensor.name for tensor in inputs}
    names |= {f"output: {tensor.index}": tensor.name for tensor in outputs}
    names |= dict(_places(root, module.name))
    main = main_function(root)
    return (
        tuple(_named(arg_attrs(main, tensor.index).get(ORIGINS), names) for tensor in inputs),
        tuple(_named(result_attrs(main, tensor.index).get(ORIGINS), names) for tensor in outputs),
    )


def _up_to_shardings(passes: Any) -> Iterator[Pass]:
    """The passes up to the one that propagates; those that can are to note where axes come from."""
    for pass_ in passes:
        yield replace(pass_, debug_sharding_origins=True) if hasattr(pass_, "debug_sharding_origins") else pass_
        if pass_.name.endswith("-propagate"):
            return


def _places(root: Op, file_name: str) -> Iterator[tuple[str, str]]:
    """The lines of constraints and manual computations by the names that they have as origins."""
    for op in ops_with(root, ORIGIN_NAME):
        frames = source_frames(op.location)
        place = user_place([(file_name if file == THIS_FILE else file, line, at) for file, line, at in frames])
        if place is not None:
            yield string_value(op.attrs[ORIGIN_NAME]), format_place(place)


def _named(origins: Any, names: dict[str, str]) -> tuple[str, ...]:
    """What the user calls the origins of a tensor, each once."""
    if origins is None:
        return ()
    entries = ir.DictAttr(origins)
    given = [string_value(entries[index].attr) for index in range(len(entries))]
    found = [names.get(origin) or names.get(_computation(origin)) for origin in given if origin != _SELF]
    return tuple(dict.fromkeys(name for name in found if name is not None))


def _computation(origin: str) -> str:
    """The manual computation that one of its inputs or outputs belongs to: `mc_0` of `mc_0_input: 1`."""
    return origin.rpartition("_")[0]
