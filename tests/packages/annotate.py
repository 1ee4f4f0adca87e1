"""Random sharding annotations on the values of a module, from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from jaxlib.mlir import ir

from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.ir.context import make_context

from ..differential.random_shardings import AXIS_NAMES, random_sharding

AXIS_SIZES = (2, 2, 2, 3, 4, 4)
ARGUMENTS, RESULTS, OTHER_FUNCTIONS, OPS = 0.5, 0.2, 0.05, 0.03
"""The chances of an argument and a result of main, of both of other functions, and of an op to be annotated."""


def annotate(text: str, seed: int | str, *, unreduced: float = 0.0) -> str:
    """The module with a mesh of two to four axes and with shardings on some values; the same for the same seed.

    Only ranked tensors of static shape get a sharding. Dimensions are open or closed, axes are cut now and then, and
    half of the seeds give user priorities, but not to dead code: what the reference makes of those is not defined
    (docs/differences.md).

    Args:
        text: A module without shardings and meshes.
        seed: What the annotations depend on.
        unreduced: The chance of an axis to be unreduced. Most modules with such an axis are refused, as nothing in
            them reduces it.
    """
    with make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        annotator = Annotator(module, seed, unreduced)
        module.operation.walk(annotator.visit)
        ir.InsertionPoint.at_block_begin(module.body).insert(ir.Operation.parse(f"sdy.mesh @mesh = {annotator.mesh}"))
        assert module.operation.verify()
        return str(module)


class Annotator:
    """Draws a mesh, and for every op whether its values get a sharding and which."""

    def __init__(self, module: Any, seed: int | str, unreduced: float) -> None:
        self.random = Random(seed)
        self.mesh = Mesh([(name, self.random.choice(AXIS_SIZES)) for name in AXIS_NAMES[: self.random.randint(2, 4)]])
        self.priorities = self.random.choice((0.0, 0.3))
        self.unreduced = unreduced
        self.dead = _dead_ops(module)

    def visit(self, op: Any) -> ir.WalkResult:
        """Annotate an op, or the arguments and results of a function."""
        if op.name == "func.func":
            is_main = op.attributes["sym_name"].value == "main"
            type_ = op.attributes["function_type"].value
            self._values_of_function(op, "arg_attrs", type_.inputs, ARGUMENTS if is_main else OTHER_FUNCTIONS)
            self._values_of_function(op, "res_attrs", type_.results, RESULTS if is_main else OTHER_FUNCTIONS)
        elif len(op.results) and self.random.random() < OPS:
            types = [result.type for result in op.results]
            if all(map(_has_static_shape, types)):
                shardings = ", ".join(str(self._sharding(op, type_)) for type_ in types)
                op.attributes["sdy.sharding"] = ir.Attribute.parse(f"#sdy.sharding_per_value<[{shardings}]>")
        return ir.WalkResult.ADVANCE

    def _values_of_function(self, function: Any, name: str, types: Sequence[Any], chance: float) -> None:
        given = function.attributes[name] if name in function.attributes else [{}] * len(types)
        attrs = [{item.name: item.attr for item in attr} if len(attr) else {} for attr in given]
        for attr, type_ in zip(attrs, types):
            if self.random.random() < chance and _has_static_shape(type_):
                attr["sdy.sharding"] = ir.Attribute.parse(f"#sdy.sharding{self._sharding(function, type_)}")
        if any(attrs):
            function.attributes[name] = ir.ArrayAttr.get([ir.DictAttr.get(attr) for attr in attrs])

    def _sharding(self, op: Any, type_: Any) -> TensorSharding:
        priorities = 0.0 if op in self.dead else self.priorities
        rank = ir.RankedTensorType(type_).rank
        return random_sharding(self.random, "mesh", self.mesh, rank, priorities=priorities, unreduced=self.unreduced)


def _has_static_shape(type_: Any) -> bool:
    return isinstance(type_, ir.RankedTensorType) and type_.has_static_shape


def _dead_ops(module: Any) -> set[Any]:
    """The ops that nothing which is returned depends on, with what is in them and in the functions they call."""
    ops: list[Any] = []

    def note(op: Any) -> ir.WalkResult:
        ops.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(note, ir.WalkOrder.PRE_ORDER)
    dead: set[Any] = set()
    called: set[str] = set()
    """The functions that something dead calls."""
    count = -1
    while count < len(dead):
        count = len(dead)
        for op in reversed(ops):
            users = [use.owner.operation for result in op.results for use in result.uses]
            is_unused = len(op.results) > 0 and dead.issuperset(users)
            is_called = op.name == "func.func" and op.attributes["sym_name"].value in called
            if is_unused or is_called or (op.parent is not None and op.parent.operation in dead):
                dead.add(op)
                if op.name == "func.call":
                    called.add(op.attributes["callee"].value)
    return dead
