"""The overview of a page: the mesh, the bytes, and the collectives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pyshardy.core.folding import fold_names
from pyshardy.costing.arguments import argument_category
from pyshardy.explain.collectives import ExplainedCollectives
from pyshardy.report.diagnosis import Diagnosis, worth_text
from pyshardy.report.page.material import PageInput
from pyshardy.report.summary import Summary, TensorRow, mesh_to_json


def overview(material: PageInput) -> dict[str, Any]:
    """Totals of a result."""
    summary, traffic = material.summary, material.traffic
    memory = material.memory
    return {
        "title": summary.title,
        "source": material.source,
        "devices": summary.device_count,
        "meshes": [{"name": name, **mesh_to_json(mesh)} for name, mesh in summary.meshes],
        "inputs": _side(summary.inputs),
        "outputs": _side(summary.outputs),
        "kinds": _kinds(summary),
        "sharded": [summary.tensors_sharded, summary.tensors_sharded + summary.tensors_replicated],
        "sent": traffic.sent_bytes_per_device,
        "is_lower_bound": traffic.is_lower_bound,
        "peak": None if memory is None else {"bytes": memory.bytes, "categories": list(map(list, memory.categories))},
        "warnings": list(summary.warnings),
        "cost": [list(pair) for pair in material.cost],
        "findings": None if material.diagnosis is None else _findings(material.diagnosis),
    }


def _findings(found: Diagnosis) -> list[list[str]]:
    """Per finding: what is wrong, why, what to do, what that saves, and the patch."""
    return [[one.what, one.why, one.advice, worth_text(one, found.limit), one.patch] for one in found.findings]


def _side(rows: Sequence[TensorRow]) -> list[int]:
    """The count of tensors, and bytes: global, as annotated, and as propagated."""
    columns = ("bytes_total", "bytes_per_device_before", "bytes_per_device")
    return [len(rows), *[sum(getattr(row, name) for row in rows) for name in columns]]


def _kinds(summary: Summary) -> list[list[Any]]:
    """Per kind of input: name, count, global bytes and bytes per device."""
    found: dict[str, list[Any]] = {}
    for row in summary.inputs:
        kind = argument_category(row.name)
        total = found.setdefault(kind, [kind, 0, 0, 0])
        total[1] += 1
        total[2] += row.bytes_total
        total[3] += row.bytes_per_device
    return sorted(found.values(), key=lambda total: -total[3])


def ports(rows: Sequence[TensorRow], values: Sequence[int]) -> list[list[Any]]:
    """Inputs or outputs, folded: name, kind, origin of the sharding, and the values.

    Args:
        rows: The inputs or outputs.
        values: The value of each.
    """
    keys = [(row.shape, row.dtype, str(row.sharding), row.given_by) for row in rows]
    return [
        [
            found.name,
            argument_category(rows[found.members[0]].name),
            rows[found.members[0]].given_by,
            [values[member] for member in found.members],
        ]
        for found in fold_names((row.name, key) for row, key in zip(rows, keys))
    ]


def collectives(found: Sequence[ExplainedCollectives], hints: dict[str, str]) -> list[dict[str, Any]]:
    """The distinct collectives, with their sentences, hints, and the ops that need them."""
    return [_collective(one, hints.get(one.story.reason)) for one in found]


def _collective(found: ExplainedCollectives, hint: str | None) -> dict[str, Any]:
    story = found.story
    ops = [cause.op for cause in found.causes if cause.op is not None]
    values = [cause.operand for cause in found.causes if cause.operand is not None]
    return {
        "kind": story.kind,
        "axes": None if story.axes is None else list(story.axes),
        "bytes": story.sent_bytes_per_device,
        "times": story.times,
        "at_least": story.is_lower_bound,
        "text": story.text,
        "hint": hint,
        "ops": list(dict.fromkeys(ops)),
        "values": list(dict.fromkeys(values)),
    }
