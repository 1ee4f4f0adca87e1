"""Writes `docs/passes.md` from the pass table and the modules in `docs/examples/`: `python docs/generate.py`."""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from inspect import cleandoc, getdoc
from pathlib import Path

from pyshardy.ir.module import Module
from pyshardy.passes.base import Anchor
from pyshardy.passes.exporting.export_options import ExportOptions
from pyshardy.passes.options import HasOptions, format_value
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.passes.pipelines import PIPELINES
from pyshardy.passes.table import PASSES, pass_class

FOLDER = Path(__file__).parent
TARGET = FOLDER / "passes.md"
OPTIONS = {
    "canonicalize": "{enable-patterns=sdy-collective}",
    "sdy-convert-global-to-local": "{enable-rgv3=false}",
    "sdy-insert-explicit-reshards": "{enable-full-version=true}",
}
"""Options of the examples that need some."""
HEAD = """# Passes

Written by `python docs/generate.py` from the passes themselves; every example is executed.

Each pass runs from the command line, `pyshardy-opt FILE -NAME='option=value ...'`, in any order; in MLIR's notation,
`--pass-pipeline='builtin.module(NAME{option=value ...})'`; and from Python, `pyshardy.run_pipeline(module, "NAME")`.

| pass | what it does |
|---|---|
"""


def described(cls: type[HasOptions]) -> dict[str, str]:
    """What the class, or one that it extends, says of every option."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        text = cleandoc(base.__doc__ or "").partition("Attributes:\n")[2]
        for name, said in re.findall(r"^    (\w+): (.*(?:\n     +.*)*)", text, re.MULTILINE):
            found[name] = " ".join(said.split())
    return found


def options_of(cls: type[HasOptions]) -> list[str]:
    """A line for every option: its name, its default and what it is for."""
    said = described(cls)
    return [
        f"- `{field.name.replace('_', '-')}` ({format_value(field.default) or 'empty'}): {said[field.name]}"
        for field in fields(cls)
    ]


def pipeline_options(name: str) -> list[str]:
    """A line for every option of a pipeline."""
    if name == ExportOptions.name:
        return options_of(ExportOptions)
    return ["- `dedup-functions-fully` (false): Whether all calls of a function share one sharding of its body."]


def section(name: str) -> str:
    """What the page says of one pass."""
    cls = pass_class(name)
    text, _, _ = (getdoc(cls) or "").partition("\n\nAttributes:\n")
    runs_on = "the module" if cls.anchor is Anchor.MODULE else "every function"
    before = (FOLDER / "examples" / f"{name}.mlir").read_text()
    after = run_pipeline(Module.parse(before), name + OPTIONS.get(name, "")).text()
    after = re.sub(r"^  ", "", after.removeprefix("module {\n").rstrip().removesuffix("}"), flags=re.MULTILINE)
    title = f"`{name}{OPTIONS.get(name, '')}`"
    options = "\n".join(["", "Options, with their defaults:", "", *options_of(cls), ""]) if fields(cls) else ""
    return (
        f"## `{name}`\n\n{text}\n\nRuns on {runs_on}.\n{options}\n"
        f"```mlir\n{before}```\n\nafter {title}\n\n```mlir\n{after.rstrip()}\n```\n"
    )


def page() -> str:
    """The whole page."""
    rows = "".join(f"| [`{name}`](#{name}) | {(getdoc(pass_class(name)) or '').splitlines()[0]} |\n" for name in PASSES)
    pipelines = "".join(
        f"- `{name}`\n" + "".join(f"  {line}\n" for line in pipeline_options(name)) for name in PIPELINES
    )
    return f"{HEAD}{rows}\nPipelines that string them together:\n\n{pipelines}\n" + "\n".join(map(section, PASSES))


if __name__ == "__main__":
    TARGET.write_text(page())
    sys.exit(0)
