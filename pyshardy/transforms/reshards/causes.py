"""Gives reshards the places of the ops that need them, and the need; their collectives inherit these.

The location of such a place has the name of the op, as JAX scopes it, and the resharded value:
`jit(f)/dot_general/reshard of operand 0 of stablehlo.dot_general`. XLA shows it in profiles as the name of the
collective.
"""

from __future__ import annotations

from pyshardy.core.needs import OTHER_REDUCTION, REDUCTIONS, RESHARD, Need
from pyshardy.core.sharding import ReductionKind
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.source import place_for
from pyshardy.transforms.reduction_kinds import combiners
from pyshardy.transforms.reshards.operand_shardings import all_reduce_kind

_ALL_REDUCE = "sdy.all_reduce"
MADE = frozenset(("sdy.reshard", _ALL_REDUCE, "sdy.sharded_to_unreduced", "sdy.replicated_to_unreduced"))
"""The ops that change the sharding of a value for another op."""
_WITH_BODIES = frozenset(("stablehlo.reduce", "stablehlo.scatter"))
_SUMS = {ReductionKind.SUM: "add", ReductionKind.MAX: "maximum", ReductionKind.MIN: "minimum"}


def reduction_word(op: Op, index: int = 0) -> str:
    """How the partial values of a result combine, in a word: "sum", "max" and so on.

    Args:
        op: The op. An op with a body combines by the body, all others by addition.
        index: The number of the result.
    """
    if not op.regions or op.name not in _WITH_BODIES:
        return REDUCTIONS["add"]
    names = combiners(op)
    return OTHER_REDUCTION if names is None else REDUCTIONS.get(names[index], OTHER_REDUCTION)


def _word(made: Op) -> str:
    """The word for an op that changes the sharding of a value for another op."""
    if made.name != _ALL_REDUCE:
        return RESHARD
    value = made.operands[0]
    while value.defining_op is not None and value.defining_op.name in MADE:
        value = value.defining_op.operands[0]
    kind = all_reduce_kind(made)
    if kind is ReductionKind.SUM and value.defining_op is not None:
        return reduction_word(value.defining_op, value.index)
    return REDUCTIONS[_SUMS[kind]]


class CauseNamer:
    """Gives new reshards locations that name the op that needs them. Reshards that were there before stay unchanged.

    Args:
        root: A module or function, before new reshards are inserted.
    """

    def __init__(self, root: Op) -> None:
        self._named = set(ops_named(root, MADE))

    def name(self, op: Op) -> None:
        """Name the new reshards before an op, after it, and at the ends of its regions."""
        for index, value in enumerate(op.operands):
            self._before(value, Need(RESHARD, op.name, index), op)
        for result in () if op.name in MADE else op.results:
            self._after(result, Need.of_result(RESHARD, op.name, result.index, len(op.results)), op)
        for region in op.regions:
            for block in region.blocks:
                for index, value in enumerate(block.terminator.operands if block.last is not None else ()):
                    self._before(value, Need(RESHARD, op.name, index, True, True), op)

    def _before(self, value: Value, need: Need, op: Op) -> None:
        made = value.defining_op
        while made is not None and self._is_new(made):
            self._locate(made, need, op)
            made = made.operands[0].defining_op

    def _after(self, value: Value, need: Need, op: Op) -> None:
        user = value.only_user()
        while user is not None and self._is_new(user):
            self._locate(user, need, op)
            user = user.result.only_user()

    def _is_new(self, op: Op) -> bool:
        return op.name in MADE and op not in self._named

    def _locate(self, made: Op, need: Need, op: Op) -> None:
        self._named.add(made)
        made.location = place_for(op.place, need._replace(what=_word(made)))
