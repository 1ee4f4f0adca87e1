"""`pyshardy explain`: explains shardings of values, conflicts, and collectives."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyshardy.cli.files import naming
from pyshardy.cli.progress import stage
from pyshardy.errors import ShardyError, UsageError

if TYPE_CHECKING:
    from pyshardy.explain.collectives import CollectiveStory
    from pyshardy.ir.module import Module
    from pyshardy.propagation.options import PropagateOptions
    from pyshardy.report.excess import Excess
    from pyshardy.report.replications import Replication
    from pyshardy.results.hints.remedies import Remedy
    from pyshardy.results.partition import Partition
    from pyshardy.results.verbs import Result

_MOST_EXCESSES = 5
"""The number of lines to name at which a compiler sends more than pyshardy's own partitioner would."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments that only this command has."""
    text = "the path of an argument, an output, FILE:LINE, a scope or an op; without, all conflicts"
    parser.add_argument("value", metavar="VALUE", nargs="?", help=text)
    parser.usage = "%(prog)s [-h] FILE|example [VALUE] [options and sizes of the example]"
    parser.add_argument("--details", action="store_true", help="name rules, factors, strategies and priorities")
    parser.add_argument("--collectives", action="store_true", help="explain every collective, and what avoids it")


def explain(module: Module, arguments: argparse.Namespace, options: PropagateOptions) -> tuple[dict[str, Any], str]:
    """The output, as JSON-ready data and as text.

    Args:
        module: The program.
        arguments: The command line: `value`, `collectives`, `details`, `source`.
        options: How to propagate.

    Raises:
        UsageError: Nothing has the given name, or both a value and collectives are requested.
    """
    options = replace(options, trace=True)
    if arguments.collectives:
        if arguments.value is not None:
            raise UsageError("reading the command line", got="a value and --collectives", needed="one of them")
        return _collectives(module, arguments.source, options)
    from pyshardy.api.propagate import propagate

    with stage("propagating"), naming(arguments.source):
        result = propagate(module, options)
        if arguments.value is None:
            conflicts = result.conflicts()
            return conflicts.to_json(), _said(result, str(conflicts))
        found = result.explain(arguments.value, details=arguments.details)
    return found.to_json(), _said(result, str(found))


def _said(result: Result, text: str) -> str:
    """A text after a line on whose shardings it tells of."""
    return "\n".join(filter(None, [result.speaker, text]))


def _told(replications: Sequence[Replication], remedies: Mapping[Replication, Remedy]) -> list[str]:
    """Sentences on tensors that are gathered whole, equal ones folded, with the remedies that were found."""
    times = Counter(map(str, replications))
    helps = {str(found): remedy for found, remedy in remedies.items()}
    return [
        text + (f" ({count} such tensors)" if count > 1 else "") + (f"\n   {helps[text]}" if text in helps else "")
        for text, count in times.items()
    ]


def _with_patch(story: CollectiveStory) -> str:
    """An explanation, with its hint as a patch of the source where it is one."""
    return "\n".join([str(story), *(f"   {line}".rstrip() for line in story.patch.splitlines())])


def _excesses(result: Partition) -> tuple[Excess, ...]:
    """Where the compiler sends more; nothing if pyshardy cannot partition the program."""
    try:
        return result.excesses()
    except ShardyError:
        return ()


def _collectives(module: Module, source: str, options: PropagateOptions) -> tuple[dict[str, Any], str]:
    from pyshardy.api.partition import partition

    with stage("partitioning"), naming(source):
        result = partition(module, propagate_options=options)
    with stage("trying other annotations"), naming(source):
        ways = {story.reason: story.ways for story in result.hints()}
        stories = [story.with_ways(ways.get(story.reason, ())) for story in result.collectives]
    with stage("trying constraints with the compiler"), naming(source):
        remedies = {one.replication: one for one in result.remedies()}
    replications = result.replications
    told = _told(replications, remedies)
    lines = [f"{number}. {text}" for number, text in enumerate((*told, *map(_with_patch, stories)), 1)]
    data: dict[str, Any] = {"collectives": [story.to_json() for story in stories]}
    if result.answer is not None:
        data |= {"compiler": str(result.answer), "replications": [found.to_json() for found in replications]}
        data["remedies"] = [found.to_json() for found in remedies.values()]
        with stage("partitioning without the compiler"), naming(source):
            more = _excesses(result)
        data["excesses"] = [found.to_json() for found in more]
        lines += [f"at {found}" for found in more[:_MOST_EXCESSES]]
    if not stories:
        lines.append("no collectives: the devices do not communicate")
    return data, _said(result, "\n".join(lines))
