"""Propagates edits through the part of a program that they reach, and prepares the result for later passes.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.frontend.annotate import Checked, store_annotation
from pyshardy.graph.program import Program
from pyshardy.ir.copy_module import copy_module
from pyshardy.ir.diagnostics import Diagnostics
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.pause_gc import pause_gc
from pyshardy.passes.importing.remove_size_one_axes import remove_size_one_axes
from pyshardy.propagation.rerun import LEAST, PART, rerun
from pyshardy.propagation.run import propagate_program
from pyshardy.results.edit_base import INPUT, Base, EditState, Reach, Shardings
from pyshardy.results.sharded_program import Annotations, Imported
from pyshardy.results.stopwatch import Stopwatch
from pyshardy.transforms.context import Known, PassContext


def _prepared(base: Base, sharding: TensorSharding | None) -> TensorSharding | None:
    """An annotation in the form that propagation reads."""
    if sharding is None:
        return None
    if not base.sharded.options.user_priorities:
        sharding = sharding.without_priorities()
    if any(size == 1 for mesh in base.meshes.values() for _, size in mesh.axes):
        sharding = remove_size_one_axes(sharding, mesh_of(sharding, base.meshes))
    return sharding


def _edited_program(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> Program:
    """The input of propagation with other annotations."""
    shardings = list(base.program.shardings)
    for value, sharding in _changes(base, annotations).items():
        shardings[value] = sharding
    return replace(base.program, shardings=tuple(shardings))


def _changes(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> dict[int, TensorSharding | None]:
    given = {base.values[key]: _prepared(base, sharding) for key, (_, _, sharding) in annotations.items()}
    return {value: new for value, new in given.items() if new is not base.program.shardings[value]}


def propagate_edits(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> tuple[Shardings, Reach]:
    """The state after edits that do not affect the steps before propagation.

    Raises:
        StepError: An annotation leads to an invalid sharding.
    """
    changes, run = _changes(base, annotations), base.run
    count = len(base.program.kind_of)
    found = rerun(base.timeline, changes, max(LEAST, count // PART))
    if found is not None:
        return found.shardings, Reach(found.ops, count)
    why = "the edit reaches most of them"
    after = propagate_program(_edited_program(base, annotations), base.sharded.applied).shardings
    pairs = enumerate(zip(after, run.propagated.shardings))
    return {value: new for value, (new, old) in pairs if new is not old}, Reach(count, count, why)


def import_edited(state: EditState, before: Module) -> Imported:
    """The input of propagation with edits, and the result of propagation.

    Args:
        state: The edits.
        before: The program as a user would give it with these annotations.
    """
    base = state.base
    imported = base.imported
    with pause_gc(), before.context:
        root = copy_module(imported.root)
        main = main_function(root)
        for (kind, index), (_, _, sharding) in state.annotations.items():
            store_annotation(main, kind, index, _prepared(base, sharding))
    run = base.run.propagated
    found = [state.shardings.get(value, sharding) for value, sharding in enumerate(run.shardings)]
    context = PassContext(root, before.attrs, OpSpecReader(), Diagnostics(list(imported.diagnostics.messages)))
    if not base.sharded.options.trace:  # steps are those of a run over everything
        propagated = replace(run, shardings=tuple(found), recording=None)
        context.known = Known(_edited_program(base, state.annotations), propagated)
    return replace(
        imported,
        module=before,
        annotations=_annotations(base, state.annotations),
        root=root,
        context=context,
        diagnostics=context.diagnostics,
        watch=Stopwatch(),
    )


def _annotations(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> Annotations:
    given = base.sharded.annotations
    inputs, outputs = list(given.inputs), list(given.outputs)
    for (kind, index), (_, _, sharding) in annotations.items():
        (inputs if kind == INPUT else outputs)[index] = sharding
    return Annotations(tuple(inputs), tuple(outputs), given.meshes)
