"""Cures of results that replace arguments in the next step: the same sharding, and donated arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

from jaxlib.mlir import ir

from pyshardy.checkup.cures import Cure
from pyshardy.checkup.kinds.ports import annotation_patch
from pyshardy.checkup.patching.returned import outputs_patch
from pyshardy.checkup.patching.source import function_of, jit_call, user_files
from pyshardy.checkup.program.ties import ties_in
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of, shard_counts
from pyshardy.frontend.annotate import store_annotations
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors
from pyshardy.ir.functions import is_donated, main_function, set_arg_attr
from pyshardy.ir.module import Module
from pyshardy.report.diagnosis import FindingKind
from pyshardy.results.hints.edits import spec_text
from pyshardy.results.propagation import Propagation
from pyshardy.searching.autopartition.ties import head_of
from pyshardy.source.places import format_place

_DONOR = "jax.buffer_donor"
_JIT = "jax.jit"


def output_cures(module: Module, propagated: Propagation) -> Iterator[Cure]:
    """Outputs that come back sharded otherwise than the inputs that they replace: as those inputs are, or the reverse.

    Args:
        module: The program.
        propagated: The same, propagated.
    """
    inputs, outputs = propagated.inputs, propagated.outputs
    given = {one.index: one for one in input_tensors(module.root)}
    pairs = []
    for place, result in sorted(ties_in(module, inputs, outputs).items()):
        one, other = given[inputs[place].index], outputs[result]
        if one.sharding and other.sharding and one.sharding.dim_axes != other.sharding.dim_axes:
            pairs.append((one, other))
    if not pairs:
        return
    one, other = pairs[0]
    more = f", and {len(pairs) - 1} more alike" if len(pairs) > 1 else ""
    what = (
        f"`{other.name}` comes back as {spec_text(other)}, and the input `{one.name}` that it replaces is "
        f"{spec_text(one)}{more}"
    )
    why = "the second step gets other shardings than the first, so it is compiled again, and its inputs are moved"
    as_inputs = [("res_attrs", other, one.sharding.closed()) for one, other in pairs if one.sharding]
    as_outputs = [("arg_attrs", one, other.sharding.closed()) for one, other in pairs if other.sharding]
    call = jit_call(user_files(module.root), function_of(module))
    jit = _JIT if call is None else call.name
    ways: list[tuple[str, list[tuple[str, InterfaceTensor, TensorSharding]], Callable[[], str]]] = [
        (
            f"{jit}(..., out_shardings=...) with {spec_text(one)} for `{other.name}`{more}",
            as_inputs,
            partial(outputs_patch, module, {edited.index: sharding for _, edited, sharding in as_inputs}),
        )
    ]
    if all(_shards(two, propagated) >= _shards(one, propagated) for one, two in pairs):  # inputs do not get larger
        patch = partial(annotation_patch, module, [(one, sharding) for _, one, sharding in as_outputs])
        ways.append((f"annotate `{one.name}` as {spec_text(other)}{more}", as_outputs, patch))
    for text, edits, make_patch in ways:
        apply = partial(store_annotations, annotations=edits)
        yield Cure(FindingKind.OTHER_OUTPUT, what, why, None, text, apply, make_patch, FindingKind.OTHER_OUTPUT)


def _shards(one: InterfaceTensor, propagated: Propagation) -> int:
    """The number of parts that a tensor is split into."""
    sharding = one.sharding
    return 1 if sharding is None else prod(shard_counts(sharding, mesh_of(sharding, propagated.meshes)))


def donation_cures(module: Module) -> Iterator[Cure]:
    """Arguments that results could take the place of, donated.

    Args:
        module: The program.
    """
    inputs, outputs = input_tensors(module.root), output_tensors(module.root)
    main = main_function(module.root)
    ties = ties_in(module, inputs, outputs)
    kept = [inputs[place] for place in sorted(ties) if not is_donated(main, inputs[place].index)]
    if not kept:
        return
    heads = list(dict.fromkeys(head_of(one.name) for one in kept))
    shown = ", ".join(f"`{head}`" for head in heads)
    call = jit_call(user_files(module.root), function_of(module))
    also, at = "", f" at {format_place(call.place)}" if call is not None else ""
    if call is not None and call.is_equinox:
        others = dict.fromkeys(head for one in inputs if (head := head_of(one.name)) not in heads)
        also = f", which gives away {', '.join(f'`{head}`' for head in others)}, too" if others else ""
        argument = 'donate="all"'
    else:
        every = dict.fromkeys(head_of(inputs[place].name) for place in sorted(ties)) if call and call.donated else heads
        argument = f"donate_argnames=({', '.join(map(repr, every))}{',' if len(every) == 1 else ''})"
    yield Cure(
        FindingKind.DONATION,
        f"{shown} {'is' if len(heads) == 1 else 'are'} not donated: a device holds the old and the new one",
        "the results have the same names and types, so they replace these arguments in the next step",
        None if call is None else call.place,
        f"{_JIT if call is None else call.name}(..., {argument}){at}{also}",
        partial(_donated, indices=[one.index for one in kept]),
        str if call is None else partial(call.donation_patch, argument),
    )


def _donated(module: Module, indices: Sequence[int]) -> Module:
    root = module.copy_root()
    main = main_function(root)
    with module.context:
        for index in indices:
            set_arg_attr(main, index, _DONOR, ir.BoolAttr.get(True))
    return module.with_root(root)
