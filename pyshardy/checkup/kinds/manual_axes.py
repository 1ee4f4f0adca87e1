"""Calls of `jax.shard_map` whose specs leave out an axis, along which devices then compute the same."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.patching.source import replaced
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.ir.constants import constant_integer
from pyshardy.ir.device_groups import grouping
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.shardings import module_meshes
from pyshardy.ir.symbols import SymbolTable
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.hints.code import Code
from pyshardy.rules.properties import PROGRAM_CONSTANTS
from pyshardy.source.meanings import name_of
from pyshardy.source.places import SourcePlace, format_place
from pyshardy.source.syntax import syntax_tree

_MANUAL = "sdy.manual_computation"
_IN, _OUT, _AXES = "in_shardings", "out_shardings", "manual_axes"
_JOINING = ("stablehlo.all_reduce", "stablehlo.all_gather", "stablehlo.reduce_scatter")
"""What brings the parts of several devices together."""
_KEEPING = frozenset((_MANUAL, "stablehlo.while", "stablehlo.dynamic_update_slice", "stablehlo.return"))
"""What reads what a body keeps for its gradient."""
_DEVICE, _SCATTER = "stablehlo.partition_id", "stablehlo.scatter"
_SHARD_MAP, _AXIS_NAMES = "shard_map", "axis_names"
_WITHOUT_NAMES = "jax.experimental.shard_map"
"""The module whose `shard_map` does not take `axis_names`."""
WHY = "what a spec does not name is gathered whole before the function runs"


class IdleAxes(NamedTuple):
    """A line that calls `jax.shard_map`, and the axes that its specs leave out.

    Attributes:
        place: The line.
        axes: The axes.
        ops: Each op of the line, with the ops inside it.
    """

    place: SourcePlace
    axes: tuple[str, ...]
    ops: Sequence[tuple[Op, Sequence[Op]]]

    @property
    def names(self) -> str:
        """The axes, in words."""
        return " and ".join(f'"{axis}"' for axis in self.axes)

    @property
    def what(self) -> str:
        """What is wrong, in words."""
        at = format_place(self.place)
        return f"the specs of jax.shard_map at {at} leave out {self.names}, so its devices compute the same"

    @property
    def kept(self) -> tuple[str, ...]:
        """The axes that stay manual."""
        return tuple(axis for axis in self.ops[0][0].attrs[_AXES] if axis not in self.axes)


def idle_axes(module: Module, mesh: Mesh) -> Iterator[IdleAxes]:
    """The lines that call `jax.shard_map` with specs that leave out an axis of all that they give.

    They do not sum or gather along it either: else parts come together there.

    Args:
        module: The program.
        mesh: Its mesh.
    """
    meshes = module_meshes(module.root)
    lines: dict[tuple[tuple[str, int], tuple[str, ...]], list[tuple[SourcePlace, Op, Sequence[Op]]]] = {}
    for op in ops_named(module.root, (_MANUAL,)):
        body = list(_body(module, op))
        used = _axes_together(op, body, meshes)
        idle = tuple(axis for axis, size in mesh.axes if size > 1 and axis not in used and axis in op.attrs[_AXES])
        place = next(iter(Code.of(op, module.name).path), None)
        if place is not None and idle:
            lines.setdefault((place[:2], idle), []).append((place, op, body))
    for (_, axes), found in lines.items():
        yield IdleAxes(found[0][0], axes, [(op, body) for _, op, body in found])


def _axes_together(op: Op, body: Sequence[Op], meshes: Mapping[str, Mesh]) -> set[str]:
    """The axes whose devices give different parts of the results, or bring parts together.

    What is kept for the gradient has the axes of all devices, whatever these compute, and is for another such op. Where
    no operand is split along an axis and nothing asks for the device, what is summed along it is the same, too.
    """
    given = [
        sharding
        for value, sharding in zip(op.results, op.attrs[_OUT])
        if any(user.name not in _KEEPING for user in value.users())
    ]
    groups = [grouping(one.attrs["replica_groups"], meshes).axes or () for one in body if one.name in _JOINING]
    dims = [axes for one in given or op.attrs[_OUT] for axes in one.dim_axes]
    split = {axis.name for one in op.attrs[_IN] for axes in one.dim_axes for axis in axes}
    asks = any(one.name == _DEVICE for one in body)
    joined = {axis.name for axes in groups for axis in axes if asks or axis.name in split}
    return joined | {axis.name for axes in dims for axis in axes}


def _body(module: Module, op: Op) -> Iterator[Op]:
    """The ops in an op and in the functions that they call."""
    table, todo = SymbolTable(module.root), [op]
    seen: set[str] = set()
    while todo:
        for inner in walk(todo.pop()):
            yield inner
            name = inner.attrs.get("callee")
            if name is not None and name not in seen:
                seen.add(name)
                todo.append(table[name])


def manual_cures(module: Module, mesh: Mesh) -> Iterator[Cure]:
    """The axes that the specs of a `jax.shard_map` leave out, left to propagation inside it, too.

    The function computes the same: nothing in it depends on the device along these axes.

    Args:
        module: The program.
        mesh: Its mesh.
    """
    for one in idle_axes(module, mesh):
        if not one.kept or any(_names(op, one.axes) or _asks_for(body, one.axes, mesh) for op, body in one.ops):
            continue
        argument, at = f"{_AXIS_NAMES}={{{', '.join(map(repr, one.kept))}}}", format_place(one.place)
        yield Cure(
            FindingKind.KERNEL,
            one.what,
            WHY,
            one.place,
            f"jax.shard_map(..., {argument}) at {at}, so that {one.names} splits what its function computes",
            partial(_left_open, place=one.place, axes=one.axes),
            partial(_patch, one.place, argument),
            (_AXES, one.place),
        )


def _names(op: Op, axes: Sequence[str]) -> bool:
    """Whether an operand or a result is split along one of some axes, as what is kept for the gradient is."""
    given = (*op.attrs[_IN], *op.attrs[_OUT])
    return any(axis.name in axes for one in given for dim in one.dim_axes for axis in dim)


def _asks_for(body: Sequence[Op], axes: Sequence[str], mesh: Mesh) -> bool:
    """Whether a function asks for its place along one of some axes, or for its device otherwise.

    `jax.lax.axis_index` divides the number of the device by that of the devices behind the axis, and takes the rest.
    """
    sizes, kept = dict(mesh.axes), {}
    for place, (axis, size) in enumerate(mesh.axes):
        if axis not in axes:
            kept[prod([sizes[other] for other, _ in mesh.axes[place + 1 :]]), size] = axis
    for op in [op for op in body if op.name == _DEVICE]:
        for divided in op.result.users():
            parts = _by_constant(divided, "stablehlo.divide")
            rests = [_by_constant(rest, "stablehlo.remainder") for rest in divided.result.users()] if parts else []
            if parts is None or not all(rest is not None and (parts, rest) in kept for rest in rests):
                return True
    return False


def _by_constant(op: Op, name: str) -> int | None:
    """The constant by which an op of some name divides; None for another op."""
    return constant_integer(op.operands[1]) if op.name == name else None


def _left_open(module: Module, place: SourcePlace, axes: Sequence[str]) -> Module:
    """The program in which the calls of a line leave some axes to propagation."""
    root = module.copy_root()
    with module.context:
        for op in ops_named(root, (_MANUAL,)):
            path = Code.of(op, module.name).path
            if path and path[0][:2] == place[:2] and set(axes) <= set(op.attrs[_AXES]):
                op.set_attr(_AXES, tuple(axis for axis in op.attrs[_AXES] if axis not in axes))
                for kind in (_IN, _OUT):
                    op.set_attr(kind, tuple(map(_opened, op.attrs[kind])))
                mesh = next(one.mesh for kind in (_IN, _OUT) for one in op.attrs[kind])
                for inner in [inner for inner in walk(op) if inner is not op]:
                    _constrain_openly(inner, mesh)
    return module.with_root(root)


def _opened(sharding: TensorSharding) -> TensorSharding:
    return sharding.with_dims([DimSharding(dim.axes, True) for dim in sharding.dims])


def _constrain_openly(op: Op, mesh: Mesh | str) -> None:
    """Constrain the results of an op to a sharding of open dimensions, as JAX does where some axes are not manual.

    It does so also in what a scatter-add computes, which XLA then takes for no sum: it gathers the updates.
    """
    if op.name in (CONSTRAINT, *PROGRAM_CONSTANTS):
        return
    for made in op.results:
        shape = made.type.shape
        if made.users() and (shape or (shape is not None and op.enclosing(_SCATTER) is not None)):
            open_one = TensorSharding(mesh, [DimSharding((), True)] * len(shape))
            constraint = Op(CONSTRAINT, [made], [made.type], {"sharding": open_one}, location=op.place)
            made.replace_uses(constraint.result)
            constraint.set_operand(0, made)
            constraint.insert_after(op)


def _patch(place: SourcePlace, argument: str) -> str:
    """A diff that gives a call of `jax.shard_map` one more argument; empty if it is not sure which call."""
    file, line, _ = place
    tree = syntax_tree(file)
    found = [] if tree is None else list(_shard_maps(tree, line))
    if len(found) != 1 or any(word.arg == _AXIS_NAMES for word in found[0].keywords):
        return ""
    ends = [
        (one.end_lineno or 0, one.end_col_offset or 0)
        for one in (*found[0].args, *(w.value for w in found[0].keywords))
    ]
    at, column = max(ends)
    return replaced(file, at, column, column, f", {argument}")


def _shard_maps(tree: ast.Module, line: int) -> Iterator[ast.Call]:
    """The calls of `jax.shard_map` by which a line runs a function on shards: on it, or of what it calls."""
    nodes = list(ast.walk(tree))
    if any(isinstance(node, ast.ImportFrom) and node.module == _WITHOUT_NAMES for node in nodes):
        return
    on_line = [one for one in nodes if isinstance(one, ast.Call) and one.lineno <= line <= (one.end_lineno or 0)]
    own = [one for one in on_line if _is_shard_map(one)]
    called = {name_of(one.func) for one in on_line}
    yield from own
    for node in nodes if not own else ():
        if isinstance(node, ast.Assign) and any(name_of(target) in called for target in node.targets):
            yield from (one for one in [node.value] if isinstance(one, ast.Call) and _is_shard_map(one))
        elif isinstance(node, ast.FunctionDef) and node.name in called:
            yield from (one for one in node.decorator_list if isinstance(one, ast.Call) and _is_shard_map(one))


def _is_shard_map(call: ast.Call) -> bool:
    """Whether a call is one of `jax.shard_map`, or of `functools.partial` with it."""
    return _SHARD_MAP in (
        name_of(call.func),
        *(name_of(one) for one in call.args[:1] if name_of(call.func) == "partial"),
    )
