"""For which listed reasons resolving permutation factors and padding may differ from the reference."""

from __future__ import annotations

import re

from .reshard_compare import Comparison, Verdict

RESOLVE = "sdy-resolve-permutation-factors"
PAD = "sdy-pad-for-divisibility"
_ACCEPTED = "given  accepted"
_STRIDED = re.compile(r"(?<!window_)strides = array<i64: (?:\d+, )*[2-9]")
_SKIPS = re.compile(r"window_strides = array<i64: (?:\d+, )*[2-9]")
_RESHARDED = re.compile(r'^\+.*"sdy\.reshard"(?:.*\n)*?\+.*"stablehlo\.convolution"', re.MULTILINE)
_OTHER_BROADCAST = re.compile(r'^\+.*"stablehlo\.broadcast_in_dim"', re.MULTILINE)
_OTHER_CONVOLUTION = re.compile(r'^\+.*"stablehlo\.convolution".*[<x]1x', re.MULTILINE)
_RESHARD_MORE = re.compile(r'^\+.*"sdy\.reshard"', re.MULTILINE)
_MASKED = re.compile(r'^\+.*"stablehlo\.(select|minimum)"', re.MULTILINE)
_GATHERED = re.compile(r'^\+.*"sdy\.all_gather"', re.MULTILINE)


def partition_reason(text: str, pipeline: str, found: Comparison) -> str | None:
    """The listed reason for a difference in one of the two passes, if there is one."""
    if not pipeline.startswith((RESOLVE, PAD)):
        return None
    if found.verdict is Verdict.DIED:
        return "what the reference ends its process on"
    if found.details.startswith(_ACCEPTED):
        return "what the reference refuses"
    if (
        pipeline.startswith(PAD)
        and re.match(r"given  .*\nwanted .*", found.details)
        and "accepted" not in found.details
    ):
        return "refused at another op"
    return _resolve_reason(text, pipeline, found) if pipeline.startswith(RESOLVE) else _pad_reason(text, found)


def _resolve_reason(text: str, pipeline: str, found: Comparison) -> str | None:
    if _STRIDED.search(text) and "enable-halo-exchange=false" not in pipeline:
        return "slice with a stride"
    if _SKIPS.search(text) and _RESHARDED.search(found.details):
        return "convolution that skips a part of its input"
    if _OTHER_CONVOLUTION.search(found.details):
        return "spatial dimension of size 1 that only one tensor of a convolution has"
    if _OTHER_BROADCAST.search(found.details) and _RESHARD_MORE.search(found.details):
        return "dimension of size 1 that a broadcast expands"
    if "<mesh<" in text and "mesh_reversed" in found.details:
        return "name of a reversed mesh"
    if re.search(r"^\+.*stablehlo\.concatenate", found.details, re.MULTILINE) and "stablehlo.slice" in text:
        return "concatenated slices"
    return None


def _pad_reason(text: str, found: Comparison) -> str | None:
    if _GATHERED.search(found.details):
        return "collectives that would move padding"
    if _MASKED.search(found.details) and re.search(r"stablehlo\.(pad|scatter|dynamic_update_slice)", text):
        return "masks that the reference leaves out"
    return None
