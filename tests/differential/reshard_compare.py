"""Comparing what passes make of a module with what the reference makes of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from difflib import unified_diff
from enum import Enum
from itertools import combinations

from pyshardy.core.notation import parse_sharding
from pyshardy.errors import InvalidShardingError, ShardyError
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.locations import format_location
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from support.writing import verify_written

from .normal_form import changes, ops_of
from .reference_process import Died, Refused

Runner = Callable[[str, str], str]
"""From a module and a pipeline to the text of the module after it, generic and with locations; may raise `Refused`."""

FATAL = (
    "both must be on the same mesh",
    "drops and adds unreduced axes at once",
    "has results with different unreduced axes",
    "with unreduced axes but no results",
    "gives partial results: got",
    "has results on different single devices",
    "is on a single device but has result",
)
"""Parts of the messages of errors on which the reference ends its process instead."""

INVALID = (
    "overlapping sub-axes",
    "duplicate axis ref",
    "both sub-axis and full-axis are used",
    "two consecutive sub-axes can be merged",
    "result mesh name is different but same device ids as operand",
    "result mesh does not match operand mesh",
    "result sharding doesn't match expected sharding",
    "overlapping source/target dimensions in all-to-all params",
    "failed to legalize operation 'sdy.reshard'",
)
"""Parts of the messages with which the reference refuses collectives that it has made itself."""

_COLLECTIVES = {"all_slice", "all_gather", "all_to_all", "collective_permute"}

ANYWHERE = "anywhere"
"""The place of a refusal that the reference gives elsewhere: when it verifies the module after the pass."""


class Verdict(Enum):
    """How a comparison came out."""

    SAME = "same"
    DIFFERENT = "different"
    FATAL = "refused where the reference ends its process"
    DIED = "the reference ended its process"
    INVALID = "accepted where the reference makes collectives that are not valid"
    WRONG = "different where the reference shards by incompatible parts of an axis at once"


@dataclass(frozen=True)
class Comparison:
    """The outcome, with the difference in words if there is one."""

    verdict: Verdict
    details: str = ""


def ours(text: str, pipeline: str) -> str:
    """What pyshardy makes of a module, in generic form with locations.

    Raises:
        Refused: It refuses the module.
    """
    try:
        result = run_pipeline(Module.parse(text), pipeline)
        verify_written(result)
    except PassError as error:
        is_late = isinstance(error.__cause__, InvalidShardingError)
        place = ANYWHERE if is_late else format_location(error.diagnostic.location)
        raise Refused(f"{place}: {error.diagnostic.message}") from error
    except ShardyError as error:
        raise Refused(f"{error.where}: {error}") from error
    return result.text(generic=True, debug_info=True)


def compare(
    text: str, pipeline: str, reference: Runner, candidate: Runner = ours, *, ask_fatal: bool = False
) -> Comparison:
    """Run both on a module.

    Args:
        text: A module.
        pipeline: Passes, as inside `builtin.module(...)`.
        reference: What is right; may raise `Died`.
        candidate: What is tested.
        ask_fatal: Whether to make sure that the reference ends its process where it is said to.
    """
    given = _outcome(candidate, text, pipeline)
    is_fatal = isinstance(given, Refused) and any(part in str(given) for part in FATAL)
    if is_fatal and not ask_fatal:
        return Comparison(Verdict.FATAL)
    try:
        wanted = _outcome(reference, text, pipeline)
    except Died:
        return Comparison(Verdict.FATAL if is_fatal else Verdict.DIED)
    if isinstance(given, str) and isinstance(wanted, Refused) and any(part in str(wanted) for part in INVALID):
        return Comparison(Verdict.INVALID)
    if isinstance(given, str) and isinstance(wanted, str):
        lines = unified_diff(wanted.splitlines(), given.splitlines(), "wanted", "given", lineterm="", n=1)
        details = "\n".join(lines) if given.strip() != wanted.strip() else ""
    elif isinstance(given, Refused) and isinstance(wanted, Refused) and not is_fatal:
        details = "" if given.place in (ANYWHERE, wanted.place) else f"given  {given}\nwanted {wanted}"
    else:
        details = f"given  {_summary(given)}\nwanted {_summary(wanted)}"
    return Comparison(Verdict.DIFFERENT if details else Verdict.SAME, details)


def shards_by_incompatible_parts(details: str) -> bool:
    """Whether only collectives differ, and the reference's shard a value by incompatible parts of an axis.

    Args:
        details: The difference between two modules.
    """
    found = changes(details)
    if not ops_of((*found.removed, *found.added)) <= _COLLECTIVES:
        return False
    shardings = [
        match[1] for line in found.removed if (match := re.search(r"out_sharding = (#sdy\.sharding<.*?\]>)", line))
    ]
    return any(
        not one.can_coexist(other)
        for text in shardings
        for dims in [parse_sharding(text.removeprefix("#sdy.sharding")).dim_axes]
        for one, other in combinations([axis for axes in dims for axis in axes], 2)
    )


def _outcome(runner: Runner, text: str, pipeline: str) -> str | Refused:
    try:
        return runner(text, pipeline)
    except Refused as error:
        return error


def _summary(outcome: str | Refused) -> str:
    return f"refused: {outcome}" if isinstance(outcome, Refused) else "accepted"
