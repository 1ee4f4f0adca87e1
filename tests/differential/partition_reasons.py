"""For which listed reasons resolving permutation factors and padding may differ from the reference."""

from __future__ import annotations

import re

from pyshardy.core.sharding_on_mesh import Meshes, mesh_of
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import get_sharding, module_meshes
from pyshardy.reshard.reshape_groups import GroupKind
from pyshardy.reshard.reshape_halo import Reshape, is_free_group
from pyshardy.reshard.strides import equivalent_across_reshape

from .normal_form import Changes, Reason, changes, explain, explain_changes
from .reshard_compare import Comparison, Verdict

RESOLVE = "sdy-resolve-permutation-factors"
PAD = "sdy-pad-for-divisibility"
_EXPORT = re.compile(
    r"sdy-export-pipeline\{.*\bpartitioner-stage=(resolve-permutation-factors|reshard-to-collectives|optimize-collectives)\b"
)
"""Pipelines that resolve permutation factors and do not pad."""
_ACCEPTED = "given  accepted"


def _ops(names: str) -> frozenset[str]:
    return frozenset(names.split())


PLACE = _ops("constant partition_id replica_id dynamic_slice reshape convert divide remainder multiply add")
"""Where a device stands."""
_EXCHANGE = PLACE | _ops(
    "subtract maximum broadcast_in_dim collective_permute compare select concatenate pad slice manual_computation "
    "return region"
)
"""What an exchange between neighbours is made of."""
_MASK = PLACE | _ops("iota broadcast_in_dim compare select minimum and")
"""What a mask is made of."""
_STRIDED = r"(?<!window_)strides = array<i64: (?:\d+, )*[2-9]"
STRIDE = Reason("slice with a stride", _STRIDED, _EXCHANGE, _EXCHANGE)
RESOLVING = (
    Reason(
        "convolution that skips a part of its input",
        r"window_strides = array<i64: (?:\d+, )*[2-9]",
        _ops("convolution"),
        _ops("convolution reshard"),
        has=r'"sdy\.reshard"',
    ),
    Reason(
        "spatial dimension of size 0 or 1 that only one tensor of a convolution has",
        r'"stablehlo\.convolution"',
        _ops("convolution"),
        _ops("convolution reshard"),
        has=r'"(stablehlo\.convolution|sdy\.reshard)".*[<x][01]x',
    ),
    Reason(
        "dimension of size 1 that a broadcast expands",
        r'"stablehlo\.broadcast_in_dim"',
        _ops("broadcast_in_dim"),
        _ops("broadcast_in_dim reshard"),
        has=r'"sdy\.reshard".*-> tensor<(?:\d+x)*1x',
    ),
    Reason(
        "concatenated slices",
        r'"stablehlo\.slice"(?:.*\n)*.*"stablehlo\.concatenate"',
        _EXCHANGE | _ops("reshard"),
        _EXCHANGE | _ops("reshard"),
        has=r'"stablehlo\.concatenate"',
    ),
)
"""Reasons for which resolving permutation factors comes out different; those for a stride depend on the options."""
PADDING = (
    Reason(
        "collectives that would move padding",
        r'"sdy\.(reshard|all_|collective_permute|reduce_scatter)',
        _ops("all_to_all all_gather all_slice collective_permute reduce_scatter pad slice constant"),
        _ops("all_gather all_slice pad slice constant"),
        has=r'"sdy\.all_gather"',
    ),
    Reason(
        "masks that the reference leaves out",
        r'"stablehlo\.(pad|scatter|dynamic_update_slice|dot)"',
        _ops("pad scatter dynamic_update_slice"),
        _MASK | _ops("pad scatter dynamic_update_slice"),
        has=r'"stablehlo\.(select|minimum)"',
    ),
)
"""Reasons for which padding comes out different."""
_MISPLACED = Reason(
    "reshape whose shards would have other elements",
    r'"stablehlo\.reshape"',
    _ops("reshape reshard"),
    _ops("reshape reshard"),
    has=r'"sdy\.reshard"',
)
MOVED_REVERSE = "trimmed reverse whose result is sharded by other axes"
_REVERSED = re.compile(r'"stablehlo\.reverse".*?\{sdy\.sharding = (#sdy\.sharding_per_value<\[.*?\]>)[,}]')
_TRIMMED = re.compile(
    r'(= "stablehlo\.slice".* start_indices = array<i64: 0(?:, 0)*>, strides = array<i64: 1(?:, 1)*>}> \{sdy\.sharding = )'
    r"(#sdy\.sharding_per_value<\[.*?\]>)(\} : .*)"
)
_NO_SHARDING = re.compile(r"given  accepted\nwanted refused: (\S+): 'sdy\.reshard' op requires attribute 'sharding'")
_REFUSED = (
    ("padding that is left to a cast", r"found unrealized_conversion_cast after pad-for-divisibility"),
    ("slice or pad without exchange", r"requires device communication"),
    (
        "dynamic slice or gather of whole dimensions that are padded",
        r"'stablehlo\.(dynamic_slice|gather)' op inferred type\(s\)",
    ),
    ("slice beside a padded dimension", r"'stablehlo\.slice' op inferred type\(s\)"),
    (
        "pad that also pads within shards",
        r"'stablehlo\.pad' op inferred type\(s\)|'sdy\.manual_computation' op result shape, corresponding sharding",
    ),
    ("concatenated slices", r"'stablehlo\.concatenate' op result - operates on axis .* already bound"),
    (
        "reshape of a sharded dimension of size 1",
        r"'stablehlo\.reshape' op participating reshape dimensions are not divisible",
    ),
    ("collectives that would move padding", r"'sdy\.collective_permute' op sharded size of result doesn't match"),
)
"""What the reference refuses, mostly of its own making, and we accept: a name, and a part of its message."""


