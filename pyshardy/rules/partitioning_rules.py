"""Rules in the forms of JAX's `custom_partitioning`, `SdyShardingRule`s and callbacks, without importing JAX.

Source: docs/semantics/rules.md#rules-of-the-user
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pyshardy.errors import InvalidRuleError
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.rule import Shape

_BATCHING = "\u2026"
"""The value of JAX's `BATCHING`; it stands for leading dimensions, optionally with a number behind it."""
_ARGUMENTS_OF_CALLBACK = 3
_PAIR = 2
_SPECIAL_FACTORS = ("reduction", "need_replication", "permutation")


@dataclass(frozen=True, slots=True)
class ShapeOf:
    """A tensor as a callback gets it.

    Attributes:
        shape: Sizes of its dimensions.
    """

    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


def is_jax_rule(rule: Any) -> bool:
    """Whether this is an `SdyShardingRule`, or an object with its fields."""
    return hasattr(rule, "operand_mappings") and hasattr(rule, "result_mappings")


def is_callback(rule: Any) -> bool:
    """Whether this is a function of a mesh, the arguments and the result."""
    try:
        parameters = inspect.signature(rule).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    return len([one for one in positional if one.default is one.empty]) == _ARGUMENTS_OF_CALLBACK


def notation_of(rule: Any) -> tuple[str, dict[str, Any]]:
    """The einsum notation of an `SdyShardingRule`, and its options for `einsum_rule`.

    >>> from types import SimpleNamespace
    >>> rule = SimpleNamespace(operand_mappings=(("\u2026", "i", ("j", "k")),), result_mappings=(("\u2026", "i"),),
    ...                        factor_sizes={"j": 2}, reduction_factors=("j",))
    >>> notation_of(rule)[0]
    '... i (j k) -> ... i'
    """
    options = {name: tuple(getattr(rule, f"{name}_factors", ())) for name in _SPECIAL_FACTORS}
    text = f"{_values(rule.operand_mappings)} -> {_values(rule.result_mappings)}"
    return text, {**options, "sizes": dict(getattr(rule, "factor_sizes", {}))}


def split_answer(found: Any) -> tuple[Any, dict[str, Any]]:
    """The rule in the answer of a callback, and the options of `einsum_rule` that may come with a notation.

    >>> split_answer(("i k, k j -> i j", {"reduction_factors": ("k",), "i": 4}))
    ('i k, k j -> i j', {'reduction': ('k',), 'sizes': {'i': 4}})
    """
    if not (isinstance(found, (list, tuple)) and len(found) == _PAIR and isinstance(found[1], Mapping)):
        return found, {}
    sizes = dict(found[1])
    options: dict[str, Any] = {
        name: tuple(sizes.pop(f"{name}_factors")) for name in _SPECIAL_FACTORS if f"{name}_factors" in sizes
    }
    return found[0], options | {"sizes": sizes}


def _values(mappings: Iterable[Iterable[Any]]) -> str:
    return ", ".join(" ".join(_dim(dim) for dim in mapping) for mapping in mappings)


def _dim(dim: Any) -> str:
    if isinstance(dim, str):
        return dim.replace(_BATCHING, "...")
    return f"({' '.join(dim)})"


def call_rule(callback: Callable[..., Any], spec: OpSpec) -> Any:
    """The answer of a callback for an op, from lists of tensors as JAX passes them. Its mesh is None.

    Raises:
        InvalidRuleError: The callback fails.
    """
    try:
        return callback(None, [*map(_shape_of, spec.operand_shapes)], [*map(_shape_of, spec.result_shapes)])
    except Exception as error:
        raise InvalidRuleError(
            "calling the callback registered for the sharding rule",
            where=str(spec),
            got=f"{type(error).__name__}: {error}",
            needed="a notation, a rule of JAX, a Rule or None; the mesh is None, as a rule is for all meshes",
        ) from error


def _shape_of(shape: Shape) -> ShapeOf:
    return ShapeOf(tuple(shape or ()))
