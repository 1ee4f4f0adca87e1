"""Constraints that are left out, or that let through the axes that they drop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import chain, combinations
from math import prod

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.scopes import scope_path
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.core.spec import format_spec
from pyshardy.errors import UsageError
from pyshardy.explain.reason import ReasonKind
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.functions import SHARDING, arg_attrs, main_function
from pyshardy.ir.locations import read_location, source_frames
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.readers import Readers
from pyshardy.propagation.origins import CONSTRAINT
from pyshardy.results.hints.code import Code, CodeEdit, divides
from pyshardy.results.propagation import Propagation
from pyshardy.source.constraining import constrains_alike, is_in_helper
from pyshardy.source.places import SourcePlace, format_place, is_library


def left_out_constraints(module: Module) -> Iterator[CodeEdit]:
    """Programs without one constraint, and without its copies in the gradient; one program for each constraint.

    Args:
        module: The program as the user gave it.
    """
    for codes, place, op in _constraints(module):
        what = f"the constraint {_spec(op.attrs['sharding'])} {_at(place, op, module.name)}"
        yield CodeEdit(what, f"leave out {what}", place, codes, _leave_out)


def wider_constraints(propagated: Propagation) -> Iterator[tuple[CodeEdit, TensorSharding, TensorSharding]]:
    """Programs in which one constraint lets through the axes that it drops; one program for each constraint.

    Args:
        propagated: The propagated program.

    Yields:
        The edit, the sharding of the constraint, and the one with these axes.
    """
    module = propagated.before
    for codes, place, op in _constraints(module):
        sharding: TensorSharding = op.attrs["sharding"]
        wider = _wider(propagated, op, module.name)
        if wider is not None and _takes(codes, wider, mesh_of(sharding, propagated.meshes)):
            what = f"the constraint {_spec(sharding)} {_at(place, op, module.name)}"
            text = f"constrain to {_spec(wider)} {_at(place, op, module.name)}"
            yield CodeEdit(what, text, place, codes, partial(_constrain_to, wider)), sharding, wider


def other_constraints(propagated: Propagation) -> Iterator[tuple[CodeEdit, TensorSharding, TensorSharding]]:
    """The program with one of its constraints each that has the axes of two dimensions exchanged, or one axis less.

    Args:
        propagated: The propagated program.

    Yields:
        The edit, the sharding of the constraint, and the other one; those of the largest values first.
    """
    for codes, place, op in sorted(
        _constraints(propagated.before), key=lambda one: -prod(one[2].operands[0].type.shape or ())
    ):
        sharding: TensorSharding = op.attrs["sharding"]
        mesh = mesh_of(sharding, propagated.meshes)
        for dims in _exchanged(sharding.dims):
            other = TensorSharding(sharding.mesh, dims)
            if _takes(codes, other, mesh):
                what = f"the constraint {_spec(sharding)} {_at(place, op, propagated.before.name)}"
                text = f"constrain to {_spec(other)} {_at(place, op, propagated.before.name)}"
                yield CodeEdit(what, text, place, codes, partial(_constrain_to, other)), sharding, other


def whole_batch_constraints(
    propagated: Propagation, rows: Collection[tuple[str, ...]]
) -> Iterator[tuple[CodeEdit, TensorSharding, TensorSharding]]:
    """Programs in which the constraints of one line that keep only some axes of a batch keep all of them.

    Such a line may be in a function of the user that constrains its argument: these are one.

    Args:
        propagated: The propagated program.
        rows: The axes that split the first dimension of inputs of a batch.

    Yields:
        The edit, the sharding of the constraint, and the one with these axes.
    """
    module = propagated.before
    repeating = {Code.of(op, module.name) for op in _of_inputs(module)}
    lines: dict[tuple[SourcePlace, str], list[tuple[Code, Op]]] = {}
    for op in ops_named(module.root, (CONSTRAINT,)):
        code, sharding = Code.of(op, module.name), op.attrs["sharding"]
        if code.path and code not in repeating and sharding.rank:
            lines.setdefault(((*code.path[0][:2], 0), _spec(sharding)), []).append((code, op))
    for (place, spec), found in lines.items():
        sharding = found[0][1].attrs["sharding"]
        mesh = mesh_of(sharding, propagated.meshes)
        own, *others = ({axis.name for axis in axes} for axes in sharding.dim_axes)
        for axes in sorted(one for one in rows if own < set(one) and own and set(one).isdisjoint(chain(*others))):
            first = DimSharding(tuple(map(AxisRef, axes)), sharding.dims[0].is_open)
            if all(divides(first.axes, (op.operands[0].type.shape or ())[0], mesh) for _, op in found):
                whole, at = sharding.with_dims([first, *sharding.dims[1:]]), format_place(place)
                codes = tuple(dict.fromkeys(code for code, _ in found))
                what, text = f"the constraint {spec} at {at}", f"constrain to {_spec(whole)} at {at}"
                yield CodeEdit(what, text, place, codes, partial(_split_first, first)), sharding, whole


def _split_first(dim: DimSharding, op: Op, _: AttrTable) -> None:
    given: TensorSharding = op.attrs["sharding"]
    op.set_attr("sharding", given.with_dims([dim, *given.dims[1:]]))


def _takes(codes: Sequence[Code], sharding: TensorSharding, mesh: Mesh) -> bool:
    """Whether all values that a line constrains can have a sharding."""
    shapes = [code.shapes[0] for code in codes]
    return all(
        shape is not None and len(shape) == sharding.rank
        and all(divides(dim.axes, size, mesh) for dim, size in zip(sharding.dims, shape))
        for shape in shapes
    )  # fmt: skip


def _exchanged(dims: Sequence[DimSharding]) -> Iterator[list[DimSharding]]:
    """The axes of two dimensions exchanged, where both have some; then one dimension whole; then moved to another."""
    pairs = list(combinations(range(len(dims)), 2))
    for one, other in [pair for pair in pairs if dims[pair[0]].axes and dims[pair[1]].axes]:
        yield [dims[other] if at == one else dims[one] if at == other else dim for at, dim in enumerate(dims)]
    for place in [place for place, dim in enumerate(dims) if dim.axes]:
        yield [DimSharding((), dim.is_open) if at == place else dim for at, dim in enumerate(dims)]
    for one, other in [pair for pair in pairs if bool(dims[pair[0]].axes) != bool(dims[pair[1]].axes)]:
        yield [dims[other] if at == one else dims[one] if at == other else dim for at, dim in enumerate(dims)]


def _wider(propagated: Propagation, constraint: Op, name: str) -> TensorSharding | None:
    """The sharding of a constraint with the axes that it drops; None if it drops none."""
    sharding: TensorSharding = constraint.attrs["sharding"]
    used = {axis.name for axes in sharding.dim_axes for axis in axes}
    mesh = mesh_of(sharding, propagated.meshes)
    dims = list(sharding.dims)
    for dim, axis in _dropped(propagated, constraint, name):
        size = (constraint.operands[0].type.shape or ())[dim]
        if axis not in used and axis in dict(mesh.axes) and divides((*dims[dim].axes, AxisRef(axis)), size, mesh):
            dims[dim] = DimSharding((*dims[dim].axes, AxisRef(axis)), dims[dim].is_open)
            used.add(axis)
    return TensorSharding(sharding.mesh, dims) if tuple(dims) != tuple(sharding.dims) else None


def _dropped(propagated: Propagation, constraint: Op, name: str) -> list[tuple[int, str]]:
    """The dimensions that a constraint keeps whole, with the axis that would have come.

    Propagation gives the sharding of a constraint to the op that makes its operand, if nothing else reads that.
    """
    value = constraint.operands[0]
    found: dict[tuple[int, str], None] = {}
    for op in filter(None, (value.defining_op, constraint)):
        path = Code.of(op, name).path
        try:
            stories = propagated.why.lacking(f"{path[0][0]}:{path[0][1]}", value.type.shape or ()) if path else []
        except UsageError:  # no op of the propagated program is from this line
            continue
        for dim in [dim for story in stories for dim in story.dims]:
            closed = [one.axis for one in dim.reasons if one.kind == ReasonKind.CLOSED.value and one.axis]
            found |= dict.fromkeys((dim.dim, axis.strip('"')) for axis in closed)
    return list(found)


def _constraints(module: Module) -> Iterator[tuple[tuple[Code, ...], SourcePlace, Op]]:
    """The constraints of a program, the first op of each, with their code and the line that names them alone.

    A function of the user may constrain its argument. Such a constraint is named by the call, if no other constraint
    comes from that call. One that only repeats the annotation of an input is none of the user's: flax adds these.
    A line may constrain several values, as in a loop: these are one, unless they are of layers with other names. So are
    those of a line that constrains to the same spec whatever calls it.
    """
    repeating = {Code.of(op, module.name) for op in _of_inputs(module)}
    found: dict[Code, Op] = {}
    scopes: dict[Code, set[str]] = {}
    for op in ops_named(module.root, (CONSTRAINT,)):
        code = Code.of(op, module.name)
        if code not in repeating:
            found.setdefault(code, op)
            scopes.setdefault(code, set()).add(scope_path(read_location(op.location, module.name).scope) or "")
    whole: dict[Code, list[Code]] = {}
    for code in sorted(found, key=lambda code: -len(code.path)):
        alike = [one for one in whole if _lacks_calls(code, one)]
        whole.setdefault(alike[0] if len(alike) == 1 else code, []).append(code)
    lines: dict[tuple[tuple[SourcePlace, ...], frozenset[str]], list[Code]] = {}
    written: dict[SourcePlace, list[Code]] = {}
    for code in [code for code in found if code.path and code in whole]:
        place = next((place for place in code.path if not is_in_helper(place)), code.path[-1])
        if constrains_alike(place):
            written.setdefault((*place[:2], 0), []).append(code)
        else:
            lines.setdefault((code.path, frozenset(scopes[code])), []).append(code)
    for place, codes in written.items():
        yield tuple(one for code in codes for one in whole[code]), place, found[codes[0]]
    paths = {path for path, _ in lines}
    shared = Counter(path[:depth] for path in paths for depth in range(1, len(path) + 1))
    for (path, _), codes in lines.items():
        alone = (place for depth, place in enumerate(path, 1) if shared[path[:depth]] == 1)
        own = (place for place in alone if not is_in_helper(place))
        yield tuple(one for code in codes for one in whole[code]), next(own, path[-1]), found[codes[0]]


def _of_inputs(module: Module) -> Iterator[Op]:
    """The constraints of inputs to the axes that they are annotated with."""
    main, readers = main_function(module.root), Readers(module.root)
    for arg in main.region.blocks[0].args:
        given: TensorSharding | None = arg_attrs(main, arg.index).get(SHARDING)
        if given is not None:
            for op in [op for op, _ in readers.of(arg) if op.name == CONSTRAINT]:
                if op.attrs["sharding"].dim_axes == given.dim_axes:
                    yield op


def _lacks_calls(code: Code, other: Code) -> bool:
    """Whether a code is another's without calls in its middle: those around `jax.checkpoint` are in gradients only."""
    count = len(code.path)
    if (code.name, code.shapes) != (other.name, other.shapes) or len(other.path) <= count:
        return False
    inner = next((at for at, pair in enumerate(zip(code.path, other.path)) if pair[0] != pair[1]), count)
    return inner > 0 and code.path[inner:] == other.path[len(other.path) - (count - inner) :]


def _at(place: SourcePlace, op: Op, name: str) -> str:
    """Where a constraint is, in words: with its module if a library makes it, as keras does for outputs of layers."""
    frames = source_frames(op.location, name)
    scope = scope_path(read_location(op.location, name).scope) if frames and is_library(frames[0][0]) else None
    return f"in `{scope}` at {format_place(place)}" if scope else f"at {format_place(place)}"


def _spec(sharding: TensorSharding) -> str:
    return format_spec([axis.name for axis in axes] for axes in sharding.dim_axes)


def _constrain_to(sharding: TensorSharding, op: Op, _: AttrTable) -> None:
    op.set_attr("sharding", sharding)


def _leave_out(op: Op, _: AttrTable) -> None:
    op.result.replace_uses(op.operands[0])
    op.erase()
