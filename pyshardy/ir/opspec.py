"""The `OpSpec` of an op, on which its sharding rule depends, read from its node.

Only the attributes that the rule of an op reads are looked at, and each distinct MLIR attribute is decoded once. Three
ops look at their surroundings and turn what they find into plain facts: whether a `concatenate` joins slices, whether a
`scatter` combines by a plain function, whether an `X64Combine` feeds a random state.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from jaxlib.mlir import ir

from pyshardy.ir.blocks import Value
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.op import Op
from pyshardy.ir.strings import string_value
from pyshardy.rules.dimension_numbers import ConvolutionNumbers, DotNumbers, GatherNumbers
from pyshardy.rules.ops import OPS
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.user_rules import USER_RULES

_Facts = tuple[tuple[str, Hashable], ...]
_Decoder = Callable[[Any], Hashable]


class OpSpecReader:
    """Describes the ops of one module for the rule table; caches decoded attributes.

    It holds MLIR attributes, so it must not outlive the module's context.
    """

    def __init__(self) -> None:
        self._decoded: dict[Any, Hashable] = {}

    def spec(self, op: Op) -> OpSpec:
        """The current description of an op."""
        name = op.name
        fields = _FIELDS.get(name)
        shapes = tuple([value.type.shape for value in op.operands]), tuple([value.type.shape for value in op.results])
        spec = OpSpec._make((name, *shapes, () if fields is None else self._facts(op, fields)))
        if USER_RULES and spec.key in USER_RULES:
            return OpSpec(name, *shapes, self._all_attributes(op) | dict(spec.attributes))
        return spec

    def shape_key(self, op: Op, rule: object) -> Hashable:
        """A key that is equal for ops with equal descriptions and the same `rule`, cheaper than the description itself.

        None if the description depends on the surroundings of the op, or if users may look at all attributes.
        """
        name = op.name
        operands, results = op.operands, op.results
        fields = _KEY_FIELDS.get(name, _NO_FIELDS)
        if fields is None or USER_RULES:
            return None
        # The op keeps its attributes: as long as it lives, no other object has the same id.
        seen: Hashable = None
        if fields:
            attrs = op.attrs
            seen = tuple([id(attrs.get(field)) for field in fields])
        if len(results) == 1:
            result = results[0]
            if not operands:
                return name, rule, seen, result.type
            first = operands[0]
            if len(operands) == 1:
                return name, rule, seen, first.type, result.type
            if len(operands) == 2:
                second = operands[1]
                return name, rule, seen, first.type, second.type, result.type
        return name, rule, seen, len(results), *[value.type for value in operands], *[value.type for value in results]

    def _all_attributes(self, op: Op) -> dict[str, Hashable]:
        """Every attribute in plain form, for the functions that users register."""
        from pyshardy.ir.plain_attributes import plain_attribute  # few programs need it

        return {name: plain_attribute(attr) for name, attr in op.attrs.items() if isinstance(attr, ir.Attribute)}

    def _facts(self, op: Op, fields: dict[str, _Decoder]) -> _Facts:
        attrs, decoded = op.attrs, self._decoded
        facts: list[tuple[str, Hashable]] = []
        for name, decode in fields.items():
            attr = attrs.get(name)
            if attr is None:
                continue
            value = decoded.get(attr)
            if value is None:
                value = decoded[attr] = decode(attr)
            facts.append((name, value))
        look = CONTEXT_FACTS.get(op.name)
        if look is not None:
            facts += look(op)
        facts.sort(key=_name_of)
        return tuple(facts)


def _name_of(fact: tuple[str, Hashable]) -> str:
    return fact[0]


def _number(attr: Any) -> int | bool | str:
    found: int | bool | str = string_value(attr) if isinstance(attr, ir.StringAttr) else attr.value
    return found


def _numbers(attr: Any) -> tuple[int, ...]:
    return tuple(attr)


def _pairs(attr: Any) -> tuple[tuple[int, int], ...]:
    flat = iter(attr)
    return tuple(zip(flat, flat))


def _transpose_kind(attr: Any) -> str:
    kind: str = stablehlo.TransposeAttr(attr).value
    return kind


def _dot_numbers(attr: Any) -> DotNumbers:
    found = stablehlo.DotDimensionNumbers(attr)
    return DotNumbers(
        tuple(found.lhs_batching_dimensions),
        tuple(found.rhs_batching_dimensions),
        tuple(found.lhs_contracting_dimensions),
        tuple(found.rhs_contracting_dimensions),
    )


def _convolution_numbers(attr: Any) -> ConvolutionNumbers:
    found = stablehlo.ConvDimensionNumbers(attr)
    return ConvolutionNumbers(
        found.input_batch_dimension,
        found.input_feature_dimension,
        tuple(found.input_spatial_dimensions),
        found.kernel_input_feature_dimension,
        found.kernel_output_feature_dimension,
        tuple(found.kernel_spatial_dimensions),
        found.output_batch_dimension,
        found.output_feature_dimension,
        tuple(found.output_spatial_dimensions),
    )


def _gather_numbers(attr: Any) -> GatherNumbers:
    found = stablehlo.GatherDimensionNumbers(attr)
    return GatherNumbers(
        tuple(found.offset_dims),
        tuple(found.collapsed_slice_dims),
        tuple(found.operand_batching_dims),
        tuple(found.start_indices_batching_dims),
        found.index_vector_dim,
    )


def _scatter_numbers(attr: Any) -> GatherNumbers:
    found = stablehlo.ScatterDimensionNumbers(attr)
    return GatherNumbers(
        tuple(found.update_window_dims),
        tuple(found.inserted_window_dims),
        tuple(found.input_batching_dims),
        tuple(found.scatter_indices_batching_dims),
        found.index_vector_dim,
    )


def _origins(op: Op) -> _Facts:
    """Whether a concatenate joins only slices, or slices of a value with that value itself."""
    slices = [_slice_of(value) for value in op.operands]
    origins = {value if found is None else found.operands[0] for value, found in zip(op.operands, slices)}
    joins = None not in slices or (any(slices) and len(origins) == 1)
    return (("joins_slices", joins),)


def _slice_of(value: Value) -> Op | None:
    op = value.defining_op
    return op if op is not None and op.name == "stablehlo.slice" else None


def _combiner(op: Op) -> _Facts:
    return (("plain_combiner", _has_plain_combiner(op)),)


_PLAIN = frozenset(f"stablehlo.{name}" for name in ("add", "multiply", "maximum", "minimum"))
_PLAIN_OF_BOOLEANS = _PLAIN | {"stablehlo.and", "stablehlo.or"}


def _has_plain_combiner(op: Op) -> bool:
    """Whether a scatter returns, for each input, the same plain function of the old and the new value."""
    block = op.region.block
    returned = block.terminator.operands
    args, count = block.args, len(returned)
    if len(args) != 2 * count:
        return False
    names = set()
    for index, value in enumerate(returned):
        combined = value.defining_op
        if combined is None or len(combined.operands) != 2:
            return False
        plain = _PLAIN_OF_BOOLEANS if value.type.element == "i1" else _PLAIN
        if combined.name not in plain or set(combined.operands) != {args[index], args[index + count]}:
            return False
        names.add(combined.name)
    return len(names) == 1


def _random_state(op: Op) -> _Facts:
    if string_value(op.attrs["call_target_name"]) != "X64Combine":
        return ()
    feeds = any(user.name == "stablehlo.rng_bit_generator" for result in op.results for user, _ in result.uses)
    return (("feeds_rng", feeds),)


DECODERS: dict[str, _Decoder] = {
    "convolution_numbers": _convolution_numbers,
    "dot_numbers": _dot_numbers,
    "gather_numbers": _gather_numbers,
    "number": _number,
    "numbers": _numbers,
    "pairs": _pairs,
    "scatter_numbers": _scatter_numbers,
    "transpose_kind": _transpose_kind,
}
"""The decoders of attributes, by the names that the trait `attributes` uses."""
CONTEXT_READERS: dict[str, Callable[[Op], _Facts]] = {
    "combiner": _combiner,
    "origins": _origins,
    "random_state": _random_state,
}
"""The functions that read facts from the context of an op, by the names that the trait `context_facts` uses."""

_FIELDS: dict[str, dict[str, _Decoder]] = {
    op: {name: DECODERS[decoder] for name, decoder in traits.attributes.items()}
    for op, traits in OPS.items()
    if traits.attributes
}
"""Per op, the attributes that its rule reads."""
CONTEXT_FACTS: dict[str, Callable[[Op], _Facts]] = {
    op: CONTEXT_READERS[traits.context_facts] for op, traits in OPS.items() if traits.context_facts
}
"""Per op whose rule depends on its context or on its regions, the function that reads these facts."""

_NO_FIELDS: tuple[str, ...] = ()
_KEY_FIELDS = {**{name: tuple(fields) for name, fields in _FIELDS.items()}, **dict.fromkeys(CONTEXT_FACTS)}
"""Per op, the attributes that its rule reads; None for ops whose rule depends on more."""
