"""Edits the annotations of a propagated program, and shows what changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pyshardy.core.sharding import TensorSharding, is_unsharded
from pyshardy.frontend.annotate import (
    Checked,
    ShardingsByName,
    annotate_ports,
    annotated_meshes,
    checked,
    core_mesh,
    named_ports,
    store_annotations,
    with_mesh,
)
from pyshardy.ir.module import Module
from pyshardy.report.changes import Change, Total, folded_changes
from pyshardy.report.difference import Difference
from pyshardy.report.printing import Page, Printable
from pyshardy.results.compare import communication_of, compare_results, joined_changes, value_name
from pyshardy.results.edit_base import INPUT, OUTPUT, Base, EditState, Reach
from pyshardy.results.edit_run import import_edited, propagate_edits
from pyshardy.results.edit_scope import why_import
from pyshardy.results.program_result import ProgramResult
from pyshardy.results.sharded_program import finish_sharding, shard

R = TypeVar("R", bound=ProgramResult)
_UNTOLD = ("sdy.constant", "sdy.sharding_constraint")
_KINDS = {"arg_attrs": "input", "res_attrs": "output"}


@dataclass(frozen=True, eq=False, repr=False)
class Edit(Printable, Generic[R]):
    """A result with other annotations, and the difference they make.

    Attributes:
        before: The result without them.
        state: The propagated edits; None if the steps before propagation must run again.
        reach: The part of the program that the edits were propagated through.
        make_module: Makes the program with them, as its user would have given it.
    """

    before: R
    state: EditState | None
    reach: Reach
    make_module: Callable[[], Module]

    @cached_property
    def result(self) -> R:
        """The result with the annotations, made on first use.

        Only the first result of an edit prepares the program again; later ones reuse that.
        """
        before = self.before
        module = self.make_module()
        if self.state is None:
            sharded, root = shard(module, before.propagate_options)
        else:
            sharded, root = finish_sharding(import_edited(self.state, module), "", self.state)
        return before.remade(sharded, root)

    @cached_property
    def difference(self) -> Difference:
        """The difference: shardings, bytes per device, and, on demand, collectives."""
        if self.state is None:
            return compare_results(self.before, self.result, str(self.reach))
        return _difference(self, self.before.editing, self.state)

    def edit(self, shardings: ShardingsByName, mesh: Any = None) -> Edit[R]:
        """The result with further annotations; its difference is relative to this result."""
        return make_edit(self.result, shardings, mesh)

    def to_json(self) -> dict[str, Any]:
        """The difference as JSON-ready data."""
        return self.difference.to_json()

    def tables(self) -> Page:
        """The difference as tables, for a `rich` console."""
        return self.difference.tables()

    def __repr__(self) -> str:
        return f"<Edit of {self.before.title}: {self.reach}>"


def make_edit(before: R, shardings: ShardingsByName, mesh: Any = None) -> Edit[R]:
    """A result with other annotations; see `ProgramResult.edit`."""
    sharded = before.sharded
    state, interface = before.editing, sharded.interface
    given = named_ports(interface.inputs, interface.outputs, shardings)
    meshes = state.base.meshes
    brought = annotated_meshes(given) + ([] if mesh is None else [core_mesh(mesh)])
    if any(one not in meshes.values() for one in brought):
        module = before.before if mesh is None else with_mesh(before.before, core_mesh(mesh))
        annotated = annotate_ports(module, given, None if mesh is None else core_mesh(mesh))
        return _from_start(before, annotated, "the program gets another mesh")
    return _edited(before, checked(given, meshes, None if mesh is None else core_mesh(mesh)))


def edited_result(before: R, shardings: Iterable[tuple[str, int, TensorSharding | None]]) -> Edit[R]:
    """A result with other annotations that have been checked.

    Args:
        before: The result.
        shardings: "arg_attrs" or "res_attrs", the number of the input or output, and its sharding.
    """
    interface = before.sharded.interface
    tensors = {INPUT: interface.inputs, OUTPUT: interface.outputs}
    by_number = {(kind, tensor.index): tensor for kind, found in tensors.items() for tensor in found}
    return _edited(before, [(kind, by_number[kind, index], sharding) for kind, index, sharding in shardings])


def _edited(before: R, edits: Sequence[Checked]) -> Edit[R]:
    state = before.editing
    other = {(kind, tensor.index): (kind, tensor, sharding) for kind, tensor, sharding in edits}
    annotations = {**state.annotations, **other}

    def make_module() -> Module:
        return store_annotations(before.before, edits)

    why = why_import(state.base, annotations)
    if why is not None:
        return _from_start(before, make_module(), why)
    changed, reach = propagate_edits(state.base, annotations)
    return Edit(before, EditState(state.base, annotations, changed, reach), reach, make_module)


def _from_start(before: R, module: Module, why: str) -> Edit[R]:
    runs = before.sharded.runs
    count = sum(len(run.program.kind_of) for run in runs)
    return Edit(before, None, Reach(count, count, why, is_imported_again=True), lambda: module)


# The difference of an edit that leaves the ops of the program as they are


def _difference(edit: Edit[R], old: EditState, new: EditState) -> Difference:
    base = new.base
    sizes = [Counter(base.sizes), Counter(base.sizes)]
    changes = []
    for kind, tensor in base.ports_of(old, new).values():
        before, after = base.final(old, kind, tensor), base.final(new, kind, tensor)
        for total, sharding in zip(sizes, (before, after)):
            total[kind] += base.size(tensor, sharding) - base.size(tensor, tensor.sharding)
        if not _is_alike(before, after):
            held = base.size(tensor, before), base.size(tensor, after)
            changes.append(Change(_KINDS[kind], tensor.name, tensor.shape, tensor.element, before, after, 1, 1, *held))
    count = sum(1 for _ in base.tensors())
    return Difference(
        changes=(*folded_changes(changes), *joined_changes([*_values(base, old, new)])),
        sizes=tuple(Total(f"{name}s", sizes[0][kind], sizes[1][kind]) for kind, name in _KINDS.items()),
        compared=(count, base.computed_values),
        how=str(edit.reach),
        find_communication=lambda: communication_of(edit.before, edit.result),
    )


def _values(base: Base, old: EditState, new: EditState) -> Iterator[Change]:
    """The results of ops whose sharding changes."""
    program, names = base.program, base.names
    tensors = set(base.values.values())
    for value in sorted({*old.shardings, *new.shardings} - tensors):
        before, after = old.sharding(value), new.sharding(value)
        shape, owner = program.shapes[value], program.owners[value]
        if shape is None or owner in base.erased or program.kind(owner).name in _UNTOLD:
            continue
        one, other = before and before.closed(), after and after.closed()
        if not _is_alike(one, other):
            is_result = value in program.results[owner] and not program.kind(owner).name.startswith("sdy.")
            name = value_name(names.label(owner)) if is_result else names.value(value)
            yield Change("value", name, shape, base.dtype(value), one, other)


def _is_alike(one: TensorSharding | None, other: TensorSharding | None) -> bool:
    return one is other or (is_unsharded(one) and is_unsharded(other))
