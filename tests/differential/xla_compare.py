"""Comparing pyshardy's view of a program with XLA's own dumps, op by op."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator

from pyshardy.ir.functions import SHARDING, functions
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import module_meshes
from pyshardy.passes.base import Pass
from pyshardy.passes.flow import propagation_passes
from pyshardy.passes.pipeline import run_passes
from pyshardy.propagation.options import PropagateOptions

_SHAPING = frozenset(
    """
    base_dilations broadcast_dimensions call_target_name comparison_direction dimension dimension_numbers dimensions
    edge_padding_high edge_padding_low group_id in_shardings interior_padding iota_dimension k limit_indices manual_axes
    out_shardings padding permutation scatter_dimension_numbers sharding slice_sizes start_indices strides value
    window_dilations window_dimensions window_strides
    """.split()  # noqa: SIM905 (a table of words)
)
"""The attributes that are compared, besides shardings; layouts, metadata and precision are XLA's or JAX's own affair."""
_NAMES = {"stablehlo.constant": "sdy.constant", "stablehlo.dot": "stablehlo.dot_general"}
_LAST = {"01": "sdy-manual-axes-cleanup", "02": "sdy-close-shardings"}
"""Behind which of our passes XLA writes the module of a stage."""


def xla_view(text: str, stage: str) -> Module:
    """What pyshardy makes of a program up to a stage of XLA's: "01" before propagation, "02" after it.

    Newer XLAs lose the priorities of dimensions on the way to HLO; they are left out here.
    """
    module = Module.parse(re.sub(r"\}p\d+", "}", text))
    passes: list[Pass] = []
    for pass_ in propagation_passes(PropagateOptions()):
        passes.append(pass_)
        if pass_.name == _LAST[stage]:
            break
    return run_passes(module, passes)


def normal_form(module: Module) -> list[str]:
    """A module as lines, one for each op: name, operands, types, and the attributes that matter here.

    Ops and values are numbered in order, so that two equal modules have equal lines whatever their names are.
    """
    lines: list[str] = []
    on = _OnMeshes({name: str(mesh) for name, mesh in module_meshes(module.root).items()})
    for function in functions(module.root):
        entries = [function.attrs.get(name) or () for name in ("arg_attrs", "res_attrs")]
        shardings = [[on(str(entry.get(SHARDING, ""))) for entry in found] for found in entries]
        lines.append(f"{function.attrs['sym_name']} {[found if any(found) else [] for found in shardings]}")
        lines += _lines(function, {}, 1, on)
    return lines


class _OnMeshes:
    """Shardings as texts, with the devices of their meshes in place of names, which XLA makes up if there are several.

    Several meshes may have the same devices along the same axes, and what splits nothing is on any of them.
    """

    def __init__(self, meshes: dict[str, str]) -> None:
        self._meshes = meshes

    def __call__(self, text: str) -> str:
        return re.sub(r'<@([\w.]+|"[^"]*"), ([^@]*?)>(?=, <|\]|$)', self._one, text)

    def _one(self, found: re.Match[str]) -> str:
        if '"' not in found[2]:
            return f"<{found[2]}>"
        return f"<{self._meshes.get(found[1], found[1])}, {found[2]}>"


def _lines(holder: Op, numbers: dict[Value, int], depth: int, on: _OnMeshes) -> Iterator[str]:
    indent = "  " * depth
    for region in holder.regions:
        for block in region.blocks:
            for arg in block.args:
                numbers[arg] = len(numbers)
            yield indent + "^ " + ", ".join(f"%{numbers[arg]}: {arg.type}" for arg in block.args)
            for op in block:
                operands = ", ".join(f"%{numbers.get(value, '?')}" for value in op.operands)
                for result in op.results:
                    numbers[result] = len(numbers)
                results = ", ".join(f"%{numbers[result]}: {result.type}" for result in op.results)
                name = _NAMES.get(op.name, op.name)
                yield f"{indent}{results} = {name}({operands}) {_attributes(op, name, on)}"
                yield from _lines(op, numbers, depth + 1, on)


def _attributes(op: Op, name: str, on: _OnMeshes) -> str:
    found = []
    for key, attr in sorted(op.attrs.items()):
        if key == SHARDING or (
            key in _SHAPING and not (name == "stablehlo.dot_general" and key == "dimension_numbers")
        ):
            text = ", ".join(map(on, map(str, attr))) if isinstance(attr, tuple) else on(str(attr))
            if text == "array<i64>" and name == "stablehlo.reduce_window":
                continue  # the strides of a scalar's window: XLA writes that there are none
            found.append(f"{key}={re.sub(r'@(maximal_mesh|single_device)_', '@one_device_', text)}")
    return " ".join(found)


def parsed_dump(dump: str) -> list[str]:
    """A dump of XLA's as lines."""
    return normal_form(Module.parse(dump, allow_unregistered_dialects=True))


def difference(ours: Module, dump: str, limit: int = 30) -> str:
    """The lines in which a module of ours and a dump of XLA's differ, or nothing."""
    theirs = parsed_dump(dump)
    found = normal_form(ours)
    if found == theirs:
        return ""
    lines = difflib.unified_diff(theirs, found, "XLA", "ours", n=1, lineterm="")
    return "\n".join(line[:300] for _, line in zip(range(limit), lines))
