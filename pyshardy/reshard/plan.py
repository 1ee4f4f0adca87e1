"""Planning the reshards around one op that let it run as it is sharded.

A plan depends only on the rule, the shardings and the sizes, so it is made once for all equal ops.

Source: docs/semantics/reshards-and-collectives.md#the-mesh-of-an-op
Source: docs/semantics/reshards-and-collectives.md#ops-with-a-rule
Source: docs/semantics/reshards-and-collectives.md#partial-results
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from math import prod
from typing import NamedTuple

from pyshardy.core.axes import Axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding, is_equivalent
from pyshardy.core.sharding_on_mesh import Meshes, common_mesh, mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.propagation.projection import TensorState
from pyshardy.reshard.conflicts import common_axes, shared_axes
from pyshardy.reshard.contraction import better_product_axes
from pyshardy.reshard.factors import assign, has_overflow, project_tensors, rebuild
from pyshardy.reshard.reshape import reshape_axes
from pyshardy.reshard.strides import equivalent_across_reshape
from pyshardy.rules.properties import PRODUCTS
from pyshardy.rules.rule import FactorKind, Rule, Shape, factor_symbol

Shardings = tuple[TensorSharding | None, ...]


class OpInput(NamedTuple):
    """All inputs of a plan besides the meshes.

    Attributes:
        name: Name of the op.
        rule: Its rule.
        shapes: Shape of every operand and result.
        shardings: The sharding of every operand and result.
        is_full: Whether operands and results may be resharded; if not, only a better product is kept.
    """

    name: str
    rule: Rule
    shapes: tuple[Shape, ...]
    shardings: Shardings
    is_full: bool


class OpPlan(NamedTuple):
    """The reshards around one op.

    Attributes:
        mesh: The mesh of the op, as shardings name it.
        targets: Per operand and result, the sharding that it must have for the op; None to leave it unchanged.
        reduced: The axes along which the results are partial.
    """

    mesh: str | Mesh
    targets: Shardings
    reduced: Axes

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.reduced and not any(self.targets)


def plan_op(op: OpInput, meshes: Meshes) -> OpPlan | None:
    """The plan for an op; None if the op stays as it is.

    Raises:
        InvalidShardingError: The tensors disagree on a reduction factor and the result is unreduced, or a new sharding
            would use an axis twice.

    >>> from pyshardy.core.notation import parse_sharding
    >>> from pyshardy.rules.notation import parse_rule
    >>> rule = parse_rule("<([i])->([i]) {i=8}>")
    >>> op = OpInput("stablehlo.abs", rule, ((8,), (8,)), (parse_sharding('<@m, [{"a"}]>'), None), True)
    >>> plan_op(op, {"m": Mesh([("a", 2)])}).targets
    (None, TensorSharding(<@m, [{"a"}]>))
    """
    found = common_mesh(op.shardings, meshes, ignore_device_order=True)
    if found is None or found[1].is_single_device:
        return None
    ref = op_mesh(op.shardings) or found[0]
    mesh = meshes[ref] if isinstance(ref, str) else ref
    if op.is_full:
        shared = shared_axes(op.rule, op.shardings, mesh)
        if shared is not None and not any(_is_on_other_devices(one, mesh, meshes) for one in op.shardings):
            return OpPlan(ref, (None,) * len(op.shardings), _reduced(op.rule, dict(enumerate(shared))))
    place = _OpPlanner(op, project_tensors(op.rule, op.shardings, mesh), mesh, ref)
    return place.full_plan(meshes) if op.is_full else place.minimal_plan()


def op_mesh(shardings: Shardings) -> str | Mesh | None:
    """The mesh of most shardings that have axes, the first to reach that number; None if none has axes.

    >>> from pyshardy.core.notation import parse_sharding
    >>> op_mesh((parse_sharding('<@m, [{}]>'), parse_sharding('<@n, [{"a"}]>')))
    'n'
    """
    counts: Counter[str | Mesh] = Counter()
    best = None
    for sharding in shardings:
        if sharding is not None and not sharding.is_fully_replicated:
            counts[sharding.mesh] += 1
            if best is None or counts[sharding.mesh] > counts[best]:
                best = sharding.mesh
    return best


def element_count(shape: Shape) -> int:
    """Number of elements; 0 for a value without dimensions or with a dynamic one.

    >>> element_count((2, 4)), element_count(()), element_count((-1, 4)), element_count(None)
    (8, 1, 0, 0)
    """
    return 0 if shape is None or -1 in shape else prod(shape)


class _OpPlanner(NamedTuple):
    """An op with the factors of its tensors, and the mesh that it runs on.

    Attributes:
        op: The op.
        states: The factors of all tensors; changed while planning.
        mesh: The mesh.
        ref: The mesh as shardings name it.
    """

    op: OpInput
    states: list[TensorState]
    mesh: Mesh
    ref: str | Mesh

    def full_plan(self, meshes: Meshes) -> OpPlan:
        """Make all tensors compatible."""
        op, states = self.op, self.states
        changed = {index for index, state in enumerate(states) if has_overflow(state)}
        if changed and op.name == "stablehlo.reshape":
            if self._moves_nothing():
                return OpPlan(self.ref, (None,) * len(states), ())
            common = reshape_axes(op.rule, states, self.mesh)
            assign(states, common)
            changed = {index for index in range(len(states)) if not self._is_as_before(index)}
        else:
            common = common_axes(op.rule, states, [element_count(shape) for shape in op.shapes], self.mesh)
            changed |= assign(states, common)
        changed |= {index for index, old in enumerate(op.shardings) if _is_on_other_devices(old, self.mesh, meshes)}
        return self._plan(changed, dict(enumerate(common)))

    def minimal_plan(self) -> OpPlan:
        """Change the result of a product if that is better."""
        op, states = self.op, self.states
        reduced = self._reduced_by_all()
        if op.name not in PRODUCTS or op.shardings[2] is None:
            return self._plan((), reduced)
        found = better_product_axes(op.rule, states, [element_count(shape) for shape in op.shapes])
        if found is None:
            return self._plan((), reduced)
        factor, axes = found
        states[2].factors[factor].axes = axes
        return self._plan((2,), reduced)

    def _plan(self, changed: Iterable[int], common: Mapping[int, Axes]) -> OpPlan:
        targets: list[TensorSharding | None] = [None] * len(self.states)
        for index in changed:
            targets[index] = self._rebuilt(index)
        return OpPlan(self.ref, tuple(targets), _reduced(self.op.rule, common))

    def _rebuilt(self, index: int) -> TensorSharding:
        op = self.op
        return rebuild(self.states[index], op.rule.tensors[index], op.rule, self.mesh, self.ref, op.shardings[index])

    def _moves_nothing(self) -> bool:
        (operand, result), (shape, new_shape) = self.op.shardings, self.op.shapes
        if operand is None or result is None:
            return False
        return equivalent_across_reshape(operand, shape or (), result, new_shape or (), self.mesh)

    def _is_as_before(self, index: int) -> bool:
        old, new = self.op.shardings[index], self._rebuilt(index)
        return new.is_fully_replicated if old is None else is_equivalent(old, new)

    def _reduced_by_all(self) -> dict[int, Axes]:
        """The axes of the reduction factors that may stay partial, because the first result is unreduced."""
        first = self.op.shardings[len(self.op.rule.operands)]
        found: dict[int, Axes] = {}
        if first is None or not first.unreduced:
            return found
        for factor in self.op.rule.factors_of(FactorKind.REDUCTION):
            for state in self.states:
                if factor in state.factors:
                    axes = state.factors[factor].axes
                    if found.setdefault(factor, axes) != axes:
                        raise _disagreement(self.op.name, factor, found[factor], axes)
        return found


def _reduced(rule: Rule, axes: Mapping[int, Axes]) -> Axes:
    """The axes of all reduction factors."""
    return sum((axes.get(factor, ()) for factor in rule.factors_of(FactorKind.REDUCTION)), ())


def _is_on_other_devices(sharding: TensorSharding | None, mesh: Mesh, meshes: Meshes) -> bool:
    if sharding is None or sharding.is_fully_replicated:
        return False
    return mesh_of(sharding, meshes).device_ids != mesh.device_ids


def _disagreement(name: str, factor: int, first: Axes, second: Axes) -> InvalidShardingError:
    return InvalidShardingError(
        f"finding the axes along which {name} gives partial results",
        got=f"{_format(first)} and {_format(second)} for factor {factor_symbol(factor)}",
        needed="operands that are sharded alike in the factors that are reduced",
    )


def _format(axes: Axes) -> str:
    return "{" + ", ".join(map(str, axes)) + "}"
