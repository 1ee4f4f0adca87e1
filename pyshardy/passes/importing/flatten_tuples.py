"""`pyshardy-flatten-tuples`: gives custom calls one result per value instead of a tuple of them, and operands alike."""

from __future__ import annotations

from collections.abc import Iterator

from pyshardy.ir.hlo_attributes import GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL, target_of, tuple_types
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.passes.base import Pass
from pyshardy.rules.properties import CUSTOM_CALL
from pyshardy.transforms.context import PassContext

_ELEMENT = "stablehlo.get_tuple_element"
_TUPLE = "stablehlo.tuple"
_BORDERS = (GLOBAL_TO_LOCAL, LOCAL_TO_GLOBAL)


class FlattenTuples(Pass):
    """Give custom calls that return a tuple, as in HLO, one result per element, unless the whole tuple is used.

    The borders of a manual computation get the elements of a tuple as operands, too. Such tuples come from XLA for
    TPUs: there, complex numbers and numbers of 64 bits are pairs.
    """

    name = "pyshardy-flatten-tuples"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        for call in ops_named(op, (CUSTOM_CALL,)):
            _flatten(call, context)
        for element in ops_named(op, (_ELEMENT,)):
            _read_through(element)
        for made in ops_named(op, (_TUPLE,)):
            if not made.has_uses():
                made.erase()


def _flatten(call: Op, context: PassContext) -> None:
    types = tuple_types(call.result.type.mlir) if len(call.results) == 1 else None
    if types is None:
        return
    elements = call.result.users()
    if any(element.name != _ELEMENT for element in elements):
        return
    flat = Op(
        call.name,
        list(_flat_operands(call)) if target_of(call) in _BORDERS else call.operands,
        [context.attrs.type(type) for type in types],
        dict(call.attrs),
        location=call.place,
    ).insert_before(call)
    for element in elements:
        element.result.replace_uses(flat.results[_index(element)])
        element.erase()
    call.erase()


def _flat_operands(call: Op) -> Iterator[Value]:
    for value in call.operands:
        made = value.defining_op
        yield from made.operands if made is not None and made.name == _TUPLE else (value,)


def _read_through(element: Op) -> None:
    """Replace an element of a tuple by the value that the tuple was made of."""
    made = element.operands[0].defining_op if element.operands else None
    if made is None or made.name != _TUPLE:
        return
    element.result.replace_uses(made.operands[_index(element)])
    element.erase()


def _index(element: Op) -> int:
    found: int = element.attrs["index"].value
    return found
