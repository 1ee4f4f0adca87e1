"""`sdy-resolve-permutation-factors`: ops that need data of other shards get it.

Source: docs/semantics/partitioner.md#permutation-factors
"""

from __future__ import annotations

from collections.abc import Hashable

from pyshardy.core.sharding import TensorSharding, mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE
from pyshardy.ir.listing import ops_in
from pyshardy.ir.nodes import Op
from pyshardy.ir.shardings import get_sharding, set_sharding
from pyshardy.passes.base import Pass, PassContext
from pyshardy.passes.partitioning.causes import CauseNamer
from pyshardy.passes.partitioning.channels import Channels
from pyshardy.passes.partitioning.kinds import kind_of
from pyshardy.passes.partitioning.meeting import make_reshard
from pyshardy.passes.partitioning.op_reshards import insert_after
from pyshardy.passes.partitioning.permutation.convolution import whole_factors
from pyshardy.passes.partitioning.permutation.replicate import expanded_factors, replicate_factors
from pyshardy.passes.partitioning.permutation.reshape import resolve_reshape
from pyshardy.passes.partitioning.permutation.reverse import resolve_reverse
from pyshardy.passes.partitioning.permutation.site import Site, Tools
from pyshardy.passes.partitioning.permutation.window import resolve_window
from pyshardy.passes.partitioning.permutation.windowed_ops import WINDOWED, resolve_windowed
from pyshardy.rules.rule import FactorKind, Rule
from pyshardy.rules.table import rule_of

_WINDOWS = frozenset(("stablehlo.pad", "stablehlo.slice"))
_SEEDS = frozenset(("i32", "i64", "ui32", "ui64"))
"""Element types of a random state from which every device can make its own."""
_MORE_THAN_RULE = frozenset(
    f"stablehlo.{name}" for name in ("broadcast_in_dim", "convolution", "reduce_window", "reshape", "rng_bit_generator")
)
"""Ops that may need something although no factor of their rule is one of permutations."""
_BY_OPERANDS = frozenset(("stablehlo.dynamic_update_slice",))
"""Ops of which not only the kind counts, but what their operands hold."""


class ResolvePermutationFactors(Pass):
    """Remove shardings along which an op would need data of other devices: these exchange it, or hold all of it.

    Attributes:
        enable_halo_exchange: Whether devices exchange what they need with their neighbours; if not, the dimension
            is replicated around the op.
        replica_count: How many replicas run; if several, their number tells a device.
        partition_count: How many partitions run; only one of both counts can be more than one.
        rng_bit_generator_unsafe: Whether a random tensor may stay sharded; its numbers then depend on the sharding.
        exchange_windows: Whether convolutions and reductions of windows exchange what their windows cover too; if not,
            dimensions along which these move are replicated, as by the reference.
        name_causes: Whether reshards are located at the op that needs them, by name.
    """

    enable_halo_exchange: bool = True
    replica_count: int = 1
    partition_count: int = 1
    rng_bit_generator_unsafe: bool = True
    exchange_windows: bool = False
    name_causes: bool = False

    name = "sdy-resolve-permutation-factors"

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        tools = Tools(context.attrs, Channels(op, context.attrs), self.replica_count > 1)
        resolver = _Resolver(op, context, self, tools)
        ops = [inner for inner in ops_in(op) if inner.name.startswith("stablehlo.") and not inner.is_terminator]
        joins = {inner: resolver.rule(inner) for inner in ops if inner.name == "stablehlo.concatenate"}
        namer = CauseNamer(op) if self.name_causes else None
        names_all = False
        for inner in ops:
            changed = not resolver.is_fine(inner) and resolver.resolve(inner, joins.get(inner))
            if namer is not None and (changed or names_all):
                if inner.block is not None:
                    namer.name(inner)
                else:
                    names_all = True  # what is made in place of an op is named after those that it is made for


class _Resolver:
    """One run over one module."""

    def __init__(self, root: Op, context: PassContext, options: ResolvePermutationFactors, tools: Tools) -> None:
        self.root = root
        self.context = context
        self.options = options
        self.tools = tools
        self.meshes = context.meshes
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
        """Resolve one op, and say whether that took anything.

        Args:
            op: The op.
            known_rule: Its rule if it must be from before any op was changed.
        """
        neighbours, kind = (op.prev, op.next), kind_of(op)
        try:
            self._resolve(op, known_rule)
        except InvalidShardingError as error:
            raise PassError(op, str(error)) from error
        changed = op.block is None or neighbours != (op.prev, op.next)
        if not changed and kind is not None and op.name not in _BY_OPERANDS:
            self.fine.add(kind)
        return changed

    def _resolve(self, op: Op, known_rule: Rule | None) -> None:
        if op.name == "stablehlo.rng_bit_generator":
            self._resolve_random(op)
            return
        if op.name == "stablehlo.reshape":
            site = self._site(op)
            if site is not None:
                resolve_reshape(site, self.options.enable_halo_exchange)
            return
        if not any(get_sharding(value) for value in (*op.operands, *op.results)):
            return
        rule = known_rule or self.rule(op)
        if rule is None or rule.is_custom:
            return
        if op.name in WINDOWED and self.options.enable_halo_exchange and self.options.exchange_windows:
            self._check_counts(op)
            resolve_windowed(op, rule, self.context, self.tools)
            return
        cleared = set(rule.factors_of(FactorKind.PERMUTATION))
        if op.name == "stablehlo.convolution":
            cleared |= whole_factors(op, rule, self.context)
        if op.name == "stablehlo.broadcast_in_dim":
            cleared |= expanded_factors(op, rule)
        if cleared and (not self.options.enable_halo_exchange or not self._exchange(op)):
            replicate_factors(op, rule, cleared, self.meshes)

    def rule(self, op: Op) -> Rule | None:
        """The sharding rule of an op."""
        if not all(value.type.is_static or value.type.shape is None for value in (*op.operands, *op.results)):
            return None
        found: Rule | None = op.attrs.get(RULE)
        return found or rule_of(self.context.specs.spec(op))

    def _exchange(self, op: Op) -> bool:
        """Let devices exchange what an op needs; whether the op is resolved."""
        if op.name not in _WINDOWS and op.name != "stablehlo.reverse":
            return False
        site = self._site(op)
        if site is None:
            return True
        if op.name in _WINDOWS:
            return resolve_window(site)
        resolve_reverse(site, self.root)
        return True

    def _site(self, op: Op) -> Site | None:
        """Where an exchange would be; None if there is nothing to exchange."""
        sharding = get_sharding(op.operands[0])
        if sharding is None or not op.operands[0].type.is_static or not op.result.type.is_static:
            return None
        mesh = mesh_of(sharding, self.meshes)
        if mesh.is_single_device or mesh.is_empty:
            return None
        self._check_counts(op)
        return Site(op, sharding, mesh, self.tools)

    def _check_counts(self, op: Op) -> None:
        if self.options.replica_count > 1 and self.options.partition_count > 1:
            raise PassError(op, "may need data of other devices, which needs a single replica or a single partition")

    def _resolve_random(self, op: Op) -> None:
        sharding = get_sharding(op.results[1])
        if sharding is None or sharding.is_fully_replicated:
            return
        if self.options.rng_bit_generator_unsafe and op.results[0].type.element in _SEEDS:
            return
        set_sharding(op.results[1], TensorSharding.replicated_like(sharding.mesh, sharding.rank))
        insert_after(make_reshard(op.results[1], sharding), op, op.results[1])
