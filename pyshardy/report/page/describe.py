"""A result as plain data for its page."""

from __future__ import annotations

from typing import Any

from pyshardy.explain.conflicts import mismatch_text
from pyshardy.explain.mismatches import mismatches
from pyshardy.explain.why import Why
from pyshardy.report.page.linked import linked_why
from pyshardy.report.page.material import PageInput
from pyshardy.report.page.overview import collectives, overview, ports
from pyshardy.report.page.program import ops_table, values_table
from pyshardy.report.page.stories import Stories
from pyshardy.report.page.tables import Tables
from pyshardy.report.page.tree import tree

PAGE_VERSION = 1
"""The version of the data. It grows when a key is removed or changes its meaning."""


def describe(material: PageInput) -> dict[str, Any]:
    """The data of a page; numbers in it refer to the tables `texts`, `axes`, `shardings` and `tensors`.

    Equal results give equal data.

    Args:
        material: The result.
    """
    why = linked_why(material.why.subject)
    tables = Tables(why.subject.program.meshes)
    stories = Stories(why, tables)
    values = values_table(material, tables)
    summary = material.summary
    found = {
        "version": PAGE_VERSION,
        "overview": overview(material),
        "run": material.run,
        "plan": material.plan,
        "ops": ops_table(material, tables),
        "values": values,
        "inputs": ports(summary.inputs, _numbers(why, [row.name for row in summary.inputs], is_input=True)),
        "outputs": ports(summary.outputs, _numbers(why, [row.name for row in summary.outputs], is_input=False)),
        "tree": tree(material, tables, values["tensor"]),
        "stories": stories.to_json(),
        "conflicts": _conflicts(why, stories),
        "collectives": collectives(material.found, dict(material.hints)),
    }
    return {**found, **tables.to_json()}


def _numbers(why: Why, names: list[str], is_input: bool) -> list[int]:
    """The values of inputs or outputs by their names; -1 if there is none."""
    subject = why.subject
    known = {name: value for value, name in subject.names.items() if (subject.main_result(value) is None) == is_input}
    return [known.get(name, -1) for name in names]


def _conflicts(why: Why, stories: Stories) -> list[list[int]]:
    """Per conflict, the largest first: op, number of the tensor, value, bytes sent per device, sentence."""
    found = sorted(mismatches(why), key=lambda one: (-one.bytes_per_device, one.op, one.tensor))
    return [
        [one.op, one.tensor, one.value, one.bytes_per_device, *stories.sentence(mismatch_text(why, one))]
        for one in found
    ]
