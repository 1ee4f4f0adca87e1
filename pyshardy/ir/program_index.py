# cython: boundscheck=False
"""The meaning of the numbers in a `Program`, with which shardings are written back onto the nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.blocks import Value
from pyshardy.ir.dataflow import PROPAGATION_BARRIER
from pyshardy.ir.functions import RULE, SHARDING, main_function, set_arg_shardings, set_result_shardings
from pyshardy.ir.op import Op
from pyshardy.ir.shardings import HOLD_OTHERWISE, store_sharding
from pyshardy.ir.shared_attributes import SharedChanges
from pyshardy.propagation.program import OpKind
from pyshardy.rules.properties import EDGES
from pyshardy.rules.rule import Rule

_WITHOUT_RULE = EDGES | {PROPAGATION_BARRIER}


class FunctionResultPlace(NamedTuple):
    """A result of a function, which holds a sharding like a value."""

    function: Op
    result: int


@dataclass(frozen=True, slots=True)
class ProgramIndex:
    """The ops and values behind the numbers of a `Program`.

    Attributes:
        ops: The op of every number.
        values: The value, or function result, of every number.
        kinds: The different kinds of ops.
        kind_of: The kind of every op, by number.
        unknown: The ops that the rule table does not know.
        has_rules: Whether any op of the module has a rule already.
    """

    ops: list[Op]
    values: list[Value | FunctionResultPlace]
    kinds: list[OpKind]
    kind_of: Sequence[int]
    unknown: list[Op]
    has_rules: bool

    @property
    def main(self) -> Op | None:
        """The main function; None if there is none."""
        modules = (op.parent_op for op in self.ops if op.name == "func.func")
        return next((main_function(module) for module in modules if module is not None), None)

    def borders(self) -> tuple[dict[int, int], dict[int, int]]:
        """The numbers of the arguments and of the results of the main function, by position."""
        main = self.main
        block = None if main is None else main.region.blocks[0]
        arguments: dict[int, int] = {}
        results: dict[int, int] = {}
        for number, value in enumerate(self.values):
            if isinstance(value, FunctionResultPlace):
                if value.function is main:
                    results[value.result] = number
            elif value.owner is block:
                arguments[value.index] = number
        return arguments, results

    def store_rules(self) -> None:
        """Write the rules onto the ops that have one of their own, that is, not onto edges and barriers."""
        _store_rules(self.ops, self.kind_of, [None if kind.name in _WITHOUT_RULE else kind.rule for kind in self.kinds])

    def store(self, shardings: Sequence[TensorSharding | None], before: Sequence[TensorSharding | None]) -> None:
        """Write the shardings that differ from `before` onto the nodes."""
        if not len(shardings) == len(before) == len(self.values):  # the compiled core does not check indices
            raise AssertionError("not as many shardings as values")
        _store(self.values, tuple(shardings), tuple(before))


def _store_rules(ops: list[Op], kind_of: Sequence[int], rules: list[Rule | None]) -> None:
    changes = SharedChanges()
    for number, op in enumerate(ops):
        rule = rules[kind_of[number]]
        if rule is not None:
            changes.set(op, RULE, rule)


def _store(
    places: list[Value | FunctionResultPlace],
    shardings: tuple[TensorSharding | None, ...],
    before: tuple[TensorSharding | None, ...],
) -> None:
    changes = SharedChanges()
    alone: dict[TensorSharding, tuple[TensorSharding, ...]] = {}  # one list for all ops with the same sharding
    of_args: dict[Op, dict[int, TensorSharding | None]] = {}
    of_results: dict[Op, dict[int, TensorSharding | None]] = {}
    for number, place in enumerate(places):
        sharding = shardings[number]
        if sharding is before[number] or sharding is None:
            continue
        if not isinstance(place, Value):
            of_results.setdefault(place.function, {})[place.result] = sharding
            continue
        value = place
        owner = value.owner
        if isinstance(owner, Op):
            op = owner
            if len(op.results) == 1 and op.name not in HOLD_OTHERWISE:
                listed = alone.get(sharding)
                if listed is None:
                    listed = alone[sharding] = (sharding,)
                changes.set(op, SHARDING, listed)
                continue
        elif owner.parent_op.name == "func.func":
            of_args.setdefault(owner.parent_op, {})[value.index] = sharding
            continue
        store_sharding(value, sharding)
    for function, found in of_args.items():
        set_arg_shardings(function, found)
    for function, found in of_results.items():
        set_result_shardings(function, found)
