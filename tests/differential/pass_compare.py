"""Comparing one pass with the reference's on one module, and the listed reasons for which they may differ."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from random import Random

from pyshardy.ir.functions import functions, is_declaration
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.ir.shardings import arg_sharding, get_sharding
from pyshardy.rules.opspec import OpSpec
from pyshardy.rules.table import rule_of

from .compare import reference_pipeline
from .partition_reasons import partition_reason
from .pass_programs import PIPELINE_VARIANTS, VARIANTS, Named
from .reference_process import ReferenceProcess
from .reshard_compare import Comparison, Runner, Verdict, compare, ours

_EMPTY_EDGES = re.compile(r"#sdy\.propagation_edges<\[\]>(, )?")
_DIED = (Verdict.DIED,)
_REASONS: tuple[tuple[str, str, str, tuple[Verdict, ...]], ...] = (
    ("debug attributes", r"[{ ]debug-.*=true", r"", _DIED),
    ("inlined mesh in propagation", r"-propagate\b", r"<mesh<", _DIED),
    ("inlined mesh in reshards", r"sdy-(insert-explicit-reshards|export-pipeline)", r"<mesh<", _DIED),
    ("value in two sharding groups", r"-propagate\b", r'"sdy\.sharding_group"', _DIED),
    ("dead op with a priority", r"sdy-user-priority-propagate", r"}p\d", _DIED),
)
"""What `docs/differences.md` lists: a name, what the pass and the module look like, and how the comparison comes out."""
ADDS_EDGES = (
    "sdy-add-data-flow-edges",
    "sdy-add-func-data-flow-edges",
    "sdy-import-func-calls",
    "sdy-import-pipeline",
    "sdy-propagation-pipeline",
)
_EDGE_REFUSED = re.compile(r"'sdy\.(data_flow_edge' op expected input|func_data_flow_edge' op expected operand)")
_FREED_SHARDING = re.compile(
    r"given  accepted\nwanted refused: \S+: 'sdy\.named_computation' op in_shardings \d+ - sharding doesn't match tensor rank"
)
"""What the reference's verifier says where the pass has written a sharding that was freed."""
_INSERTS_RESHARDS = re.compile(r"sdy-insert-explicit-reshards\{.*enable-full-version=true|sdy-export-pipeline\b")
RESHAPE = "reshape of three dimensions or more into one"
EDGE_TWICE = "edge that is already there"
CALLED_TWICE = "function with some arguments sharded, called twice"


def without_empty_edges(text: str) -> str:
    """A module of the reference's without the entries for no propagation edges, which cannot be read again."""
    return re.sub(r", \]", "]", _EMPTY_EDGES.sub("", text)) if _EMPTY_EDGES.search(text) else text


def listed_reason(text: str, pipeline: str, found: Comparison) -> str | None:
    """The listed reason for a difference, if there is one."""
    for name, passes, module, verdicts in _REASONS:
        if found.verdict in verdicts and re.search(passes, pipeline) and re.search(module, text):
            return name
    if (
        pipeline.startswith("sdy-import-func-calls")
        and (found.verdict is Verdict.DIED or _FREED_SHARDING.match(found.details))
        and calls_twice_with_some_arguments_sharded(text)
    ):
        return CALLED_TWICE
    if found.verdict is Verdict.DIED and _INSERTS_RESHARDS.match(pipeline) and reshapes_many_dimensions(text):
        return RESHAPE
    reason = partition_reason(text, pipeline, found)
    if reason is not None:
        return reason
    if found.verdict is Verdict.FATAL:
        return "unreduced axes without a way"
    if found.verdict is Verdict.INVALID:
        return "collectives that are not valid"
    given, _, wanted = found.details.partition("\nwanted ")
    if pipeline.startswith(ADDS_EDGES) and _EDGE_REFUSED.search(wanted) and not _EDGE_REFUSED.search(given):
        return EDGE_TWICE
    return None


def calls_twice_with_some_arguments_sharded(text: str) -> bool:
    """Whether a module calls a function several times of whose arguments some have a sharding and some have none."""
    root = Module.parse(text).root
    calls = Counter(op.attrs["callee"] for op in walk(root) if op.name == "func.call")
    return any(
        len({arg_sharding(function, arg.index) is None for arg in function.region.blocks[0].args}) == 2
        for function in functions(root)
        if calls[function.attrs["sym_name"]] > 1 and not is_declaration(function)
    )


def reshapes_many_dimensions(text: str) -> bool:
    """Whether a module has a sharded reshape that joins three dimensions or more, or splits one into as many."""
    for op in walk(Module.parse(text).root):
        if op.name == "stablehlo.reshape" and any(get_sharding(value) for value in (*op.operands, op.result)):
            rule = rule_of(OpSpec(op.name, [op.operands[0].type.shape], [op.result.type.shape]))
            if rule is not None and any(len(dim) > 2 for tensor in rule.tensors for dim in tensor):
                return True
    return False


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
    """Compare passes and pipelines with all options on up to `count` modules of each list; prints what differs."""
    variants = [*VARIANTS.values(), *PIPELINE_VARIANTS.values()]
    total: dict[str, Counter[str]] = {pipeline: Counter() for found in variants for pipeline in found}
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