def partition_reason(text: str, pipeline: str, found: Comparison) -> str | None:
    """The listed reasons for a difference in one of the two passes, if they explain all of it."""
    if _EXPORT.match(pipeline) and found.verdict is Verdict.DIFFERENT:
        if found.details.startswith("given"):
            return refused_reason(found.details, RESOLVE)
        return explain(text, found.details, (STRIDE,))
    if not pipeline.startswith((RESOLVE, PAD)):
        return None
    if found.verdict is Verdict.DIED:
        return "what the reference ends its process on"
    if found.details.startswith("given"):
        if pipeline.startswith(RESOLVE) and refuses_reverse(text, found.details):
            return "refused by the reference: reverse whose result has no sharding"
        return refused_reason(found.details, pipeline)
    if pipeline.startswith(PAD):
        return explain(text, found.details, PADDING)
    if "<mesh<" in text and "mesh_reversed" in found.details:
        return "name of a reversed mesh"
    strides = () if "enable-halo-exchange=false" in pipeline else (STRIDE,)
    different = changes(found.details)
    rest = without_moved_reverses(text, different)
    names = [MOVED_REVERSE] if rest != different else []
    if rest.removed or rest.added or not names:
        misplaced = (_MISPLACED,) if '"stablehlo.reshape"' in text and has_misplaced_reshape(text) else ()
        names.append(explain_changes(text, rest, (*strides, *misplaced, *RESOLVING)) or "")
    return " and ".join(names) if all(names) else None


def without_moved_reverses(text: str, found: Changes) -> Changes:
    """The lines that differ without trimmed reverses of which only the sharding differs, ours being the reverse's."""
    shardings = set(_REVERSED.findall(text))
    removed, added = list(found.removed), []
    for line in found.added:
        match = _TRIMMED.fullmatch(line)
        pair = None
        if match is not None and match[2] in shardings:
            pair = next((other for other in removed if _is_same_trim(match, _TRIMMED.fullmatch(other))), None)
        if pair is None:
            added.append(line)
        else:
            removed.remove(pair)
    return Changes(tuple(removed), tuple(added))


def _is_same_trim(one: re.Match[str], other: re.Match[str] | None) -> bool:
    return other is not None and (one[1], one[3]) == (other[1], other[3])


def refused_reason(details: str, pipeline: str) -> str | None:
    """The listed reason for a difference in what is refused."""
    if details.startswith(_ACCEPTED):
        return next((f"refused by the reference: {name}" for name, part in _REFUSED if re.search(part, details)), None)
    given, _, wanted = details.partition("\nwanted ")
    if pipeline.startswith(PAD) and wanted and "accepted" not in (given.removeprefix("given  "), wanted):
        return "refused at another op"
    return None


def refuses_reverse(text: str, details: str) -> bool:
    """Whether the reference refuses a reshard of its own without a sharding, behind a reverse that has none."""
    match = _NO_SHARDING.fullmatch(details)
    return match is not None and any(
        op.name == "stablehlo.reverse" and get_sharding(op.result) is None and format_location(op.location) == match[1]
        for op in walk(Module.parse(text).root)
    )


def has_misplaced_reshape(text: str) -> bool:
    """Whether shards of a reshape that divide a part of it evenly, or start alike, would have other elements after it."""
    root = Module.parse(text).root
    meshes = module_meshes(root)
    return any(_is_misplaced(op, meshes) for op in walk(root) if op.name == "stablehlo.reshape")


def _is_misplaced(op: Op, meshes: Meshes) -> bool:
    value, before, after = op.operands[0], get_sharding(op.operands[0]), get_sharding(op.result)
    if before is None or after is None or before.is_fully_replicated:
        return False
    reshape = Reshape(value.type.shape or (), op.result.type.shape or (), before, after, mesh_of(before, meshes))
    if equivalent_across_reshape(before, reshape.shape, after, reshape.out_shape, reshape.mesh, is_exact=True):
        return not reshape.is_equivalent_with_padding
    changed = [group for group in reshape.groups if group.kind is not GroupKind.PASS_THROUGH]
    return any(reshape.is_divisible(group) and not is_free_group(reshape, group) for group in changed)
