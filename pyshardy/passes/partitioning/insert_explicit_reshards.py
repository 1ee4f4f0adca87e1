"""`sdy-insert-explicit-reshards`: makes shardings compatible with ops, and completes partial results.

Source: docs/semantics/reshards-and-collectives.md#inserting-reshards
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TypeGuard

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.errors import InvalidRuleError, InvalidShardingError
from pyshardy.ir.blocks import Value
from pyshardy.ir.dataflow import DATA_FLOW_OPS, PROPAGATION_BARRIER, block_arg_owners, is_data_flow_op, source_uses
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import RULE, SHARDING, is_declaration, result_sharding, return_op
from pyshardy.ir.op import Op
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.shardings import all_arg_shardings, get_sharding, get_shardings, stored_sharding
from pyshardy.ir.symbols import SymbolTable
from pyshardy.passes.base import Anchor, Pass
from pyshardy.propagation.views import join_manual_axes, strip_manual_axes
from pyshardy.reshard.plan import OpInput, OpPlan, plan_op
from pyshardy.rules.properties import PRODUCTS
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.reshards.barriers import sharding_before_barriers
from pyshardy.transforms.reshards.causes import MADE, CauseNamer
from pyshardy.transforms.reshards.kinds import AS_THEY_ARE, kind_of
from pyshardy.transforms.reshards.op_reshards import complete_partial_results, reduce_operands, reshard_around
from pyshardy.transforms.reshards.op_rules import rule_with_dynamic_sizes
from pyshardy.transforms.reshards.operand_shardings import OpOperand
from pyshardy.transforms.reshards.single_device import is_on_single_device, reshard_to_device, single_device_of
from pyshardy.transforms.reshards.survey import distinct_shardings

_ALWAYS_FULL = "mhlo.ragged_dot"
_TOUCHED_ALWAYS = PRODUCTS | {"func.call", "stablehlo.concatenate", _ALWAYS_FULL}
"""Ops that the pass looks at if `enable_full_version` is off."""
_NOT_BY_KIND = DATA_FLOW_OPS | {"func.call", "func.return"}
"""Ops of one kind that may still differ in whether they need reshards."""


class InsertExplicitReshards(Pass):
    """Insert reshards that make the shardings of ops compatible with their rules, and all-reduces for partial results.

    Attributes:
        enable_full_version: Whether every op that needs reshards gets them; if not, only a few kinds of ops do.
        mark_partial_result_with_unreduced_axes: Whether a partial result that is all-reduced is marked as unreduced.
        name_causes: Whether the locations of inserted ops name the op that needs them.
    """

    enable_full_version: bool = False
    mark_partial_result_with_unreduced_axes: bool = False
    name_causes: bool = False

    name = "sdy-insert-explicit-reshards"
    own_options = frozenset(("name_causes",))
    anchor = Anchor.FUNCTION

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        _Inserter(op, context, self).run()


class _Inserter:
    """One run over one function."""

    def __init__(self, function: Op, context: PassContext, options: InsertExplicitReshards) -> None:
        self.function = function
        self.context = context
        self.meshes = context.meshes
        self.is_full = options.enable_full_version
        self.mark = options.mark_partial_result_with_unreduced_axes
        self.has_unreduced, self.has_single_device = _survey(function, self.meshes)
        self.namer = CauseNamer(function) if options.name_causes else None
        self.plans: dict[OpInput, OpPlan | None] = {}
        self.named = ops_named(function, _TOUCHED_ALWAYS | {PROPAGATION_BARRIER}, post_order=True)
        has_barriers = any(op.name == PROPAGATION_BARRIER for op in self.named)
        self.shardings_of = _before_barriers if has_barriers else get_shardings
        self.fine: set[Hashable] = set()
        """Kinds of ops that need nothing."""
        self.symbols: SymbolTable | None = None

    def run(self) -> None:
        if is_declaration(self.function):
            return
        names_all = False  # until a reshard gets reshards around it: those belong to later ops
        for op in (*self._ops(), return_op(self.function)):
            try:
                changes = not self._is_fine(op)
                if changes:
                    self._visit(op)
            except (InvalidRuleError, InvalidShardingError) as error:
                raise PassError(op, str(error)) from error
            names_all = names_all or (changes and op.name in MADE)
            if self.namer is not None and op.block is not None and (changes or names_all):
                self.namer.name(op)

    def _ops(self) -> list[Op]:
        """The ops to visit, inner ones first: those present now, without ops inserted later."""
        if self.is_full or self.has_unreduced or self.has_single_device:
            return [op for op in ops_in(self.function, post_order=True)[:-1] if not op.is_terminator]
        return [op for op in self.named if op.name != PROPAGATION_BARRIER]

    def _is_fine(self, op: Op) -> bool:
        """Whether an op of this kind is known to need nothing."""
        if self.has_unreduced or self.has_single_device or op.name in _NOT_BY_KIND:
            return False
        kind = kind_of(op, AS_THEY_ARE, self.shardings_of)
        if kind is not None and kind in self.fine:
            return True
        plan = self._plan(op)
        if plan is not None and not plan.is_empty:
            return False
        self.fine.add(kind)
        return True

    def _visit(self, op: Op) -> None:
        if is_data_flow_op(op):
            self._visit_data_flow(op)
        elif op.name == "func.call":
            self._visit_call(op)
        elif op.name == "func.return":
            self._visit_return(op)
        elif op.name != "sdy.reshard" or not self._replace_reshard(op):
            self._visit_plain(op)

    def _visit_return(self, op: Op) -> None:
        for index in range(len(op.operands)):
            OpOperand(op, index, self.meshes).meet(result_sharding(self.function, index), self.is_full)

    def _visit_data_flow(self, op: Op) -> None:
        for owner in (*op.results, *block_arg_owners(op)):
            target = _target_of_sources(op, owner)
            for user, index in source_uses(owner):
                OpOperand(user, index, self.meshes, at_definition=True).meet(target, self.is_full)

    def _visit_call(self, op: Op) -> None:
        if self.symbols is None:
            self.symbols = SymbolTable(self.context.root)
        callee = self.symbols.callee(op)
        targets = None if is_declaration(callee) else all_arg_shardings(callee, self.meshes)
        if targets is None:
            mesh = next((found.mesh for found in map(get_sharding, op.operands) if self._is_on_axes(found)), None)
            if mesh is None:
                return
            targets = tuple(TensorSharding.fully_replicated(mesh, value.type.rank) for value in op.operands)
        for index, target in enumerate(targets):
            OpOperand(op, index, self.meshes, at_definition=True).meet(target, is_full=True)

    def _is_on_axes(self, sharding: TensorSharding | None) -> TypeGuard[TensorSharding]:
        return sharding is not None and not mesh_of(sharding, self.meshes).is_single_device

    def _replace_reshard(self, op: Op) -> bool:
        """Replace a reshard that adds unreduced axes by the ops that add them; return whether it was replaced."""
        value = op.operands[0]
        OpOperand(op, 0, self.meshes).make_unreduced(op.attrs["sharding"])
        if op.operands[0] is value:
            return False
        op.result.replace_uses(op.operands[0])
        op.erase()
        return True

    def _visit_plain(self, op: Op) -> None:
        if self.has_unreduced:
            reduce_operands(op, self.meshes)
        if self.has_single_device and op.name != "sdy.propagation_barrier":
            device = single_device_of(op, self.meshes)
            if device is not None:
                reshard_to_device(op, device, self.meshes)
                return
        plan = self._plan(op)
        if plan is not None:
            reshard_around(op, plan.targets)
            complete_partial_results(op, plan, self.meshes, self.mark)

    def _plan(self, op: Op) -> OpPlan | None:
        is_full = self.is_full or op.name == _ALWAYS_FULL or _joins_different(op)
        shardings = (*self.shardings_of(op.operands), *get_shardings(op.results))
        if not op.operands or not op.results or not any(shardings):
            return None
        if not is_full and op.name not in PRODUCTS and not _is_unreduced(shardings[len(op.operands)]):
            return None
        rule = op.attrs.get(RULE) or rule_with_dynamic_sizes(self.context.specs.spec(op))
        if rule is None or rule.is_custom:
            return None
        shapes = tuple([value.type.shape for value in (*op.operands, *op.results)])
        key = OpInput(op.name, rule, shapes, shardings, is_full)
        if key not in self.plans:
            self.plans[key] = plan_op(key, self.meshes)
        return self.plans[key]


def _survey(function: Op, meshes: Meshes) -> tuple[bool, bool]:
    """Whether any sharding of the function has unreduced axes, and whether any is on a single device.

    Raises:
        PassError: An argument or result of the function is on a single device.
    """
    for kind, name in (("arg_attrs", "argument"), ("res_attrs", "result")):
        for index, entry in enumerate(function.attrs.get(kind) or ()):
            if is_on_single_device(entry.get(SHARDING), meshes):
                raise PassError(function, f"has {name} {index} on a single device; only ops inside may be")
    found = distinct_shardings(function)
    return any(one.unreduced for one in found), any(is_on_single_device(one, meshes) for one in found)


def _target_of_sources(op: Op, owner: Value) -> TensorSharding | None:
    """The sharding that the sources of an edge need. It is on the data-flow op, not on an edge op."""
    if op.name != "sdy.manual_computation":
        return stored_sharding(owner)
    axes = op.attrs["manual_axes"]
    if owner.defining_op is not None:
        return strip_manual_axes(op.attrs["out_shardings"][owner.index], axes)
    outer = op.attrs["in_shardings"][owner.index]
    return join_manual_axes(outer, strip_manual_axes(outer, axes), axes)


def _before_barriers(values: Iterable[Value]) -> list[TensorSharding | None]:
    return [sharding_before_barriers(value) for value in values]


def _is_unreduced(sharding: TensorSharding | None) -> bool:
    return sharding is not None and bool(sharding.unreduced)


def _joins_different(op: Op) -> bool:
    """Whether the op concatenates tensors whose own shardings do not all equal that of the result."""
    if op.name != "stablehlo.concatenate":
        return False
    wanted = get_sharding(op.result)
    return any(get_sharding(value) is not wanted for value in op.operands)
