"""Decides which dimensions of convolutions and window reductions run on shards, and which are gathered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from pyshardy.core.axes import Axes
from pyshardy.core.axis_lists import axes_size, subtract_axes
from pyshardy.core.boxes import local_shape
from pyshardy.core.identities import identity_text, zero_text
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.core.text import format_bytes
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.dtypes import tensor_bytes
from pyshardy.ir.nodes import Op, Value
from pyshardy.ir.shardings import get_sharding
from pyshardy.reshard.window_halo import Stretches
from pyshardy.rules.dimension_numbers import ConvolutionNumbers
from pyshardy.rules.rule import Rule
from pyshardy.transforms.context import PassContext
from pyshardy.transforms.exchanges.convolution import is_plain_contraction, uneven_group_factors
from pyshardy.transforms.exchanges.manual import Fill, axes_of_dim
from pyshardy.transforms.exchanges.replicate import replicate_factors
from pyshardy.transforms.exchanges.resolver import Resolver
from pyshardy.transforms.exchanges.scattered import Scattered, Touching, fills_of, touching
from pyshardy.transforms.exchanges.sharded_op import Environment
from pyshardy.transforms.exchanges.window_numbers import (
    DilationNames,
    WindowDim,
    of_outputs,
    of_taps,
    window_dims,
)
from pyshardy.transforms.exchanges.windowed import Windowed
from pyshardy.transforms.reduction_kinds import combiners, neutral_text

_OF_CONVOLUTION = DilationNames("lhs_dilation", "rhs_dilation")
_OF_REDUCTION = DilationNames("base_dilations", "window_dilations")


_ROUNDS = 2
"""The most rounds of gathering. The first gathers the kernel where output and kernel share a dimension of the input."""


class _Moving(NamedTuple):
    """A sharded dimension along which windows move.

    Attributes:
        place: Its number in the window.
        dims: Its dimension in every tensor, operands first.
        axes: The axes along which the start of the interval grows from shard to shard.
        stretches: The interval or the windows that every shard needs; None if the op cannot run on shards along it.
        to_gather: The dimensions to gather in that case.
    """

    place: int
    dims: tuple[tuple[int, int], ...]
    axes: Axes
    stretches: Stretches | Touching | None
    to_gather: tuple[tuple[int, int], ...]


def resolve_windowed(op: Op, resolver: Resolver) -> bool:
    """Exchange halos for an op with windows; gather dimensions along which that is impossible, with a warning."""
    options = resolver.options
    if not (options.enable_halo_exchange and options.exchange_windows):
        return False
    rule = resolver.rule_to_resolve(op)
    if rule is not None:
        resolver.check_counts(op)
        _resolve(op, rule, resolver.context, resolver.env)
    return True


def _resolve(op: Op, rule: Rule, context: PassContext, env: Environment) -> None:
    meshes = context.meshes
    reader = _reader(op, context)
    before = _held_bytes(op, meshes)
    replicate_factors(op, rule, reader.refused_factors(rule, meshes), meshes)
    for _ in range(_ROUNDS):
        dims = _refused_dims(op, reader, meshes)
        replicate_factors(op, rule, {factor for index, dim in dims for factor in rule.tensors[index][dim]}, meshes)
    more = _held_bytes(op, meshes) - before
    if more > 0:
        _warn(op, more, context)
    on = _place_of([*op.operands, *op.results], meshes)
    if on is None or _refused_dims(op, reader, meshes):
        return  # what still cannot run on shards is refused when it is made local
    found = list(reader.moving(on[0]))
    if found:
        reader.rewrite(*on, env, found)


def _reader(op: Op, context: PassContext) -> _Reader:
    if op.name == "stablehlo.convolution":
        return _Convolution(op, context)
    return _Reduction(op) if op.name == "stablehlo.reduce_window" else _Scatter(op)


def _refused_dims(op: Op, reader: _Reader, meshes: Meshes) -> tuple[tuple[int, int], ...]:
    """The dimensions with windows that must be gathered before the op can run on shards."""
    values = [*op.operands, *op.results]
    all_dims = tuple(place for dims in reader.places for place in dims)
    if not any(axes_of_dim(values[index], dim) for index, dim in all_dims):
        return ()
    on = _place_of(values, meshes)
    if on is None:
        return all_dims
    found = list(reader.moving(on[0]))
    if _overlap(values, found):
        return all_dims
    return tuple(place for moving in found if moving.stretches is None for place in moving.to_gather)


def _place_of(values: list[Value], meshes: Meshes) -> tuple[Mesh, str | Mesh] | None:
    """The mesh of all tensors that are sharded; None if there are several, or none."""
    found = [sharding for value in values if (sharding := get_sharding(value)) and not sharding.is_fully_replicated]
    if not found or any(one.mesh != found[0].mesh for one in found):
        return None
    mesh = mesh_of(found[0], meshes)
    return None if mesh.is_single_device or mesh.is_empty else (mesh, found[0].mesh)


def _overlap(values: list[Value], found: list[_Moving]) -> bool:
    """Whether another dimension is sharded along a part of an axis along which windows move."""
    names = {axis.name for moving in found for axis in moving.axes}
    own = {place for moving in found for place in moving.dims}
    for index, value in enumerate(values):
        for dim in range(value.type.rank):
            if (index, dim) not in own and any(axis.name in names for axis in axes_of_dim(value, dim)):
                return True
    return False


def _warn(op: Op, more: int, context: PassContext) -> None:
    message = "cannot run on shards along some of its dimensions, which are gathered: every device holds"
    context.diagnostics.warn(op, f"'{op.name}' {message} {format_bytes(more)} more than its share")


def _held_bytes(op: Op, meshes: Meshes) -> int:
    """The bytes per device of the operands and results of an op."""
    total = 0
    for value in (*op.operands, *op.results):
        shape, sharding = value.type.shape, get_sharding(value)
        if shape is not None:
            if sharding is not None and sharding.dims:
                shape = local_shape(sharding, mesh_of(sharding, meshes), shape)
            total += tensor_bytes(shape, value.type.element)
    return total


def _emit(windowed: Windowed, found: list[_Moving], windows: list[WindowDim]) -> None:
    for moving in found:
        assert isinstance(moving.stretches, Stretches)
        windowed.add(moving.dims[0][1], moving.place, moving.axes, moving.stretches)
    windowed.emit(windows)


class _Convolution:
    """How a convolution runs on shards."""

    def __init__(self, op: Op, context: PassContext) -> None:
        self.op = op
        self.numbers = cast(ConvolutionNumbers, dict(context.specs.spec(op).attributes)["dimension_numbers"])
        rank = len(self.numbers.lhs_spatial)
        self.windows = window_dims(op, rank, _OF_CONVOLUTION)
        spatial = zip(self.numbers.lhs_spatial, self.numbers.kernel_spatial, self.numbers.output_spatial)
        self.places = [tuple(enumerate(dims)) for dims in spatial]

    def refused_factors(self, rule: Rule, meshes: Meshes) -> set[int]:
        """The factors whose shard boundaries would be inside a group."""
        return uneven_group_factors(self.op, rule, self.numbers, meshes)

    def moving(self, mesh: Mesh) -> Iterator[_Moving]:
        """The sharded spatial dimensions; none if all of them are plain contractions."""
        sharded = [place for place, dims in enumerate(self.places) if any(self._axes(dims))]
        if all(self._is_contraction(place) for place in sharded):
            return
        for place in sharded:
            dims = self.places[place]
            lhs, kernel, output = self._axes(dims)
            stretches = self._stretches(place, lhs, kernel, output, mesh)
            to_gather = dims[1:2] if kernel and output else dims
            yield _Moving(place, dims, output or kernel, stretches, to_gather)

    def rewrite(self, mesh: Mesh, ref: str | Mesh, env: Environment, found: list[_Moving]) -> None:
        """Exchange halos: every shard fetches the elements that its windows cover."""
        fill = Fill(zero_text(self.op.operands[0].type.element))
        _emit(Windowed(self.op, mesh, ref, env, [fill], _OF_CONVOLUTION), found, self.windows)

    def _axes(self, dims: tuple[tuple[int, int], ...]) -> tuple[Axes, Axes, Axes]:
        values = (*self.op.operands, self.op.result)
        lhs, kernel, output = (axes_of_dim(values[index], dim) for index, dim in dims)
        return lhs, kernel, output

    def _is_contraction(self, place: int) -> bool:
        lhs, kernel, output = self._axes(self.places[place])
        dims = [dim for _, dim in self.places[place]]
        return lhs == kernel and not output and is_plain_contraction(self.op, place, *dims)

    def _stretches(self, place: int, lhs: Axes, kernel: Axes, output: Axes, mesh: Mesh) -> Stretches | None:
        """The interval that every shard needs; None if the op cannot run on shards along the dimension."""
        values = (*self.op.operands, self.op.result)
        size, taps, out_size = ((values[index].type.shape or ())[dim] for index, dim in self.places[place])
        if min(size, taps, out_size) < 1:
            return None
        window = self.windows[place]
        if output and not kernel and lhs in ((), output):
            return of_outputs(window, size, taps, out_size, axes_size(output, mesh))
        if kernel and not output and lhs in ((), kernel):
            sharding = get_sharding(self.op.result)
            if sharding is not None and not subtract_axes(kernel, sharding.unreduced, mesh):
                return of_taps(window, size, taps, out_size, axes_size(kernel, mesh))
        return None


class _Reduction:
    """How a window reduction runs on shards."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.count = len(op.results)
        rank = op.results[0].type.rank
        self.windows = window_dims(op, rank, _OF_REDUCTION)
        self.taps = list(op.attrs["window_dimensions"])
        values = [*range(self.count), *range(2 * self.count, 3 * self.count)]
        self.places = [tuple((index, dim) for index in values) for dim in range(rank)]

    def refused_factors(self, rule: Rule, meshes: Meshes) -> set[int]:
        """No factors: there are no groups."""
        return set()

    def moving(self, mesh: Mesh) -> Iterator[_Moving]:
        """The sharded dimensions along which windows are larger than one element, or move by other steps."""
        values = [*self.op.operands, *self.op.results]
        for place, dims in enumerate(self.places):
            found = [axes_of_dim(values[index], dim) for index, dim in dims]
            if not any(found) or (self.taps[place] == 1 and self.windows[place] == WindowDim(0, 0, 1, 1, 1)):
                continue
            inputs, outputs = set(found[: self.count]), set(found[self.count :])
            axes = next(filter(None, found[::-1]))
            stretches = None
            if outputs == {axes} and len(inputs) == 1 and inputs <= {(), axes}:
                stretches = self._stretches(place, axes_size(axes, mesh))
            yield _Moving(place, dims, axes, stretches, dims)

    def rewrite(self, mesh: Mesh, ref: str | Mesh, env: Environment, found: list[_Moving]) -> None:
        """Exchange halos: every shard fetches the elements that its windows cover."""
        fills = [self._fill(index, name, env) for index, name in enumerate(self._combiners())]
        _emit(Windowed(self.op, mesh, ref, env, fills, _OF_REDUCTION), found, self.windows)

    def _combiners(self) -> tuple[str | None, ...]:
        return combiners(self.op) or (None,) * self.count

    def _fill(self, index: int, combiner: str | None, env: Environment) -> Fill:
        """The identity of the combiner if it is known; otherwise the initial value, as StableHLO defines padding."""
        place = self.count + index
        initial = self.op.operands[place]
        text = None if combiner is None else identity_text(combiner, initial.type.element)
        if text is None:
            return Fill(None, place)
        is_neutral = neutral_text(combiner, initial, env.attrs, only_counted=False) is None
        return Fill(text, place, None if is_neutral else combiner)

    def _stretches(self, place: int, shards: int) -> Stretches | None:
        size, out_size = ((value.type.shape or ())[place] for value in (self.op.operands[0], self.op.results[0]))
        if min(size, out_size) < 1:
            return None
        return of_outputs(self.windows[place], size, self.taps[place], out_size, shards)


