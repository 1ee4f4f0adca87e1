"""`pyshardy-import-hlo-shardings`: imports `mhlo.sharding`, GSPMD's tilings or named axes, as Shardy's shardings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pyshardy.core.hlo_sharding import HloKind, HloSharding, is_named, parse_hlo_shardings
from pyshardy.core.mesh import Mesh
from pyshardy.core.scanner import int64
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import check_sharding, mesh_of
from pyshardy.core.text import quote
from pyshardy.core.tilings import TilingMesh, device_order
from pyshardy.errors import InvalidShardingError, NotationError, UsageError
from pyshardy.ir.attributes import Attributes
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.functions import SHARDING, functions, is_declaration, return_op
from pyshardy.ir.hlo_attributes import (
    CONSTRAINT_TARGET,
    FULL_TO_SHARD,
    GROUP_ID,
    HLO_SHARDING,
    MANUAL_AXES,
    SHARD_TO_FULL,
    keeps_sharding,
    target_of,
    with_frontend_attribute,
)
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.ir.op_lists import ops_with
from pyshardy.ir.strings import string_of
from pyshardy.passes.base import Pass
from pyshardy.transforms.context import PassContext

_UNSPECIFIED = re.compile(r"unspecified_dims=\[([\d,\s]*)\]")
_EMPTY = Mesh([])
_MAY_OPEN_DIMS = (CONSTRAINT_TARGET, FULL_TO_SHARD, SHARD_TO_FULL)


class ImportHloShardings(Pass):
    """Turn `mhlo.sharding` into shardings of the dialect, with inlined meshes.

    Tilings are expressed on the coarsest mesh that fits all of them, or on that of the option `mesh`. If a module names
    its axes, `{replicated}` without a mesh is ignored. The shardings of most ops are ignored too, as in XLA. Only
    custom calls for ops of the dialect, Python callbacks, and communication with the host keep theirs.

    Attributes:
        mesh: The axes of the mesh for tilings, for example `data=4,model=2`.
    """

    name = "pyshardy-import-hlo-shardings"

    mesh: str = ""

    def run(self, op: Op, context: PassContext) -> None:  # noqa: D102
        _Importer(op, read_axes(self.mesh)).run()


def read_axes(text: str) -> tuple[tuple[str, int], ...] | None:
    """The axes of a mesh, from text as on a command line; None for an empty text.

    Raises:
        UsageError: The text is not a list of names with sizes.

    >>> read_axes("data=4,model=2")
    (('data', 4), ('model', 2))
    """
    if not text:
        return None
    found = []
    for part in text.split(","):
        name, equals, size = part.strip().partition("=")
        if not (name and equals and size.isdecimal() and int64(size)):
            needed = "axes with their sizes, like data=4,model=2"
            raise UsageError("reading the axes of a mesh", got=f"'{text}'", needed=needed)
        found.append((name, int(size)))
    if len(dict(found)) < len(found):
        raise UsageError("reading the axes of a mesh", got=f"'{text}'", needed="every axis once")
    return tuple(found)


@dataclass(slots=True)
class _AnnotatedPlace:
    """A place with an `mhlo.sharding`.

    Attributes:
        op: The op that errors name: the annotated op, or the function.
        attrs: The attributes that contain the annotation; `store` writes the changed attributes back.
        types: The types of the values.
        place: For an argument or result, the name of the function's attribute, and the number; None for an op.
        open_dims_call: The custom call that may list open dimensions: the op itself, or the op that makes a result
            of the function with the same sharding.
    """

    op: Op
    attrs: Attributes
    types: list[ValueType]
    place: tuple[str, int] | None
    open_dims_call: Op | None

    @property
    def is_on_op(self) -> bool:
        """Whether it belongs to an op rather than to an argument or result."""
        return self.place is None

    def store(self) -> None:
        """Write the new attributes to the op, argument or result."""
        if self.place is None:
            self.op.attrs = self.attrs
        else:
            kind, index = self.place
            entries = self.op.attrs[kind]
            self.op.set_attr(kind, (*entries[:index], self.attrs, *entries[index + 1 :]))


class _Importer:
    def __init__(self, root: Op, axes: tuple[tuple[str, int], ...] | None) -> None:
        self.sites = [site for site in _sites(root) if HLO_SHARDING in site.attrs]
        texts = [string_of(site.attrs[HLO_SHARDING]) or "" for site in self.sites]
        self.is_named = any(map(is_named, texts))
        self.read: dict[str, tuple[HloSharding, ...]] = {}
        for site, text in zip(self.sites, texts):
            self._parse(site, text)
        tilings = [one for found in self.read.values() for one in found if one.kind is HloKind.TILED]
        try:
            self.tilings = TilingMesh(axes, device_order(tilings))
        except InvalidShardingError as error:
            raise UsageError(error.doing, got=error.got, needed=error.needed, hint=error.hint) from error
        for site, text in zip(self.sites, texts):
            self._add(site, text)
        self.texts = texts

    def _parse(self, site: _AnnotatedPlace, text: str) -> None:
        if text in self.read:
            return
        try:
            self.read[text] = parse_hlo_shardings(text)
        except NotationError as error:
            raise PassError(site.op, f"has {HLO_SHARDING} = {text}, which cannot be read: {error}") from error

    def _add(self, site: _AnnotatedPlace, text: str) -> None:
        for one in self.read[text]:
            if one.kind is HloKind.TILED:
                try:
                    self.tilings.add(one)
                except InvalidShardingError as error:
                    raise PassError(site.op, f"has {HLO_SHARDING} = {text}: {error}") from error

    def run(self) -> None:
        """Replace every `mhlo.sharding`."""
        for site, text in zip(self.sites, self.texts):
            try:
                self._import(site, self.read[text])
            except InvalidShardingError as error:
                raise PassError(site.op, f"has {HLO_SHARDING} = {text}: {error}") from error
            site.attrs = site.attrs.without(HLO_SHARDING)
            site.store()

    def _import(self, site: _AnnotatedPlace, found: tuple[HloSharding, ...]) -> None:
        _import_group(site, found)
        if site.is_on_op and not self._keeps(site, found):
            return
        shardings = self._convert_all(site, found)
        if not any(shardings):
            return
        if not site.is_on_op:
            site.attrs = site.attrs.with_value(SHARDING, shardings[0])
            return
        known = next(sharding for sharding in shardings if sharding is not None)
        complete = tuple(
            sharding or TensorSharding.fully_replicated(known.mesh, rank, is_open=True)
            for sharding, rank in zip(shardings, [type.rank for type in site.types] or [0])
        )
        site.attrs = site.attrs.with_value(SHARDING, complete)

    def _keeps(self, site: _AnnotatedPlace, found: tuple[HloSharding, ...]) -> bool:
        """Record the manual axes of an op; return whether it gets a sharding."""
        is_call, is_kept = site.op.name == "func.call", keeps_sharding(site.op)
        manual = next(filter(None, (self._manual_axes(site.op, one) for one in found)), ())
        if manual and (is_call or is_kept):
            site.attrs = with_frontend_attribute(site.attrs, MANUAL_AXES, _manual_text(manual))
        return SHARDING not in site.attrs and not is_call and (is_kept or not self.is_named)

    def _convert_all(self, site: _AnnotatedPlace, found: tuple[HloSharding, ...]) -> list[TensorSharding | None]:
        """The sharding of every value. An op without results, such as a callback, has one sharding."""
        types: list[ValueType | None] = [*site.types] or [None] * min(len(found), 1)
        if len(found) == 1:
            found = found * len(types)
        if len(types) != len(found):
            raise InvalidShardingError("counting shardings", got=f"{len(found)}", needed=f"{len(types)}, one per value")
        is_constraint = site.is_on_op and target_of(site.op) == CONSTRAINT_TARGET
        shardings = [self._convert(one, type, is_constraint) for one, type in zip(found, types)]
        if site.open_dims_call is None:
            return shardings
        return [_with_open_dims(site.open_dims_call, sharding) for sharding in shardings]

    def _convert(self, one: HloSharding, type: ValueType | None, is_constraint: bool) -> TensorSharding | None:
        """The sharding of a value; None if the annotation gives none."""
        rank = 0 if type is None else type.rank
        if one.kind is HloKind.ONE_DEVICE:
            return TensorSharding(Mesh([], [one.device]))
        if one.kind in (HloKind.UNKNOWN, HloKind.MANUAL):
            return None
        if one.kind is HloKind.REPLICATED:
            if one.mesh is None and self.is_named and not is_constraint:
                return None
            mesh = one.mesh or (_EMPTY if self.is_named else self.tilings.mesh())
            return TensorSharding.fully_replicated(mesh, rank)
        found = one.named if one.kind is HloKind.NAMED else self.tilings.place(one).sharding
        assert found is not None
        check_sharding(found, mesh_of(found, {}), rank)
        return found

    def _manual_axes(self, op: Op, one: HloSharding) -> tuple[str, ...]:
        """The names of the manual axes of a sharding."""
        if one.kind is HloKind.MANUAL:
            mesh = one.mesh or self.tilings.mesh()
            return mesh.axis_names
        if one.kind is HloKind.NAMED:
            axes = one.manual
        elif one.kind is HloKind.TILED:
            axes = self.tilings.place(one).manual
        else:
            return ()
        part = next((axis for axis in axes if not axis.is_full), None)
        if part is not None:
            raise PassError(op, f"is manual along {part}, a part of an axis; manual axes are whole")
        return tuple(axis.name for axis in axes)


def _import_group(site: _AnnotatedPlace, found: tuple[HloSharding, ...]) -> None:
    """Record the group that a constraint puts its tensor into."""
    groups = [one.group for one in found if one.group is not None]
    if not groups:
        return
    if not site.is_on_op or target_of(site.op) != CONSTRAINT_TARGET:
        needed = f"it only in the sharding of a @{CONSTRAINT_TARGET}"
        raise InvalidShardingError("grouping tensors", got="shard_as or shard_like in its sharding", needed=needed)
    site.attrs = with_frontend_attribute(site.attrs, GROUP_ID, f"{groups[0]} : i64")


def _manual_text(names: tuple[str, ...]) -> str:
    return "#sdy<manual_axes{" + ", ".join(map(quote, names)) + "}>"


def _with_open_dims(op: Op, sharding: TensorSharding | None) -> TensorSharding | None:
    """The sharding of a constraint, with the dimensions opened that the constraint leaves to propagation."""
    match = _UNSPECIFIED.search(string_of(op.attrs.get("backend_config")) or "")
    if sharding is None or match is None:
        return sharding
    left = {int(part) for part in match[1].split(",") if part.strip()}
    return sharding.with_dims(dim.opened() if index in left else dim for index, dim in enumerate(sharding.dims))


def _open_dims_call_of(value: Value, text: str | None) -> Op | None:
    """The custom call that makes a value and may list open dimensions, if it has this sharding."""
    maker = value.defining_op
    if maker is None or target_of(maker) not in _MAY_OPEN_DIMS:
        return None
    return maker if text is not None and string_of(maker.attrs.get(HLO_SHARDING)) == text else None


def _sites(root: Op) -> Iterator[_AnnotatedPlace]:
    for function in functions(root):
        if is_declaration(function):
            continue
        arguments = [arg.type for arg in function.region.blocks[0].args]
        for index, (entry, type) in enumerate(zip(function.attrs.get("arg_attrs") or (), arguments)):
            yield _AnnotatedPlace(function, entry, [type], ("arg_attrs", index), None)
        returned = return_op(function).operands
        for index, (entry, value) in enumerate(zip(function.attrs.get("res_attrs") or (), returned)):
            open_dims_call = _open_dims_call_of(value, string_of(entry.get(HLO_SHARDING)))
            yield _AnnotatedPlace(function, entry, [value.type], ("res_attrs", index), open_dims_call)
    for op in ops_with(root, HLO_SHARDING):
        open_dims_call = op if target_of(op) in _MAY_OPEN_DIMS else None
        yield _AnnotatedPlace(op, op.attrs, [result.type for result in op.results], None, open_dims_call)
