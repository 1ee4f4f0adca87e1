"""The constraints of a plan: the value, its place in the source, its sharding, and the reason."""

from __future__ import annotations

from dataclasses import dataclass

from pyshardy.core.spec import PartitionSpec, format_spec
from pyshardy.core.text import format_bytes
from pyshardy.report.cost import format_duration
from pyshardy.source.assignments import SourceSpan
from pyshardy.source.places import format_place
from pyshardy.source.values import unique_name, value_text


@dataclass(frozen=True, slots=True)
class PlanConstraint:
    """The sharding of an intermediate value, for `jax.lax.with_sharding_constraint`.

    Attributes:
        name: The variable that the value is assigned to; "" if it is returned, or if the source cannot be read.
        function: The function whose line makes it.
        file: The source file.
        line: The first line of the expression that makes it, from 1.
        column: The column of its beginning in that line, from 0.
        end_line: The last line of the expression.
        end_column: The column after its end in that line.
        shape: Sizes of the dimensions.
        element: MLIR's text of the element type.
        axes: The mesh axes of each dimension, major to minor.
        count: How many values the line makes, such as one of every layer.
        seconds: How much longer a step takes without it.
        bytes: How much more memory a device needs without it; negative if it needs less.
    """

    name: str
    function: str
    file: str
    line: int
    column: int
    end_line: int
    end_column: int
    shape: tuple[int, ...]
    element: str
    axes: tuple[tuple[str, ...], ...]
    count: int
    seconds: float
    bytes: float

    @property
    def span(self) -> SourceSpan:
        """The expression that makes the value."""
        return SourceSpan(self.file, self.line, self.column, self.end_line, self.end_column)

    @property
    def spec(self) -> PartitionSpec:
        """The sharding, as JAX writes it."""
        return PartitionSpec(*self.axes)

    @property
    def place(self) -> str:
        """The source line, as "model.py:12"."""
        return format_place((self.file, self.line, self.column))

    @property
    def value(self) -> str:
        """The value in words: "`x` of `block`"."""
        return value_text(self.name, self.function)

    @property
    def key(self) -> str:
        """The name of the value in the annotations of a partitioner: "`x` of `block` at model.py:12:8-20"."""
        return unique_name(self.value, self.place, (self.column, self.end_column))

    @property
    def why(self) -> str:
        """The gain, in words. A compiler may have chosen a constraint that estimates alone would leave out.

        >>> PlanConstraint("x", "block", "f.py", 3, 8, 3, 20, (8, 4), "f32", (("data",), ()), 2, 0.01, -1024.0).why
        'without it a step takes 10.0 ms longer, and a device needs 1.0 KiB less'
        """
        by = "by estimates alone, " if self.seconds < 0 else ""
        return f"{by}without it {worth(self.seconds, self.bytes)}"

    @property
    def text(self) -> str:
        """The constraint as a line of source.

        >>> PlanConstraint("x", "", "f.py", 3, 8, 3, 20, (8, 4), "f32", (("data",), ()), 2, 0.01, 0.0).text
        "x = jax.lax.with_sharding_constraint(x, P('data'))"
        """
        spec = format_spec(self.axes)
        if self.name:
            return f"{self.name} = jax.lax.with_sharding_constraint({self.name}, {spec})"
        return f"jax.lax.with_sharding_constraint(..., {spec}) around columns {self.column} to {self.end_column}"


def worth(seconds: float, bytes: float) -> str:
    """The cost of leaving out a decision, in words.

    Args:
        seconds: How much longer a step takes.
        bytes: How much more memory a device needs.

    >>> worth(0.012, -1024.0)
    'a step takes 12.0 ms longer, and a device needs 1.0 KiB less'
    """
    time = f"a step takes {format_duration(abs(seconds))} {'longer' if seconds >= 0 else 'less'}"
    return f"{time}, and a device needs {format_bytes(round(abs(bytes)))} {'more' if bytes >= 0 else 'less'}"
