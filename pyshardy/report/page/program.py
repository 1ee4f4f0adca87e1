"""Ops and values of a program in columns."""

from __future__ import annotations

from typing import Any

from pyshardy.explain.names import Names, short_label
from pyshardy.propagation.lists import Lists
from pyshardy.propagation.program import NO_VALUE
from pyshardy.report.page.material import PageInput
from pyshardy.report.page.tables import Tables
from pyshardy.source.places import short_path

HIDDEN = frozenset(
    (
        "func.func", "func.return", "sdy.constant", "sdy.data_flow_edge", "sdy.func_data_flow_edge", "sdy.mesh",
        "sdy.return", "stablehlo.constant", "stablehlo.return",
    )
)  # fmt: skip
"""Ops that are not part of the user's program."""


def hidden_ops(material: PageInput) -> list[int]:
    """The ops that lists and searches omit."""
    subject = material.why.subject
    program = subject.program
    kinds = [kind.name in HIDDEN for kind in program.kinds]
    return [op for op in range(subject.op_count) if kinds[program.kind_of[op]] or op in subject.erased]


def ops_table(material: PageInput, tables: Tables) -> dict[str, Any]:
    """All ops: kind, name, scope, place, operands and results, each as a column."""
    subject, names = material.why.subject, Names(material.why.subject)
    program = subject.program
    kinds = [tables.text(kind.name) for kind in program.kinds]
    columns: dict[str, list[int]] = {name: [] for name in ("short", "text", "scope", "file", "line")}
    for op in range(subject.op_count):
        label = subject.labels[op]
        columns["short"].append(tables.text(short_label(label)))
        columns["text"].append(tables.text(names.op(op)))
        columns["scope"].append(tables.text(label.scope or ""))
        columns["file"].append(tables.text(short_path(label.file) if label.file else ""))
        columns["line"].append(label.line)
    return {
        "kind": [kinds[number] for number in program.kind_of],
        **columns,
        "operands": _flat(program.operands),
        "results": _flat(program.results),
        "hidden": hidden_ops(material),
    }


def _flat(lists: Lists) -> list[list[int]]:
    """Lists as their lengths and their numbers."""
    starts = list(lists.starts)
    return [[after - before for before, after in zip(starts, starts[1:])], list(lists.numbers)]


def values_table(material: PageInput, tables: Tables) -> dict[str, Any]:
    """All values: tensor, name, defining op, and sharding holder, each as a column.

    `holder` is -1 if there is no explanation per dimension.
    """
    subject, names = material.why.subject, Names(material.why.subject)
    program = subject.program
    columns: dict[str, list[int]] = {name: [] for name in ("tensor", "name", "holder")}
    found: list[list[int]] = []
    for value, shape in enumerate(program.shapes):
        final, own = subject.final_sharding(value), subject.sharding(value)
        dtype = subject.dtypes[value] if value < len(subject.dtypes) else ""
        columns["tensor"].append(tables.tensor(shape, dtype, subject.size_in_bytes(value), final))
        columns["name"].append(tables.text(names.value(value)))
        has_dims = all(one is None or one.rank == len(shape or ()) for one in (final, own))
        holder = subject.holder(value)
        columns["holder"].append(holder if has_dims and holder != NO_VALUE else -1)
        if own is not final and has_dims:
            found.append([value, tables.sharding(own)])
    return {
        **columns,
        "owner": list(program.owners),
        "found": found,
        "names": [[value, tables.text(name)] for value, name in subject.names.items()],
        "given": sorted(subject.given),
        "returned": list(subject.returned.items()),
    }
