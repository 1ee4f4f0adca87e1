"""Propagates edits through the part of a program that they reach, and prepares the result for later passes.

Source: docs/semantics/propagation.md#running-again-after-an-edit
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pyshardy.core.sharding import TensorSharding
from pyshardy.frontend.annotate import Checked
from pyshardy.ir.module import Module
from pyshardy.propagation.program import Program
from pyshardy.propagation.rerun import LEAST_RERUN, PART, rerun
from pyshardy.propagation.run import propagate_program
from pyshardy.results.edit_base import INPUT, Base, EditState, Reach, ShardingsByValue
from pyshardy.results.sharded_program import GivenShardings, Imported, prepared
from pyshardy.transforms.context import KnownPropagation


def _edited_program(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> Program:
    """The input of propagation with other annotations."""
    shardings = list(base.program.shardings)
    for value, sharding in _changes(base, annotations).items():
        shardings[value] = sharding
    return replace(base.program, shardings=tuple(shardings))


def _changes(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> dict[int, TensorSharding | None]:
    options, meshes = base.sharded.options, base.meshes
    given = {base.values[key]: prepared(one, options, meshes) for key, (_, _, one) in annotations.items()}
    return {value: new for value, new in given.items() if new is not base.program.shardings[value]}


def propagate_edits(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> tuple[ShardingsByValue, Reach]:
    """The state after edits that do not affect the steps before propagation.

    Raises:
        StepError: An annotation leads to an invalid sharding.
    """
    changes, run = _changes(base, annotations), base.run
    count = len(base.program.kind_of)
    found = rerun(base.timeline, changes, max(LEAST_RERUN, count // PART))
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
    given = [(kind, index, sharding) for (kind, index), (_, _, sharding) in state.annotations.items()]
    imported = base.imported.annotated(given)
    run = base.run.propagated
    found = [state.shardings.get(value, sharding) for value, sharding in enumerate(run.shardings)]
    options = base.sharded.options
    if not (options.trace or options.origins or options.edges):  # steps are those of a run over everything
        assert imported.context is not None
        propagated = replace(run, shardings=tuple(found), recording=None)
        imported.context.known = KnownPropagation(_edited_program(base, state.annotations), propagated)
    return replace(imported, module=before, annotations=_annotations(base, state.annotations))


def _annotations(base: Base, annotations: Mapping[tuple[str, int], Checked]) -> GivenShardings:
    given = base.sharded.annotations
    inputs, outputs = list(given.inputs), list(given.outputs)
    for (kind, index), (_, _, sharding) in annotations.items():
        (inputs if kind == INPUT else outputs)[index] = sharding
    return GivenShardings(tuple(inputs), tuple(outputs), given.meshes)
