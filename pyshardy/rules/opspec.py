"""What a sharding rule depends on: an op's name, the shapes of its operands and results, and a few facts. No MLIR."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Final

from pyshardy.core.intern import Interned
from pyshardy.errors import InvalidRuleError
from pyshardy.rules.rule import Shape

_REQUIRED: Final = object()


class OpSpec(Interned):
    """The description of one op; its rule is a function of it.

    Args:
        name: The name of the op, such as "stablehlo.dot_general".
        operand_shapes: Shape of every operand; None for a value without dimensions, -1 for a dynamic dimension.
        result_shapes: The same for every result.
        attributes: The attributes that the rule of this op reads, under their MLIR names, decoded to integers, strings,
            booleans, tuples and dimension numbers; and facts about the surroundings of the op.

    >>> spec = OpSpec("stablehlo.transpose", [(6, 5)], [(5, 6)], {"permutation": (1, 0)})
    >>> spec.attr("permutation"), spec.operand(0)
    ((1, 0), (6, 5))
    >>> spec is OpSpec("stablehlo.transpose", [(6, 5)], [(5, 6)], [("permutation", (1, 0))])
    True
    """

    __slots__ = ("name", "operand_shapes", "result_shapes", "attributes")

    name: str
    operand_shapes: tuple[Shape, ...]
    result_shapes: tuple[Shape, ...]
    attributes: tuple[tuple[str, Hashable], ...]

    def __new__(  # noqa: D102 (the class docstring says it)
        cls,
        name: str,
        operand_shapes: Iterable[Shape],
        result_shapes: Iterable[Shape],
        attributes: Mapping[str, Hashable] | Iterable[tuple[str, Hashable]] = (),
    ) -> OpSpec:
        try:
            facts = sorted(dict(attributes).items(), key=lambda item: item[0])
            operands, results = _as_shapes(operand_shapes), _as_shapes(result_shapes)
            _check_types(name, (*operands, *results))
            return cls._make((name, operands, results, tuple(facts)))
        except (TypeError, ValueError) as error:
            needed = "lists of shapes, and attributes by name"
            raise InvalidRuleError("describing an op", got=f"values of other types ({error})", needed=needed) from error

    def __str__(self) -> str:
        operands = ", ".join(map(_format_shape, self.operand_shapes))
        results = ", ".join(map(_format_shape, self.result_shapes))
        name = self.name if self.target is None else f"{self.name} @{self.target}"
        return f"{name}({operands}) -> ({results})"

    def __repr__(self) -> str:
        facts = "".join(f", {name}={value}" for name, value in self.attributes)
        return f"OpSpec({self}{facts})"

    def attr(self, name: str, default: Any = _REQUIRED) -> Any:
        """The value of an attribute, or `default`; without a default, a missing attribute is an `InvalidRuleError`."""
        for found, value in self.attributes:
            if found == name:
                return value
        if default is _REQUIRED:
            raise InvalidRuleError(
                f"reading attribute {name!r} of {self}",
                got=f"only {', '.join(found for found, _ in self.attributes) or 'an op without attributes'}",
                needed="the attributes that its sharding rule depends on",
            )
        return default

    def operand(self, index: int) -> tuple[int, ...]:
        """Shape of an operand; () if it has no dimensions."""
        return self.operand_shapes[index] or ()

    def result(self, index: int) -> tuple[int, ...]:
        """Shape of a result; () if it has no dimensions."""
        return self.result_shapes[index] or ()

    @property
    def target(self) -> str | None:
        """The function that a `stablehlo.custom_call` calls; None for every other op."""
        return self.attr("call_target_name", "") if self.name == "stablehlo.custom_call" else None

    @property
    def key(self) -> str:
        """The key of the rule of this op: its name; `@target` for a custom call; `composite:name` for a composite.

        >>> OpSpec("stablehlo.custom_call", [], [], {"call_target_name": "f"}).key
        '@f'
        """
        if self.name == "stablehlo.custom_call":
            return f"@{self.target}"
        return f"composite:{self.attr('name', '')}" if self.name == "stablehlo.composite" else self.name

    @property
    def is_static(self) -> bool:
        """Whether no dimension is dynamic."""
        for shape in self.operand_shapes + self.result_shapes:  # noqa: SIM110 (faster)
            if shape and -1 in shape:
                return False
        return True


def op_names(prefix: str, names: str) -> list[str]:
    """The words of `names`, each with `prefix` before it, as the tables of ops write them.

    >>> op_names("stablehlo.", "abs add")
    ['stablehlo.abs', 'stablehlo.add']
    """
    return [prefix + name for name in names.split()]


def _as_shapes(shapes: Iterable[Shape]) -> tuple[Shape, ...]:
    return tuple(None if shape is None else tuple(shape) for shape in shapes)


def _check_types(name: object, shapes: tuple[Shape, ...]) -> None:
    """Check what users give; the types of an op in a module are right."""
    sizes = [size for shape in shapes if shape is not None for size in shape]
    if not isinstance(name, str) or not all(isinstance(size, int) for size in sizes):
        raise TypeError("names are text, and sizes integers")


def _format_shape(shape: Shape) -> str:
    if shape is None:
        return "no shape"
    return "x".join("?" if size < 0 else str(size) for size in shape) or "scalar"
