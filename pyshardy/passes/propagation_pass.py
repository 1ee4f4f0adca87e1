"""What the propagation passes share: they describe nodes for the core, and write its results back.

Source: docs/semantics/propagation.md#what-every-pass-does
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.attrs import AttrTable
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.dtypes import known_bytes
from pyshardy.ir.nodes import Op, Value, ValueType
from pyshardy.ir.op_lists import ops_in, ops_named
from pyshardy.ir.program import build_program
from pyshardy.ir.program_index import ProgramIndex
from pyshardy.ir.shardings import get_sharding, module_meshes, set_sharding
from pyshardy.ir.strings import readable, string_value
from pyshardy.passes.exporting.drop_sharding_rules import drop_sharding_rules
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.options import PropagateOptions
from pyshardy.propagation.program import Program, is_same_program
from pyshardy.propagation.run import Propagated, propagate_program
from pyshardy.propagation.step import StepError
from pyshardy.transforms.context import PassContext, Traced
from pyshardy.transforms.debug_info import DebugInfo, DebugOptions
from pyshardy.transforms.round_dumps import RoundDumps, erase_dead

_MANUAL = "sdy.manual_computation"

_GROUP = "sdy.sharding_group"


def propagate_module(
    root: Op,
    context: PassContext,
    options: PropagateOptions,
    keep_sharding_rules: bool,
    debug: DebugOptions,
    dumps: tuple[str, int] = ("", 0),
) -> None:
    """Propagate shardings through a module in place, and record the result in the context.

    Args:
        root: The module.
        context: The pass context.
        options: How to propagate.
        keep_sharding_rules: Whether ops keep the rules.
        debug: Which debug attributes to write.
        dumps: Where to write the module after every user priority but the last, and the number of the first file.

    Raises:
        PassError: A dynamic shape, a tuple, a value in several sharding groups, or an invalid rule.
    """
    _check_types(root, context.attrs)
    grouped = _equalise_groups(root, context)
    program, index = build_program(root, context.specs, options.conservative)
    _warn_unknown(index, context)
    info = DebugInfo(root, context, debug, program, index.values) if debug else None
    directory, number = dumps
    rounds = RoundDumps(directory, number, context, index, program.shardings) if directory else None
    after_round = rounds.after_round if rounds and options.user_priorities else None
    try:
        propagated = _propagate(program, context, replace(options, trace=True) if info else options, after_round)
    except StepError as error:
        at = index.ops[error.op] if error.op < len(index.ops) else root
        raise PassError(at, f"gets an invalid sharding: {error}") from error
    given = {number: grouped[value] for number, value in enumerate(index.values) if value in grouped} if grouped else {}
    context.propagated.append(propagated)
    context.runs.append(Traced(program, index, propagated, given))
    index.store(propagated.shardings, rounds.stored if rounds else program.shardings)
    erase_dead([index.ops[number] for number in propagated.erased])
    if info is not None:
        info.follow(propagated, index.ops)
        info.write()
    if keep_sharding_rules:
        index.store_rules()
    elif index.has_rules or rounds:
        drop_sharding_rules(root)


def _propagate(
    program: Program,
    context: PassContext,
    options: PropagateOptions,
    after_round: Callable[[int, PropagationEngine], None] | None,
) -> Propagated:
    """What propagation gives; nothing is propagated if the context knows it."""
    known = context.known
    if known is not None and is_same_program(known.program, program):
        return known.propagated
    return propagate_program(program, options, after_round)


def _check_types(root: Op, attrs: AttrTable) -> None:
    refused = set(filter(_is_refused, attrs.known_types()))
    for op in ops_in(root, post_order=True) if refused else ():
        for result in op.results:
            if result.type in refused:
                kind = "a shape that is not static" if result.type.is_shaped else "a tuple"
                raise PassError(op, f"has a result of type {result.type}: propagation does not support {kind}")


def _is_refused(type: ValueType) -> bool:
    return not type.is_static and (type.is_shaped or type.element.startswith("tuple<"))


def _equalise_groups(root: Op, context: PassContext) -> dict[Value, TensorSharding]:
    """Give all members of a sharding group one sharding; if theirs differ, put open constraints in their place.

    Source: docs/semantics/propagation.md#sharding-groups

    Returns:
        The shardings that the members had.
    """
    members: dict[int, list[Op]] = {}
    before: dict[Value, TensorSharding] = {}
    for op in ops_named(root, (_GROUP,)):
        members.setdefault(op.attrs["group_id"], []).append(op)
        sharding = get_sharding(op.operands[0])
        if sharding is not None:
            before[op.operands[0]] = sharding
    owner_group: dict[Value, int] = {}
    for group_id in sorted(members):
        for op in members[group_id]:
            if owner_group.setdefault(op.operands[0], group_id) != group_id:
                raise PassError(op, "puts a value into a second sharding group; merge groups that share a value")
        _equalise_group(group_id, [op.operands[0] for op in members[group_id]], context)
    return before


def _equalise_group(group_id: int, values: list[Value], context: PassContext) -> None:
    if len(values) < 2:
        return
    found = [sharding for sharding in map(get_sharding, values) if sharding is not None and not _is_open(sharding)]
    if not found:
        return
    if all(sharding is found[0] for sharding in found):
        for value in values:
            set_sharding(value, found[0])
        return
    first = values[0].defining_op or values[0].block.parent_op
    context.diagnostics.warn(
        first,
        f"the members of sharding group {group_id} have different shardings; "
        "open constraints replace them in the group",
    )
    for value in values:
        _constrain_openly(value, found[0])


def _is_open(sharding: TensorSharding) -> bool:
    return all(dim.is_open and not dim.axes for dim in sharding.dims)


def _constrain_openly(value: Value, like: TensorSharding) -> None:
    """Redirect all uses of a value to an open constraint on the mesh of `like`."""
    op = value.defining_op
    sharding = TensorSharding.fully_replicated(like.mesh, value.type.rank, is_open=True)
    location = value.place if op is None else op.place
    constraint = Op("sdy.sharding_constraint", [value], [value.type], {"sharding": sharding}, location=location)
    if op is None:
        value.block.prepend(constraint)
    else:
        constraint.insert_after(op)
    value.replace_other_uses(constraint)


def _is_on_shards(op: Op, meshes: Meshes) -> bool:
    """Whether an op is inside manual computations over all axes of a mesh, where nothing is left to propagate."""
    manual: set[str] = set()
    for around in op.ancestors():
        if around.name != _MANUAL:
            continue
        manual.update(around.attrs["manual_axes"])
        shardings = (*around.attrs["in_shardings"], *around.attrs["out_shardings"])
        if shardings and {name for name, _ in mesh_of(shardings[0], meshes).axes} <= manual:
            return True
    return False


def _warn_unknown(index: ProgramIndex, context: PassContext) -> None:
    """Report every kind of op without a rule once, with the number of such ops and the bytes of their results."""
    first: dict[str, Op] = {}
    counts: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    meshes = module_meshes(context.root)
    for op in index.unknown:
        if _is_on_shards(op, meshes):
            continue
        name = op.name
        if name == "stablehlo.custom_call":
            name = f"custom call @{readable(string_value(op.attrs['call_target_name']))}"
        first.setdefault(name, op)
        counts[name] += 1
        sizes[name] += sum(known_bytes(result.type.shape, result.type.element) for result in op.results)
    if not first:
        return
    from pyshardy.core.text import format_bytes

    for name, op in first.items():
        size = f"; its results, {format_bytes(sizes[name])}, stay whole unless others shard them" if sizes[name] else ""
        context.diagnostics.warn(
            op,
            f"no sharding rule is known for {name} ({counts[name]} in the module): nothing propagates through it{size}",
        )
