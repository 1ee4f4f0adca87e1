"""What the functions of the trait `exchange` share: options, rules, and the op that exchanges data."""

from __future__ import annotations

from typing import NamedTuple

from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding
from pyshardy.rules.ops import OPS
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.table import rule_of
from pyshardy.rules.traits import function_of_trait
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.exchanges.replicate import replicate_factors
from pyshardy.transforms.exchanges.sharded_op import Environment, ShardedOp

_WHOLE_FACTORS = {name: traits.whole_factors for name, traits in OPS.items() if traits.whole_factors}


class ExchangeOptions(NamedTuple):
    """Which exchanges are allowed, and how devices are identified.

    Attributes:
        enable_halo_exchange: Whether devices exchange halos with their neighbours.
        replica_count: The number of replicas.
        partition_count: The number of partitions.
        rng_bit_generator_unsafe: Whether random tensors may stay sharded; their elements then depend on the sharding.
        exchange_windows: Whether convolutions and window reductions exchange halos.
    """

    enable_halo_exchange: bool
    replica_count: int
    partition_count: int
    rng_bit_generator_unsafe: bool
    exchange_windows: bool


class Resolver:
    """One run of `sdy-resolve-permutation-factors` over one module. The functions of the trait `exchange` take it.

    Args:
        root: The module.
        context: The pass context.
        options: Which exchanges are allowed.
        env: What all ops of a module share.
    """

    def __init__(self, root: Op, context: PassContext, options: ExchangeOptions, env: Environment) -> None:
        self.root = root
        self.context = context
        self.options = options
        self.env = env
        self.meshes = context.meshes

    def rule(self, op: Op) -> Rule | None:
        """The sharding rule of an op."""
        if not all(value.type.is_static or value.type.shape is None for value in (*op.operands, *op.results)):
            return None
        found: Rule | None = op.attrs.get(RULE)
        return found or rule_of(self.context.specs.spec(op))

    def rule_to_resolve(self, op: Op, known: Rule | None = None) -> Rule | None:
        """The rule of an op with sharded operands or results; None without a rule, or if a user has registered it.

        Args:
            op: The op.
            known: Its rule if it must be from before any op was changed.
        """
        if not any(get_sharding(value) for value in (*op.operands, *op.results)):
            return None
        rule = known or self.rule(op)
        return None if rule is None or rule.is_custom else rule

    def moved_factors(self, op: Op, rule: Rule) -> set[int]:
        """The factors along which an op needs data from other shards if they are sharded."""
        found = set(rule.factors_of(FactorKind.PERMUTATION))
        entry = _WHOLE_FACTORS.get(op.name)
        return found if entry is None else found | function_of_trait("whole_factors", entry)(op, rule, self.context)

    def replicate(self, op: Op, known_rule: Rule | None) -> None:
        """Replicate an op along the factors along which it needs data from other shards."""
        rule = self.rule_to_resolve(op, known_rule)
        if rule is not None and (moved := self.moved_factors(op, rule)):
            replicate_factors(op, rule, moved, self.meshes)

    def may_exchange(self, op: Op) -> bool:
        """Whether an op needs data from other shards, and may exchange it."""
        if not self.options.enable_halo_exchange:
            return False
        rule = self.rule_to_resolve(op)
        return rule is not None and bool(self.moved_factors(op, rule))

    def sharded(self, op: Op) -> ShardedOp | None:
        """The op with its sharding and mesh; None if there is nothing to exchange."""
        sharding = get_sharding(op.operands[0])
        if sharding is None or not op.operands[0].type.is_static or not op.result.type.is_static:
            return None
        mesh = mesh_of(sharding, self.meshes)
        if mesh.is_single_device or mesh.is_empty:
            return None
        self.check_counts(op)
        return ShardedOp(op, sharding, mesh, self.env)

    def check_counts(self, op: Op) -> None:
        """Raise `PassError` if there are several replicas and several partitions."""
        if self.options.replica_count > 1 and self.options.partition_count > 1:
            raise PassError(op, "may need data of other devices, which needs a single replica or a single partition")