class _Scatter:
    """How a `select_and_scatter` runs on shards."""

    def __init__(self, op: Op) -> None:
        self.op = op
        rank = op.result.type.rank
        self.windows = window_dims(op, rank, _OF_REDUCTION)
        taps = op.attrs.get("window_dimensions")
        self.taps = [1] * rank if taps is None else list(taps)
        if min(self.taps, default=1) < 1:  # MLIR's verifier lets it pass
            raise PassError(
                op, f"has windows of {'x'.join(map(str, self.taps))} elements, needed at least one each way"
            )
        self.places = [((0, dim), (1, dim), (3, dim)) for dim in range(rank)]
        self.fills = fills_of(op)

    def refused_factors(self, rule: Rule, meshes: Meshes) -> set[int]:
        """No factors: there are no groups."""
        return set()

    def moving(self, mesh: Mesh) -> Iterator[_Moving]:
        """The sharded dimensions along which windows are larger than one element, or move by other steps."""
        for place, dims in enumerate(self.places):
            operand, _, result = (axes_of_dim(value, place) for value in (*self.op.operands[:2], self.op.result))
            axes = result or operand
            if axes and not (self.taps[place] == 1 and self.windows[place] == WindowDim(0, 0, 1, 1, 1)):
                fits = result and operand in ((), result) and self.fills is not None
                yield _Moving(place, dims, axes, self._touching(place, axes_size(axes, mesh)) if fits else None, dims)

    def rewrite(self, mesh: Mesh, ref: str | Mesh, env: Environment, found: list[_Moving]) -> None:
        """Let every shard compute all windows that overlap it."""
        assert self.fills is not None
        scattered = Scattered(self.op, mesh, ref, env, self.fills)
        for moving in found:
            assert isinstance(moving.stretches, Touching)
            scattered.add(moving.place, moving.axes, moving.stretches)
        scattered.emit(self.windows)

    def _touching(self, place: int, shards: int) -> Touching | None:
        size, count = ((value.type.shape or ())[place] for value in self.op.operands[:2])
        return touching(self.windows[place], size, self.taps[place], count, shards) if min(size, count) else None


_Reader = _Convolution | _Reduction | _Scatter
