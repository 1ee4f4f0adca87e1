"""The annotations that the shardings of inputs and outputs come from, with the names that users know."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.interface import input_tensors, output_tensors
from pyshardy.frontend.program_root import program_root
from pyshardy.ir.dataflow import EDGE
from pyshardy.ir.diagnostics import THIS_FILE, source_frames
from pyshardy.ir.functions import arg_attrs, functions, is_declaration, main_function, result_attrs
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.shardings import transform_shardings
from pyshardy.ir.strings import string_value
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import for_module, propagation_passes
from pyshardy.passes.pipeline import run_on_root
from pyshardy.passes.table import pass_of
from pyshardy.propagation.options import PropagateOptions
from pyshardy.report.places import format_place, user_place
from pyshardy.transforms.debug_info import CONSTRAINT, ORIGIN_NAME, ORIGINS

Origins = tuple[tuple[str, ...], ...]
_SELF = "self"


def origins_of(module: Module, options: PropagateOptions) -> tuple[Origins, Origins]:
    """The annotations that the axes of every input and output come from, without those of the tensor itself.

    Inputs and outputs have their usual names; a constraint or `shard_map` is named by its line. The module is
    propagated until its shardings are found. For a program with several functions the result is empty, because such
    names would be ambiguous.

    Args:
        module: The result of `load`.
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
    root = program_root(module, options)
    run_on_root(module, root, _passes(root, options)[0])
    return _of_borders(root, module.name)


@dataclass(frozen=True, slots=True)
class Followed:
    """A propagated program, with the annotations that the axes of its values come from, without their own.

    Attributes:
        root: The propagated program.
        inputs: The annotations of every input.
        outputs: The annotations of every output.
        values: The annotations of the results of ops.
        constraints: The results of the user's constraints.
    """

    root: Op
    inputs: Origins
    outputs: Origins
    values: Mapping[Value, tuple[str, ...]]
    constraints: frozenset[Value]


def follow(module: Module, options: PropagateOptions) -> Followed:
    """Propagate a program again, and record where the axes of all values come from.

    Args:
        module: The result of `load`.
        options: How it was propagated.
    """
    root = program_root(module, options)
    first, rest = _passes(root, options)
    run_on_root(module, root, first)
    inputs, outputs = _of_borders(root, module.name)
    names = _names(root, module.name)
    values = {value: _named(found, names) for op in ops_with(root, ORIGINS) for value, found in _of_results(op)}
    constraints = frozenset(op.result for op in ops_with(root, ORIGIN_NAME) if op.name == CONSTRAINT)
    run_on_root(module, root, [pass_of("sdy-remove-propagation-debug-info"), *rest])
    return Followed(root, inputs, outputs, values, constraints)


def _of_borders(root: Op, file_name: str) -> tuple[Origins, Origins]:
    main, names = main_function(root), _names(root, file_name)
    return (
        tuple(_named(arg_attrs(main, tensor.index).get(ORIGINS), names) for tensor in input_tensors(root)),
        tuple(_named(result_attrs(main, tensor.index).get(ORIGINS), names) for tensor in output_tensors(root)),
    )


def _of_results(op: Op) -> Iterator[tuple[Value, Any]]:
    """The origins of the results of an op; those of an edge belong to the value that owns it."""
    found = op.attrs[ORIGINS]
    if not isinstance(found, ir.ArrayAttr):
        yield (op.operands[0] if op.name == EDGE else op.result), found
        return
    yield from zip(op.results, found)


def _passes(root: Op, options: PropagateOptions) -> tuple[list[Pass], list[Pass]]:
    """The passes up to propagation, which record where axes come from, and the passes after it."""
    if not options.user_priorities:
        transform_shardings(root, TensorSharding.without_priorities)
    options = replace(for_module(options, root), origins=True, edges=False, trace=False, dump_directory="")
    passes = propagation_passes(options)
    at = next(at for at, one in enumerate(passes, 1) if one.name.endswith("-propagate"))
    return passes[:at], passes[at:]


def _names(root: Op, file_name: str) -> dict[str, str]:
    """The readable names of the origins in a program; empty if it has several functions."""
    if sum(not is_declaration(function) for function in functions(root)) > 1:
        return {}
    names = {f"input: {tensor.index}": tensor.name for tensor in input_tensors(root)}
    names |= {f"output: {tensor.index}": tensor.name for tensor in output_tensors(root)}
    return names | dict(_places(root, file_name))


def _places(root: Op, file_name: str) -> Iterator[tuple[str, str]]:
    """The lines of constraints and manual computations, by their names as origins."""
    for op in ops_with(root, ORIGIN_NAME):
        frames = source_frames(op.location)
        place = user_place([(file_name if file == THIS_FILE else file, line, at) for file, line, at in frames])
        if place is not None:
            yield string_value(op.attrs[ORIGIN_NAME]), format_place(place)


def _named(origins: Any, names: dict[str, str]) -> tuple[str, ...]:
    """The distinct readable names of the origins of a tensor."""
    if origins is None:
        return ()
    entries = ir.DictAttr(origins)
    given = [string_value(entries[index].attr) for index in range(len(entries))]
    found = [names.get(origin) or names.get(_computation(origin)) for origin in given if origin != _SELF]
    return tuple(dict.fromkeys(name for name in found if name is not None))


def _computation(origin: str) -> str:
    """The manual computation that one of its inputs or outputs belongs to: `mc_0` of `mc_0_input: 1`."""
    return origin.rpartition("_")[0]
