"""The kinds of a module's ops: what propagation needs to know of an op besides its tensors.

Source: docs/semantics/rules.md#traits-of-ops
"""

from __future__ import annotations

from collections.abc import Hashable

from pyshardy.errors import InvalidRuleError
from pyshardy.ir.dataflow import PROPAGATION_BARRIER
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import TERMINATORS, Op
from pyshardy.ir.opspec import OpSpecReader
from pyshardy.ir.purity import is_pure
from pyshardy.propagation.program import Direction, OpKind
from pyshardy.rules.properties import Priority, is_elementwise, priority_of
from pyshardy.rules.rule import Rule
from pyshardy.rules.rule_builder import identity_rule
from pyshardy.rules.table import is_known, is_known_name, rule_of


class OpKinds:
    """Numbers the kinds of ops; it makes the kind of ops with one key once.

    Args:
        specs: Describes ops for the rule table.
        conservative: Whether rules are made in their conservative form.

    Attributes:
        known: The kinds, by number.
        rules: Per kind, its rule.
        numbers: The numbers of kinds by the keys of ops.
        known_names: Names of ops that have a rule, or none on purpose, whatever their attributes.
    """

    def __init__(self, specs: OpSpecReader, conservative: bool) -> None:
        self.known: list[OpKind] = []
        self.rules: list[Rule | None] = []
        self.numbers: dict[Hashable, int] = {}
        self.known_names: set[str] = set()
        self._specs = specs
        self._conservative = conservative
        self._kinds: dict[OpKind, int] = {}

    def number(self, kind: OpKind) -> int:
        """The number of a kind."""
        found = self._kinds.get(kind)
        if found is None:
            found = self._kinds[kind] = len(self.known)
            self.known.append(kind)
            self.rules.append(kind.rule)
        return found

    def of(self, op: Op, key: Hashable) -> int:
        """The number of the kind of an op that is no data-flow edge; ops with equal keys share it.

        Raises:
            PassError: The op has a sharding rule that does not fit it.
        """
        found = self.number(self._make(op))
        if key is not None and op.name != PROPAGATION_BARRIER:
            self.numbers[key] = found
        return found

    def _make(self, op: Op) -> OpKind:
        """The kind of an op that is no data-flow edge."""
        if op.name == PROPAGATION_BARRIER:
            shape = op.result.type.shape
            assert shape is not None
            direction = Direction(op.attrs["allowed_direction"])
            return OpKind(op.name, identity_rule(shape), Priority.FIXED, direction, True, True, is_pure(op))
        spec = self._specs.spec(op)
        rule: Rule | None = op.attrs.get(RULE)
        if rule is None:
            try:
                rule = rule_of(spec, self._conservative)
            except InvalidRuleError as error:
                raise PassError(op, f"has no valid sharding rule: {error}") from error
        elementwise = is_elementwise(spec)
        return OpKind(op.name, rule, priority_of(spec), Direction.BOTH, elementwise, False, is_pure(op))

    def is_known(self, op: Op) -> bool:
        """Whether the op has a rule, or has none on purpose; records its name if the name alone decides."""
        if op.name in TERMINATORS or is_known_name(op.name):
            self.known_names.add(op.name)
            return True
        return is_known(self._specs.spec(op))
