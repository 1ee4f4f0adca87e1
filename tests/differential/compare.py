"""Comparing pyshardy with the reference on one module."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from jaxlib.mlir import ir

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.module import Module
from pyshardy.passes.base import Anchor
from pyshardy.passes.pipeline import run_passes
from pyshardy.passes.pipelines import parse_pipeline
from support.reference import run_reference
from support.writing import verify_written


@dataclass(frozen=True)
class Outcome:
    """What a pipeline makes of a module: a printed module, or a refusal with its message."""

    text: str | None
    refusal: str | None = None


def reference_pipeline(pipeline: str) -> str:
    """The pipeline with its function passes nested, as MLIR wants it."""
    parts = []
    for name in re.split(r",(?![^{}]*\})", pipeline):
        passes = parse_pipeline(name)
        is_function_pass = len(passes) == 1 and passes[0].anchor is Anchor.FUNCTION
        parts.append(f"func.func({name})" if is_function_pass else name)
    return ",".join(parts)


def reference_outcome(text: str, pipeline: str, *, debug_info: bool = False) -> Outcome:
    """What the reference makes of a module."""
    passes = reference_pipeline(pipeline)
    try:
        return Outcome(run_reference(text, passes, debug_info=debug_info).strip())
    except ir.MLIRError as error:
        return Outcome(None, str(error))


def our_outcome(text: str, pipeline: str, *, debug_info: bool = False) -> Outcome:
    """What pyshardy makes of it."""
    try:
        module = run_passes(Module.parse(text), parse_pipeline(pipeline))
        verify_written(module)
    except InvalidModuleError as error:
        return Outcome(None, str(error))
    return Outcome(module.text(generic=True, debug_info=debug_info).strip())


def difference(reference: Outcome, ours: Outcome, limit: int = 40) -> str:
    """The lines in which two outcomes differ, or nothing; refusals are equal whatever their words."""
    if reference.text is None or ours.text is None:
        if reference.text is None and ours.text is None:
            return ""
        return f"reference: {reference.refusal or 'accepts'}\nours: {ours.refusal or 'accepts'}"
    if reference.text == ours.text:
        return ""
    texts = reference.text.splitlines(), ours.text.splitlines()
    lines = difflib.unified_diff(*texts, "reference", "ours", n=1, lineterm="")
    return "\n".join(line[:400] for _, line in zip(range(limit), lines))


def compare(text: str, pipeline: str, *, debug_info: bool = False) -> str:
    """The difference between the reference and pyshardy on one module, or nothing."""
    ours = our_outcome(text, pipeline, debug_info=debug_info)
    return difference(reference_outcome(text, pipeline, debug_info=debug_info), ours)
