"""`sdy-resolve-permutation-factors`: gives ops the data that they need from other shards.

Source: docs/semantics/partitioner.md#permutation-factors
"""

from __future__ import annotations

from collections.abc import Hashable

from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_in
from pyshardy.passes.base import Pass
from pyshardy.rules.ops import OPS
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.traits import function_of_trait
from pyshardy.transforms.channels import Channels
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.exchanges.resolver import ExchangeOptions, Resolver
from pyshardy.transforms.exchanges.sharded_op import Environment
from pyshardy.transforms.reshards.causes import CauseNamer
from pyshardy.transforms.reshards.kinds import kind_of

_EXCHANGES = {name: traits.exchange for name, traits in OPS.items() if traits.exchange}
"""The functions that let shards exchange data, per op; all other ops are replicated."""
_MORE_THAN_RULE = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "convolution", "reduce_window", "reshape", "rng_bit_generator")
)
"""Ops that may need data from other shards although their rule has no permutation factor."""
_BY_OPERANDS = frozenset(("stablehlo.dynamic_update_slice",))
"""Ops whose shards need data that depends on the contents of operands, and not only on types and attributes."""


class ResolvePermutationFactors(Pass):
    """Let devices exchange the data that ops need from other shards; where they cannot, replicate the dimension.

    Attributes:
        enable_halo_exchange: Whether devices exchange halos with their neighbours; if not, the dimension is replicated
            around the op.
        replica_count: The number of replicas. If there are several, the replica id identifies a device.
        partition_count: The number of partitions; only one of the two counts can exceed 1.
        rng_bit_generator_unsafe: Whether random tensors may stay sharded; their elements then depend on the sharding.
        exchange_windows: Whether convolutions and window reductions exchange halos too. If not, the dimensions of their
            windows are replicated, as in the reference.
        name_causes: Whether the locations of reshards name the op that needs them.
    """

    enable_halo_exchange: bool = True
    replica_count: int = 1
    partition_count: int = 1
    rng_bit_generator_unsafe: bool = True
    exchange_windows: bool = False
    name_causes: bool = False

    name = "sdy-resolve-permutation-factors"
    own_options = frozenset(("exchange_windows", "name_causes"))

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        env = Environment(context.attrs, Channels(op, context.attrs), self.replica_count > 1)
        options = ExchangeOptions(
            self.enable_halo_exchange,
            self.replica_count,
            self.partition_count,
            self.rng_bit_generator_unsafe,
            self.exchange_windows,
        )
        resolver = Resolver(op, context, options, env)
        run = _Run(resolver)
        ops = [inner for inner in ops_in(op) if inner.name.startswith("stablehlo.") and not inner.is_terminator]
        joins = {inner: resolver.rule(inner) for inner in ops if inner.name == "stablehlo.concatenate"}
        namer = CauseNamer(op) if self.name_causes else None
        names_all = False
        for inner in ops:
            changed = not run.is_fine(inner) and run.resolve(inner, joins.get(inner))
            if namer is not None and (changed or names_all):
                if inner.block is not None:
                    namer.name(inner)
                else:
                    names_all = True  # the ops that replace an op carry the name of the op that needs them


class _Run:
    """One run over one module. It examines each kind of op once.

    Args:
        resolver: What the functions need that let shards exchange data.
    """

    def __init__(self, resolver: Resolver) -> None:
        self.resolver = resolver
        self.fine: set[Hashable] = set()
        """Rules, and kinds of ops, that need nothing."""

    def is_fine(self, op: Op) -> bool:
        """Whether an op is known to need nothing, by its rule or by its kind."""
        rule = op.attrs.get(RULE)
        if rule is None or op.name in _MORE_THAN_RULE:
            kind = kind_of(op)
            return kind is not None and kind in self.fine
        if rule in self.fine:
            return True
        if rule.is_custom or not rule.factors_of(FactorKind.PERMUTATION):
            self.fine.add(rule)
        return rule in self.fine

    def resolve(self, op: Op, known_rule: Rule | None) -> bool:
        """Resolve one op; return whether that changed anything.

        Args:
            op: The op.
            known_rule: Its rule if it must be from before any op was changed.
        """
        neighbours, kind = (op.prev, op.next), kind_of(op)
        entry = _EXCHANGES.get(op.name)
        try:
            if entry is None or not function_of_trait("exchange", entry)(op, self.resolver):
                self.resolver.replicate(op, known_rule)
        except InvalidShardingError as error:
            raise PassError(op, str(error)) from error
        changed = op.block is None or neighbours != (op.prev, op.next)
        if not changed and kind is not None and op.name not in _BY_OPERANDS:
            self.fine.add(kind)
        return changed
