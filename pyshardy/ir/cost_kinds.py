"""Reads what the cost of an op depends on: its tensors, and the attributes that matter."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any

from pyshardy.costing.program import (
    IS_PRECISE,
    MATRIX_UNIT_OPS,
    PAIRS,
    RAGGED_NUMBERS,
    CostKind,
    CostTensor,
    RaggedNumbers,
)
from pyshardy.ir.constants import splat_number
from pyshardy.ir.dialects import stablehlo
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.functions import CALL
from pyshardy.ir.kernel_facts import kernel_facts
from pyshardy.ir.nodes import Op, ValueType
from pyshardy.ir.opspec import CONTEXT_FACTS, OpSpecReader
from pyshardy.ir.plain_attributes import plain_attribute
from pyshardy.ir.traffic import is_collective
from pyshardy.ir.trip_counts import LOOP
from pyshardy.rules.properties import CUSTOM_CALL, ELEMENTWISE

WITH_REGIONS = frozenset((LOOP, "stablehlo.case", "stablehlo.if"))
"""Ops whose regions run as they stand; the regions of other ops say how to combine two elements."""
RUN_ONCE = frozenset(("sdy.manual_computation", "sdy.named_computation", "stablehlo.async_start"))
"""Ops whose only region runs as if it stood in place of the op."""
_EXTRA = {
    "stablehlo.convolution": ("lhs_dilation", "padding", "rhs_dilation", "window_strides"),
    "stablehlo.constant": (),
    "sdy.constant": (),
    "stablehlo.rng_bit_generator": ("rng_algorithm",),
    "stablehlo.reduce_window": ("base_dilations", "window_dilations"),
    "stablehlo.gather": ("slice_sizes",),
    "stablehlo.composite": (),
    **dict.fromkeys(("chlo.ragged_dot", "mhlo.ragged_dot"), (RAGGED_NUMBERS,)),
}
"""Attributes that a cost depends on, besides those that the rule of an op reads."""
_RAGGED_DIMS = re.compile(r"lhs_(contracting|ragged)_dimensions = \[([\d, ]+)\]")


class SharedKinds:
    """What the costs of ops depend on. Equal ops have one kind, in all modules of one context that share this.

    It holds MLIR attributes, so it must not outlive the context.
    """

    def __init__(self) -> None:
        self._specs = OpSpecReader()
        self._of_type: dict[ValueType, CostTensor] = {}
        self._tensors: dict[CostTensor, CostTensor] = {}
        self._kinds: dict[Hashable, CostKind] = {}
        self._of_node: dict[Hashable, CostKind] = {}
        """The same kinds by what is quicker to read of a node, for nodes that this describes in full."""
        self._decoded: dict[Any, Hashable] = {}
        self._units: dict[Any, int | None] = {}

    def tensor(self, type: ValueType) -> CostTensor:
        """The shape and the bytes of a type."""
        found = self._of_type.get(type)
        if found is None:
            tensor = CostTensor(type.shape, type.element, known_bytes(type.shape, type.element))
            found = self._of_type[type] = self._tensors.setdefault(tensor, tensor)
        return found

    def kind(self, node: Op) -> CostKind:
        """The properties of an op that its cost depends on."""
        attributes = self._attributes(node)
        if attributes is None or node.regions or node.name in CONTEXT_FACTS:
            return self._new_kind(node, attributes)
        operands = tuple([value.type for value in node.operands])
        key = (node.name, attributes, operands, tuple([value.type for value in node.results]))
        found = self._of_node.get(key)
        if found is None:
            found = self._of_node[key] = self._new_kind(node, attributes)
        return found

    def _new_kind(self, node: Op, attributes: Hashable) -> CostKind:
        spec = self._specs.spec(node)
        operands = tuple([self.tensor(value.type) for value in node.operands])
        results = tuple([self.tensor(value.type) for value in node.results])
        extra = self._extra(node)
        key = (spec, tuple(map(id, operands)), tuple(map(id, results)), extra, attributes)
        found = self._kinds.get(key)
        if found is None:
            facts = tuple(sorted({**dict(spec.attributes), **dict(extra)}.items()))
            found = self._kinds[key] = CostKind(node.name, operands, results, facts)
        return found

    def _attributes(self, node: Op) -> Hashable:
        """All attributes of an op, which tell it from others of its name; none for calls and collectives."""
        if node.name == CALL or is_collective(node):
            return None
        return tuple(node.attrs.items())

    def _extra(self, node: Op) -> tuple[tuple[str, Hashable], ...]:
        names = _EXTRA.get(node.name, ())
        found: list[tuple[str, Hashable]] = [
            (name, self._decode(name, node.attrs[name])) for name in names if name in node.attrs
        ]
        if node.name in ("stablehlo.constant", "sdy.constant"):
            found.append(("is_splat", bool(getattr(node.attrs.get("value"), "is_splat", False))))
            found.append(("unit", self._unit(node.attrs.get("value"))))
        elif node.regions and node.name not in WITH_REGIONS and node.name not in RUN_ONCE:
            found.append(("body", _body_names(node)))
        elif node.name == CUSTOM_CALL:
            found += kernel_facts(node)
        elif node.name == "stablehlo.collective_permute":
            found.append((PAIRS, self._decode(PAIRS, node.attrs[PAIRS])))
        elif node.name in MATRIX_UNIT_OPS and _is_precise(node):
            found.append((IS_PRECISE, True))
        return tuple(found)

    def _unit(self, attr: Any) -> int | None:
        """0 or 1 if a constant is that everywhere."""
        if attr not in self._units:
            number = splat_number(attr)
            self._units[attr] = int(number) if number is not None and number in (0, 1) else None
        return self._units[attr]

    def _decode(self, name: str, attr: Any) -> Hashable:
        if attr not in self._decoded:
            if name == "padding":
                numbers = [int(number) for number in attr]
                self._decoded[attr] = tuple(zip(numbers[::2], numbers[1::2]))
            elif name == RAGGED_NUMBERS:
                self._decoded[attr] = _ragged_numbers(str(attr))
            else:
                self._decoded[attr] = plain_attribute(attr)
        return self._decoded[attr]


def _is_precise(product: Op) -> bool:
    """Whether a product asks for more than the default precision."""
    config = product.attrs.get("precision_config")
    return "algorithm" in product.attrs or any(stablehlo.PrecisionAttr(one).value != "DEFAULT" for one in config or ())


def _ragged_numbers(text: str) -> RaggedNumbers:
    """The dimensions of a ragged product, which MLIR's bindings give as text only.

    >>> _ragged_numbers("#mhlo.ragged_dot<... lhs_contracting_dimensions = [1, 2], ..., lhs_ragged_dimensions = [0]>")
    RaggedNumbers(lhs_contracting=(1, 2), lhs_ragged=(0,))
    """
    dims = {name: tuple(map(int, found.split(","))) for name, found in _RAGGED_DIMS.findall(text)}
    return RaggedNumbers(dims.get("contracting", ()), dims.get("ragged", ()))


def _body_names(node: Op) -> tuple[str, ...]:
    """The names of the elementwise ops with which an op combines elements."""
    return tuple(
        op.name for region in node.regions for block in region.blocks for op in block if op.name in ELEMENTWISE
    )
