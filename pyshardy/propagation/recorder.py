"""Writing down what propagation does, for the trace.

Source: docs/semantics/propagation.md#what-a-step-records
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.propagation.step import StepInput, explain_step
from pyshardy.propagation.trace import GROUP, Step


def record_visit(
    trace: list[Step],
    op: int,
    tensors: Sequence[int],
    step: StepInput,
    shardings: Sequence[TensorSharding | None],
    meshes: Mapping[str, Mesh],
    user_priority: int,
    op_priority: int,
) -> None:
    """Append what a visit moves, even what writing the shardings drops.

    Args:
        trace: What happened so far.
        op: The number of the op, or `MAIN_RESULT`.
        tensors: The values that the tensors of the rule stand for.
        step: What is done.
        shardings: Those of the tensors before.
        meshes: The meshes by name.
        user_priority: The user priority of the round.
        op_priority: The op-priority round.
    """
    number = trace[-1].number + 1 if trace else 0
    for move in explain_step(step, shardings, meshes):
        trace.append(
            Step(
                number=number,
                op=op,
                source=None if move.source is None else tensors[move.source],
                target=tensors[move.target],
                source_tensor=move.source,
                target_tensor=move.target,
                dim=move.dim,
                factor=move.factor,
                axes=move.axes,
                is_kept=move.is_kept,
                direction=step.directions[move.factor],
                strategy=step.strategy,
                user_priority=user_priority,
                op_priority=op_priority,
            )
        )


def record_copy(trace: list[Step], value: int, member: int, sharding: TensorSharding) -> None:
    """Append that a member of a sharding group gets the sharding of another, as part of the last visit."""
    cause = trace[-1]
    for dim, dim_sharding in enumerate(sharding.dims):
        if dim_sharding.axes:
            trace.append(
                replace(
                    cause,
                    op=GROUP,
                    source=value,
                    target=member,
                    source_tensor=0,
                    target_tensor=1,
                    dim=dim,
                    factor=dim,
                    axes=dim_sharding.axes,
                    is_kept=True,
                )
            )
