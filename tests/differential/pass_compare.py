"""Comparing one pass with the reference's on one module, and the listed reasons for which they may differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from random import Random

from .compare import reference_pipeline
from .pass_programs import VARIANTS, Named
from .reference_process import ReferenceProcess
from .reshard_compare import Comparison, Runner, Verdict, compare, ours

_EMPTY_EDGES = re.compile(r"#sdy\.propagation_edges<\[\]>(, )?")
_DIED = (Verdict.DIED,)
_REASONS: tuple[tuple[str, str, str, tuple[Verdict, ...]], ...] = (
    ("debug attributes", r"[{ ]debug-.*=true", r"", _DIED),
    ("inlined mesh in propagation", r"-propagate\b", r"<mesh<", _DIED),
    ("value in two sharding groups", r"-propagate\b", r'"sdy\.sharding_group"', _DIED),
    ("dead op with a priority", r"sdy-user-priority-propagate", r"}p\d", _DIED),
)
"""What `docs/differences.md` lists: a name, what the pass and the module look like, and how the comparison comes out."""
EDGE_TWICE = "edge that is already there"


def without_empty_edges(text: str) -> str:
    """A module of the reference's without the entries for no propagation edges, which cannot be read again."""
    return re.sub(r", \]", "]", _EMPTY_EDGES.sub("", text)) if _EMPTY_EDGES.search(text) else text


def listed_reason(text: str, pipeline: str, found: Comparison) -> str | None:
    """The listed reason for a difference, if there is one."""
    for name, passes, module, verdicts in _REASONS:
        if found.verdict in verdicts and re.search(passes, pipeline) and re.search(module, text):
            return name
    if found.verdict is Verdict.FATAL:
        return "unreduced axes without a way"
    if found.verdict is Verdict.INVALID:
        return "collectives that are not valid"
    if (
        pipeline.startswith(("sdy-add-data-flow-edges", "sdy-import-func-calls"))
        and found.details.startswith("given  accepted")
        and "'sdy.data_flow_edge' op expected input" in found.details
    ):
        return EDGE_TWICE
    return None


def compare_pass(
    modules: list[Named], pipeline: str, count: int, reference: Runner, candidate: Runner = ours
) -> tuple[Counter[str], list[str]]:
    """Compare a pass on some of the modules: numbers by outcome, and the differences that are not listed."""
    passes, found, wrong = reference_pipeline(pipeline), Counter[str](), []
    for name, text in Random(pipeline).sample(modules, min(count, len(modules))):
        outcome = compare(
            text, passes, lambda *given: without_empty_edges(reference(*given)), candidate, ask_fatal=True
        )
        reason = None if outcome.verdict is Verdict.SAME else listed_reason(text, pipeline, outcome)
        found[reason or outcome.verdict.value] += 1
        if reason is None and outcome.verdict is not Verdict.SAME:
            wrong.append(f"{pipeline} on {name}: {outcome.verdict.value}\n{outcome.details[:2000]}")
    return found, wrong


def campaign(modules: Iterable[list[Named]], reference: ReferenceProcess, count: int) -> int:
    """Compare every pass with every value of its options on up to `count` modules of each list; prints what differs."""
    total: dict[str, Counter[str]] = {pipeline: Counter() for variants in VARIANTS.values() for pipeline in variants}
    differences = 0
    for chosen in modules:
        for pipeline, sums in total.items():
            found, wrong = compare_pass(chosen, pipeline, count, reference.run)
            sums += found
            differences += len(wrong)
            for text in wrong:
                print(text, flush=True)
    for pipeline, sums in total.items():
        print(f"{pipeline}: {sums.total()} modules, {dict(sums)}", flush=True)
    return differences
