"""The intermediate values that can be constrained, by the names of variables and the lines of the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pyshardy.core.axes import Dims
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.nodes import Op
from pyshardy.ir.source_values import SourceValue, source_values
from pyshardy.source.assignments import SourceAssignment, SourceSpan, assignments, read_lines
from pyshardy.source.places import format_place
from pyshardy.source.values import ValueFact, value_text


class NamedValue(NamedTuple):
    """A value that can be constrained, and the variable it is assigned to."""

    value: SourceValue
    name: str

    @property
    def bytes(self) -> int:
        """Of all that it stands for, as a whole."""
        return known_bytes(self.value.shape, self.value.element) * len(self.value.made)

    @property
    def fact(self) -> ValueFact:
        """The value as a partitioner sees it."""
        value = self.value
        size = known_bytes(value.shape, value.element)
        place = format_place(value.span[:3])
        name = value_text(self.name, value.function)
        columns = value.span.column, value.span.end_column
        return ValueFact(name, place, columns, value.shape, value.element, size, value.count)


def named_values(root: Op) -> list[NamedValue]:
    """The values that statements assign or return; all values, for files that cannot be read.

    Args:
        root: The module.
    """
    known: dict[str, Mapping[SourceSpan, SourceAssignment] | None] = {}
    found = []
    for value in source_values(root):
        file = value.span.file
        if file not in known:
            lines = read_lines(file)
            known[file] = assignments(file, lines) if lines else None
        statements = known[file]
        if statements is None:
            found.append(NamedValue(value, ""))
        elif value.span in statements:
            found.append(NamedValue(value, statements[value.span].name))
    return found


def with_shardings(
    values: Sequence[NamedValue], chosen: Mapping[int, Dims], mesh: str
) -> list[tuple[SourceValue, TensorSharding]]:
    """The values that have constraints, each with its closed sharding.

    Args:
        values: All values.
        chosen: The axes of values, by position.
        mesh: The name of the mesh.
    """
    return [(values[place].value, sharding_of(dims, mesh)) for place, dims in sorted(chosen.items())]


def sharding_of(dims: Dims, mesh: str) -> TensorSharding:
    """The closed sharding with these axes."""
    return TensorSharding(mesh, [list(axes) for axes in dims])
