"""Decides whether edits of a propagated program affect the steps before propagation.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.annotate import Checked
from pyshardy.propagation.options import View
from pyshardy.results.edit_base import OUTPUT, Base


def why_import(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> str | None:
    """The reason why the steps before propagation must run again; None if the edits do not affect them."""
    options = base.sharded.applied
    if options.compiler:
        return "the compiler is asked again"
    if len(base.sharded.runs) != 1 or options.dump_directory or options.dedup_functions_fully:
        return "the options ask for it"
    if not base.knows_ports:
        return "inputs or outputs are not sharded as their values are"
    if len([mesh for mesh in base.meshes.values() if mesh.axes]) != 1:
        return "the program has several meshes"
    reason = _for_outputs(base, annotations)
    if reason is not None:
        return reason
    for key, (_, tensor, sharding) in annotations.items():
        reason = _for_annotation(base, base.values[key], (sharding, base.given(*key)))
        if reason is not None:
            return f"{tensor.name} {reason}"
    return None


def _for_outputs(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> str | None:
    """The reason why the steps before propagation depend on annotations of outputs, as they may in XLA's view."""
    before, view = base.sharded.annotations.outputs, base.sharded.applied.view
    after = [
        annotations[OUTPUT, index][2] if (OUTPUT, index) in annotations else one for index, one in enumerate(before)
    ]
    if view is View.STABLEHLO or any(before) == any(after):
        return None
    if len(before) > 1:
        return "the order of ops depends on whether any output is annotated"
    return "an output without annotation takes that of its op" if view.is_of_jit and any(before) else None


def _for_annotation(base: Base, value: int, shardings: Sequence[TensorSharding | None]) -> str | None:
    program = base.program
    for sharding in shardings:
        if sharding is None:
            continue
        name = sharding.mesh
        if not isinstance(name, str) or program.meshes.get(name) is not base.meshes[name]:
            return "is on a mesh that no other sharding uses"
    if program.holders[value] != value or any(value in group for group in program.groups):
        return "is in a sharding group"
    if base.sharded.applied.view.is_of_jit and [one.returned for one in program.main_results] == [value]:
        return "is the only output, to which XLA gives the annotation too"
    for user in program.users[value]:
        if program.kind(user).name.startswith(("sdy.", "func.call")):
            return f"is used by {program.kind(user).name}, which may take over its annotation"
        around = program.parents[user]
        while around >= 0:
            if program.kind(around).name == "stablehlo.while":
                return "is used inside a loop"
            around = program.parents[around]
    return None
