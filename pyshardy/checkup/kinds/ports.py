"""Cures at the border of a program: other shardings of inputs and outputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.patching.helper_specs import helper_patch
from pyshardy.checkup.patching.returned import given_patch, outputs_patch
from pyshardy.checkup.patching.source import function_of, jit_call, user_files
from pyshardy.checkup.patching.specs import SpecChange, has_layout, spec_patch
from pyshardy.checkup.patching.table_specs import table_patch
from pyshardy.checkup.program.annotating import OtherInputs, is_same, replaced_outputs
from pyshardy.checkup.program.families import Family, axes_of, dims_of, families, frozen, others, shown, siblings
from pyshardy.checkup.program.keras_paths import paths_by_layer, told_name, variable_path
from pyshardy.checkup.program.partners import Partners
from pyshardy.checkup.program.ties import ties_in
from pyshardy.core.alike import general
from pyshardy.core.axes import Dims
from pyshardy.core.intern import register_cache
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.explain.collectives import ExplainedCollectives
from pyshardy.frontend.annotate import store_annotations
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.module import Module
from pyshardy.ir.named_values import sharding_of
from pyshardy.ir.source_values import is_differentiated
from pyshardy.report.diagnosis import FindingKind
from pyshardy.report.rules import without_end
from pyshardy.results.hints.edits import AnnotationEdit, edits_for, is_forward_sum, moved_edits, spec_text
from pyshardy.results.partition import Partition
from pyshardy.searching.autopartition.constraints import changes
from pyshardy.searching.autopartition.space import are_equal_shards
from pyshardy.searching.autopartition.ties import head_of
from pyshardy.source.places import SourcePlace
from pyshardy.source.syntax import syntax_tree

_MOST_CONFLICTS = 6
"""The number of conflicts whose annotations are tried otherwise, those that send most."""


def conflict_cures(part: Partition, mesh_name: str, mesh: Mesh) -> Iterator[Cure]:
    """Other annotations of the inputs and outputs that the largest collectives come from.

    Args:
        part: The program, partitioned by pyshardy.
        mesh_name: The name of its mesh.
        mesh: Its mesh.
    """
    module = part.before
    ports = {True: input_tensors(module.root), False: output_tensors(module.root)}
    sizes = dict(mesh.axes)
    known = list(families(module, sizes))
    weights = {one.index for family in [*known, *frozen(module, sizes)] for one in family.members}
    known += list(others(module, sizes))
    partners = Partners(module)
    products = partners.lines(weights)
    for found in [one for one in part.explained_collectives if _may_be_mended(part, one)][:_MOST_CONFLICTS]:
        is_sum = not any(cause.mismatch for cause in found.causes)
        named = list((moved_edits if is_sum else edits_for)(part.why, found, module))
        named = [_of_input(module, one, ports) for one in named if not is_sum or weights.issuperset(one.indices)]
        story = f"{found.head}: {found.story.reason}."
        place = None if found.story.file is None else (found.story.file, found.story.line, 0)
        axes = {axis.strip('"') for axis in found.story.axes or ()}
        edits = dict.fromkeys(named if is_sum else [*named, *_moved(named, ports[True], mesh_name, mesh, axes)])
        beside = [more for edit in edits for more in _with_siblings(edit, ports[True], known, partners, sizes)]
        written = [(one._replace(sharding=one.sharding.closed()), state) for one, state in beside]  # as a spec is
        for edit, state in dict.fromkeys(written):
            cure = annotation_cure(module, edit, ports[edit.is_input], story, place, state)
            yield replace(cure, is_design=True) if is_sum and (found.story.file, found.story.line) in products else cure


def _of_input(module: Module, edit: AnnotationEdit, ports: Mapping[bool, Sequence[InterfaceTensor]]) -> AnnotationEdit:
    """An edit of outputs as one of the inputs that they replace, if these are annotated as they are."""
    inputs, outputs = ports[True], ports[False]
    replaced = {outputs[result].index: inputs[place] for place, result in ties_in(module, inputs, outputs).items()}
    changed = [one for one in outputs if not edit.is_input and one.index in edit.indices]
    pairs = [(one, replaced.get(one.index)) for one in changed]
    given = [other for one, other in pairs if other is not None and is_same(other, one.sharding)]
    if not given or len(given) < len(pairs):
        return edit
    return AnnotationEdit(True, tuple(sorted(one.index for one in given)), edit.sharding)


def _may_be_mended(part: Partition, found: ExplainedCollectives) -> bool:
    """Whether other annotations may avoid a collective: it is no sum of a gradient."""
    return any(cause.mismatch for cause in found.causes) or is_forward_sum(part.why, found)


_Edit = tuple[AnnotationEdit, tuple[InterfaceTensor, ...]]
"""Inputs with other annotations, and their optimizer state."""


def _with_siblings(
    edit: AnnotationEdit,
    inputs: Sequence[InterfaceTensor],
    known: Sequence[Family],
    partners: Partners,
    sizes: Mapping[str, int],
) -> Iterator[_Edit]:
    """An edit of a weight with its optimizer state, and the same of weights that are annotated as it is.

    These are those that are multiplied with the same value, then all of its shape or name.
    """
    own, state = _with_state(edit, inputs, known)
    given = next((one for one in inputs if own.is_input and one.index in own.indices), None)
    family = next((one for one in known if given in one.weights), None)
    if (
        given is not None
        and family is not None
        and (state or set(own.indices) == {one.index for one in family.weights})
    ):
        dims = dims_of(own.sharding)
        alike = [one for one in siblings(family, known) if are_equal_shards(one.members[0].shape, dims, sizes)]
        own_partners = partners.of(given.index)
        beside = [one for one in alike if any(own_partners & partners.of(weight.index) for weight in one.weights)]
        for group in (beside, alike):
            weights = [one for other in group for one in other.weights]
            rest = [one for other in group for one in other.members if one.sharding == given.sharding]
            indices = tuple(sorted(one.index for one in weights))
            if len(group) > 1:
                yield AnnotationEdit(True, indices, own.sharding), tuple(one for one in rest if one not in weights)
    yield own, tuple(state)


def _with_state(
    edit: AnnotationEdit, inputs: Sequence[InterfaceTensor], known: Sequence[Family]
) -> tuple[AnnotationEdit, list[InterfaceTensor]]:
    """An edit of weights, and their optimizer state that is sharded as they are; an edit of state is one of its weight.

    Where they differ, a step would move the one to the other.
    """
    given = next((one for one in inputs if edit.is_input and one.index in edit.indices), None)
    family = next((one for one in known if given in one.members), None)
    if given is None or family is None or given.sharding != family.weights[0].sharding:
        return edit, []
    alike = [one for one in family.members if one.sharding == given.sharding]
    weights = [one for one in alike if one in family.weights]
    indices = tuple(sorted(one.index for one in weights))
    if given in weights and set(edit.indices) < set(indices):
        return edit, []
    return AnnotationEdit(True, indices, edit.sharding), [one for one in alike if one not in weights]


def are(module: Module, members: Sequence[InterfaceTensor]) -> str:
    """Inputs with the verb.

    Args:
        module: The program.
        members: The inputs.
    """
    names = shown(told_name(module, one) for one in members)
    return f"{names} {'is' if names.count('`') == 2 else 'are'}"


def _moved(
    edits: Sequence[AnnotationEdit],
    inputs: Sequence[InterfaceTensor],
    mesh_name: str,
    mesh: Mesh,
    clashing: Collection[str],
) -> Iterator[AnnotationEdit]:
    """The inputs of edits with one axis more, moved or removed; first the axes along which devices communicate."""
    for edit in edits:
        one = next((one for one in inputs if edit.is_input and one.index in edit.indices), None)
        given = None if one is None else one.sharding
        if one is None or given is None or not all(axis.is_full for axes in given.dim_axes for axis in axes):
            continue
        dims = dims_of(given)
        ways = [way for way in changes(one.shape, dims, dict(mesh.axes)) if way != dims]
        for way in sorted(ways, key=lambda way: not _axes_changed(dims, way) <= set(clashing)):
            yield AnnotationEdit(True, edit.indices, sharding_of(way, mesh_name))


def _axes_changed(one: Dims, other: Dims) -> set[str]:
    return {axis for was, now in zip(one, other) for axis in set(was) ^ set(now)}


def annotation_cure(
    module: Module,
    edit: AnnotationEdit,
    tensors: Sequence[InterfaceTensor],
    story: str,
    place: SourcePlace | None,
    state: Sequence[InterfaceTensor] = (),
) -> Cure:
    """Inputs or outputs with other annotations, and the outputs that replace these inputs with the same.

    Args:
        module: The program.
        edit: The annotations.
        tensors: The inputs or the outputs of the program.
        story: The cause, in words.
        place: The line that it is about.
        state: Inputs that get the same sharding, the optimizer state of these.
    """
    changed = [one for one in tensors if one.index in edit.indices]
    names, was = shown(told_name(module, one) for one in changed), changed[0]
    new = InterfaceTensor(was.name, was.index, was.shape, was.element, edit.sharding)
    pairs = [(one, _of_rank(edit.sharding, len(one.shape))) for one in (*changed, *state)]
    replaced = replaced_outputs(module, changed) if edit.is_input else {}
    its = "its" if len(names.split("`")) == 3 else "their"
    beside = [f"{its} optimizer state"] * bool(state) + [
        f"the outputs that replace {'it' if its == 'its' else 'them'}"
    ] * bool(replaced)
    also = f", and {' and '.join(beside)}" if beside else ""
    return Cure(
        FindingKind.CONFLICT,
        f"{are(module, changed)} annotated as {spec_text(was)}, which makes devices communicate",
        story,
        place,
        f"annotate {names} as {spec_text(new)}{also}",
        OtherInputs(pairs)
        if edit.is_input
        else partial(store_annotations, annotations=[(edit.kind, *pair) for pair in pairs]),
        partial(annotation_patch, module, pairs)
        if edit.is_input
        else partial(outputs_patch, module, {one.index: sharding for one, sharding in pairs}),
        subject=(edit.is_input, edit.indices),
        inputs=frozenset(one.index for one, _ in pairs) if edit.is_input else frozenset(),
        is_design=edit.is_input and _is_design(module, was, edit.sharding),
    )


def _is_design(module: Module, was: InterfaceTensor, new: TensorSharding) -> bool:
    """Whether another sharding of an input shares the work in another way, rather than mending a fault.

    It does if it gives a weight an axis that splits no weight, or splits the batch along one more axis. In training, it
    also does if it takes an axis of the batch from a weight, or moves only such axes, as FSDP may split any dimension.
    """
    old, axes = _axes(was.sharding), _axes(new)
    step = _step_of(module)
    if was.index in step.weights:
        if not axes <= old | step.weight_axes:
            return True
        moved = _axes_changed(dims_of(was.sharding), dims_of(new)) if was.sharding is not None else set()
        is_of_batch = axes == old and moved <= step.batch_axes
        return step.is_training and (is_of_batch or not (old - axes).isdisjoint(step.batch_axes))
    if step.is_training or not axes <= old | step.weight_axes | step.batch_axes:
        return not axes <= old
    olds = dims_of(was.sharding) if was.sharding is not None else ()
    return any(
        set(one) < set(other) and step.batch_axes.issuperset(one) and one for one, other in zip(olds, dims_of(new))
    )


def _of_rank(sharding: TensorSharding, rank: int) -> TensorSharding:
    """A sharding with more whole dimensions at the end, or fewer."""
    dims = [*sharding.dims, *[DimSharding(())] * rank][:rank]
    return sharding if rank == sharding.rank else sharding.with_dims(dims)


def _axes(sharding: TensorSharding | None) -> set[str]:
    return set() if sharding is None else {axis for axes in dims_of(sharding) for axis in axes}


class _Step(NamedTuple):
    """What is known of the inputs of a step.

    Attributes:
        is_training: Whether it computes gradients.
        weights: The numbers of the weights: those that it does not return, and in training what it returns anew.
        weight_axes: The axes that split these.
        batch_axes: The axes that split the other inputs; without training, those of inputs that it does not return.
    """

    is_training: bool
    weights: frozenset[int]
    weight_axes: frozenset[str]
    batch_axes: frozenset[str]


@lru_cache(maxsize=1)
def _step_of(module: Module) -> _Step:
    inputs, is_training = input_tensors(module.root), is_differentiated(module.root)
    ties = ties_in(module, inputs, output_tensors(module.root))
    returned = {one.index for place, one in enumerate(inputs) if place in ties}
    sizes = {axis: 1 for one in inputs for axis in axes_of(one)}
    weights = {one.index for family in frozen(module, sizes) for one in family.members}
    weights |= returned if is_training else set()
    rest = [one for one in inputs if one.index not in weights | returned]
    axes, batch = (
        frozenset(axis for one in group for axis in _axes(one.sharding))
        for group in ([one for one in inputs if one.index in weights], rest)
    )
    return _Step(is_training, frozenset(weights), axes, batch)


register_cache(_step_of.cache_clear)


def _as_spec(sharding: TensorSharding | None) -> Dims | None:
    """The axes of a sharding; None where no spec can say them, as those of parts of axes."""
    is_plain = sharding is not None and all(axis.is_full for axes in sharding.dim_axes for axis in axes)
    return without_end(dims_of(sharding)) if sharding is not None and is_plain else None


def annotation_patch(module: Module, changed: Sequence[tuple[InterfaceTensor, TensorSharding]]) -> str:
    """The other specs in the user's source, where they stand for the inputs' names."""
    numbers = {one.index for one, _ in changed}
    kept: dict[Dims, dict[str, None]] = {}
    for one in input_tensors(module.root):
        if one.index not in numbers and one.sharding is not None:
            kept.setdefault(without_end(dims_of(one.sharding)), {})[general(one.name)] = None
    specs = [(one.name, dims_of(one.sharding), dims_of(new)) for one, new in changed if one.sharding is not None]
    if len(specs) < len(changed):
        return ""
    files = user_files(module.root)
    uses_keras = any(has_layout(tree) for file in files if (tree := syntax_tree(file)) is not None)
    by_layer = dict(paths_by_layer(module)) if uses_keras else {}
    paths = [variable_path(one.name) or by_layer.get(one.index, "") for one, _ in changed]
    edits = [
        SpecChange(path or name, old, new, tuple(kept.get(without_end(old), ())), path)
        for (name, old, new), path in zip(specs, paths)
    ]
    told = [replace(one, name=told_name(module, one)) for one in input_tensors(module.root)]
    inputs, news = input_tensors(module.root), {one.index: dims_of(new) for one, new in changed}
    call = jit_call(files, function_of(module))
    names = {one.index: one.name for one in inputs}
    heads = {head_of(names[index]) for index in news}
    if (text := spec_patch(files, edits)) or call is None:
        return text or table_patch(files, told, news) or helper_patch(files, inputs, news)
    if any(map(call.is_spec, heads)):
        given = [one for one in inputs if head_of(one.name) in heads]
        axes = {one.name: _as_spec(one.sharding) for one in given}
        return given_patch(call, axes | {names[index]: dims for index, dims in news.items()}, files)
    return table_patch(files, told, news) or helper_patch(files, inputs, news)
