"""`pyshardy-shard-pointwise`: shards results of elementwise ops without a rule like their operands."""

from __future__ import annotations

from functools import cached_property

from pyshardy.core.axis_lists import is_prefix
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.callers import Callers
from pyshardy.ir.functions import is_declaration, result_sharding, return_op, set_result_sharding
from pyshardy.ir.nodes import Op, Value, walk
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.ir.symbols import post_order
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.most_split import most_split
from pyshardy.transforms.reshards.op_rules import (
    names_without_rule,
    rule_with_dynamic_sizes,
    takes_sharding_of_operands,
)


class ShardPointwise(Pass):
    """Shard the results of elementwise ops without a sharding rule like the operand with the most shards.

    Nothing propagates through such an op, so its operands would be gathered. The pass gives its results
    shardings, or adds axes to their shardings. Then it does the same for elementwise ops that use these results.
    """

    name = "pyshardy-shard-pointwise"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        sharder = _Sharder(op, context)
        for function in post_order(op):
            if not is_declaration(function):
                sharder.shard(function)


class _Sharder:
    """One run over one module."""

    def __init__(self, root: Op, context: PassContext) -> None:
        self.context = context
        self.meshes = context.meshes
        self.root = root
        self.without_rule = names_without_rule()
        self.done: set[Value] = set()

    @cached_property
    def calls(self) -> Callers:
        return Callers(self.root)

    def shard(self, function: Op) -> None:
        """Shard the elementwise ops of a function, and the results of its calls if it returns their results."""
        if not self.done and not ops_named(function, self.without_rule):
            return
        for op in walk(function):
            if op.operands and (op.name in self.without_rule or not self.done.isdisjoint(op.operands)):
                self._shard_op(op)
        for index, value in enumerate(return_op(function).operands if self.calls.of(function) else ()):
            sharding = get_sharding(value)
            if value in self.done and sharding is not None and result_sharding(function, index) is None:
                set_result_sharding(function, index, sharding)
                for call in self.calls.of(function):
                    self._set(call.results[index], sharding)

    def _shard_op(self, op: Op) -> None:
        spec = self.context.specs.spec(op)
        if not takes_sharding_of_operands(spec) or (
            rule_with_dynamic_sizes(spec) and self.done.isdisjoint(op.operands)
        ):
            return
        sharding = most_split([get_sharding(value) for value in op.operands], self.meshes)
        if sharding is not None and not sharding.is_fully_replicated and not sharding.unreduced:
            for result in op.results:
                self._set(result, sharding)

    def _set(self, value: Value, sharding: TensorSharding) -> None:
        """Give a value this sharding if it only adds axes to the value's sharding."""
        old = get_sharding(value)
        if old is None or (old is not sharding and _extends(sharding, old)):
            set_sharding(value, sharding)
            self.done.add(value)


def _extends(sharding: TensorSharding, old: TensorSharding) -> bool:
    """Whether a sharding is another one with additional minor axes."""
    is_same_kind = sharding.mesh == old.mesh and not old.unreduced and sharding.rank == old.rank
    return is_same_kind and all(map(is_prefix, old.dim_axes, sharding.dim_axes))
