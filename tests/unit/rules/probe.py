"""Short notation for the rule of an op: its name, its shapes as text, and its attributes."""

from __future__ import annotations

from typing import Any

from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Shape
from pyshardy.rules.table import rule_of


def spec(name: str, shapes: str, **attributes: Any) -> OpSpec:
    """The description of an op.

    Args:
        name: A name of StableHLO, a full name with its dialect, or `@target` for a custom call.
        shapes: Such as "6x10, () -> 6x10"; () is a scalar, ? a dynamic size, "token" a value without dimensions.
        attributes: What the rule reads.
    """
    operands, _, results = shapes.partition("->")
    if name.startswith("@"):
        attributes["call_target_name"] = name.removeprefix("@")
        name = "custom_call"
    full_name = name if "." in name else f"stablehlo.{name}"
    return OpSpec(full_name, _shapes(operands), _shapes(results), attributes)


def rule(name: str, shapes: str, conservative: bool = False, **attributes: Any) -> str | None:
    """The text of the rule of an op, without the angle brackets; None if it has none."""
    found = rule_of(spec(name, shapes, **attributes), conservative)
    return None if found is None else str(found)[1:-1]


def _shapes(text: str) -> list[Shape]:
    return [_shape(part.strip()) for part in text.split(",") if part.strip()]


def _shape(text: str) -> Shape:
    if text == "token":
        return None
    return () if text == "()" else tuple(-1 if size == "?" else int(size) for size in text.split("x"))
