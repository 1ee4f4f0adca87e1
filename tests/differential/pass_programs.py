"""The modules on which every pass is compared alone: programs as they come, and caught between the passes of pipelines.

The stages are the reference's: a pass is compared on what the reference would give it, and on what it never would.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum
from functools import cache
from random import Random
from typing import get_type_hints

from programs import PROGRAMS
from pyshardy.errors import UsageError
from pyshardy.passes.base import Pass
from pyshardy.passes.export_options import ExportOptions, PartitionerStage
from pyshardy.passes.options import HasOptions, format_options, format_value
from pyshardy.passes.pipelines import parse_pipeline
from pyshardy.passes.table import PASSES, pass_class
from support.programs import module_text

from .compare import reference_pipeline
from .random_programs import Features, random_program
from .reference_process import Died, ReferenceProcess, Refused
from .reshard_programs import FAMILIES, STYLES

PIPELINES = ("sdy-propagation-pipeline", "sdy-propagation-pipeline{dedup-functions-fully=true}")
SMALL = Features(ops=6, calls=0.2, groups=0.06, manual=0.1)
FEATURES = (
    SMALL,
    replace(SMALL, calls=0.35, annotated=0.3, groups=0.0),
    replace(SMALL, constraints=0.5, control_flow=0.3),
    replace(SMALL, meshes=2, control_flow=0.3, annotated=0.3),
    replace(SMALL, manual=0.4, calls=0.2),
    replace(SMALL, priorities=0.3, groups=0.0),
    replace(SMALL, unreduced=0.15, annotated=0.4),
    replace(SMALL, groups=0.3),
)
"""What the random programs hold, by turns; every other one of them has inlined meshes too."""
MOST_CALLS = 10
"""Calls in the text of a program: flattened, a program with many of them grows beyond measure."""
CHOICES = {("canonicalize", "enable-patterns"): ("sdy-collective", "sdy-reshard")}
"""Options whose values are not a matter of their type, besides none."""
LATE_STAGES = tuple(
    f"partitioner-stage={stage.value}"
    for stage in PartitionerStage
    if stage.reaches(PartitionerStage.PAD_FOR_DIVISIBILITY)
)
"""Stages of export that are compared on propagated programs alone, in test_late_stages.py: other modules are refused."""

Named = tuple[str, str]
"""A module and where it comes from."""


def _values(pass_name: str, option: str, kind: object) -> tuple[str, ...]:
    if kind is bool:
        return ("false", "true")
    if isinstance(kind, type) and issubclass(kind, Enum):
        return tuple(member.value for member in kind)
    return CHOICES.get((pass_name, option), ())


def variants(cls: type[HasOptions], in_pairs: tuple[str, ...] = ()) -> list[str]:
    """A pass or pipeline with default options, and with every value of every option; all as a pipeline.

    Args:
        cls: The class with the options.
        in_pairs: Options that are compared with every value of every other one, set to what is not the default.
    """
    hints, name = get_type_hints(cls), cls.name
    base = {option: values[0] for (of, option), values in CHOICES.items() if of == name}
    found = [{}, base] if base else [base]
    for field in fields(cls):
        option = field.name.replace("_", "-")
        if not (issubclass(cls, Pass) and field.name in cls.own_options):
            found += [base | {option: value} for value in _values(name, option, hints[field.name])]
    for option in in_pairs:
        default = getattr(cls, option.replace("-", "_"))
        found += [options | {option: format_value(not default)} for options in found]
    texts = [" ".join(f"{option}={value}" for option, value in options.items()) for options in found]
    pipelines = [f"{name}{{{text}}}" if text else name for text in texts]
    wanted = [text for text in pipelines if _is_complete(text) and not any(stage in text for stage in LATE_STAGES)]
    distinct = {str(parse_pipeline(pipeline)): pipeline for pipeline in wanted}
    return list(distinct.values())


def _is_complete(pipeline: str) -> bool:
    """Whether all passes of a pipeline are there; the options of those of export may need some that are not."""
    try:
        parse_pipeline(pipeline)
    except UsageError as error:
        if "passes that pyshardy has" not in str(error) and "needed partitioner-stage" not in str(error):
            raise
        return False
    return True


COMPARED_APART = {
    "sdy-convert-global-to-local": "ends the reference's process on nearly all these modules: test_local.py",
    "sdy-per-instruction-partitioning": "most of these modules are refused: test_per_instruction.py",
    **{name: "the reference has no such pass" for name in PASSES if name.startswith("pyshardy-")},
}
"""Passes that are compared on modules of their own, and why."""
VARIANTS = {name: variants(pass_class(name)) for name in PASSES if name not in COMPARED_APART}
"""Per pass, the pipelines to compare."""
PIPELINE_VARIANTS = {
    "sdy-import-pipeline": ["sdy-import-pipeline", "sdy-import-pipeline{dedup-functions-fully=true}"],
    "sdy-propagation-pipeline": [*PIPELINES],
    "sdy-export-pipeline": variants(ExportOptions, ("mark-partial-result-with-unreduced-axes", "inline-meshes")),
}
"""Per pipeline, with which options to compare it."""


def with_inlined_meshes(text: str, random: Random) -> str:
    """The module with a part of its shardings on inlined meshes."""
    meshes = dict(re.findall(r"sdy\.mesh @(\w+) = <(.*)>$", text, re.MULTILINE))

    def inline(match: re.Match[str]) -> str:
        mesh = meshes.get(match[1])
        return match[0] if mesh is None or random.random() < 0.5 else f"<mesh<{mesh}>, "

    return re.sub(r"<@(\w+), ", inline, text)


def raw_program(seed: int) -> str:
    """A module as a user would write it; one in nine is one on which inserted reshards are compared."""
    kind = seed % (len(FEATURES) + 1)
    if kind == len(FEATURES):
        return FAMILIES["chain"][0](seed, STYLES)
    tries = (random_program(number, FEATURES[kind]) for number in range(seed, seed + 10**9, 10**6))
    text = next(text for text in tries if text.count("func.call") <= MOST_CALLS)
    return with_inlined_meshes(text, Random(seed)) if seed % 2 else text


@cache
def pipeline_passes(pipeline: str) -> tuple[str, ...]:
    """The passes of a pipeline, each as a pipeline of the reference."""
    found = []
    for pass_ in parse_pipeline(pipeline):
        options = format_options(pass_)
        found.append(reference_pipeline(f"{pass_.name}{{{options}}}" if options else pass_.name))
    return tuple(found)


def stages(text: str, pipeline: str, reference: ReferenceProcess) -> Iterator[Named]:
    """What the reference has made of a module behind each pass of a pipeline, as far as it gets."""
    for number, passes in enumerate(pipeline_passes(pipeline), 1):
        try:
            text = reference.run(text, passes)
        except (Refused, Died):
            return
        yield f"behind pass {number}, {passes}", text


def modules(name: str, text: str, reference: ReferenceProcess) -> list[Named]:
    """A module and its stages, without those that are equal to one before; none if it is not valid."""
    try:
        text = reference.run(text, "")
    except Refused:
        return []
    found = {text: name}
    for pipeline in PIPELINES:
        short = "dedup" if "dedup" in pipeline else "default"
        for stage, result in stages(text, pipeline, reference):
            found.setdefault(result, f"{name} {short} {stage}")
    return [(where, text) for text, where in found.items()]


def random_modules(seeds: range, reference: ReferenceProcess) -> list[Named]:
    """Random programs and their stages."""
    return [found for seed in seeds for found in modules(f"seed {seed}", raw_program(seed), reference)]


def jax_modules(name: str, reference: ReferenceProcess) -> list[Named]:
    """A JAX program and its stages; none if it cannot be lowered here."""
    program = PROGRAMS[name]
    return [] if program.skip() else modules(name, module_text(program), reference)
