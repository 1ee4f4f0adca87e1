"""Writes the generated parts of pages: `python docs/generate.py`; with names of pages, only those.

`docs/passes.md` comes from the pass table and the modules in `docs/examples/`. On the pages of `docs/semantics/`, a
block of MLIR followed by "after `PIPELINE`", once or several times, gets the output of the pipeline. On all other
pages, a block of Python followed by "prints" gets its output (`executed.py`). `docs/drawings` gets the drawings
(`drawings.py`). A `console` block gets the output of its command, on the README too. Set
XLA_FLAGS=--xla_force_host_platform_device_count=8, for the examples that run. Examples with published packages are
executed where these are installed (`.venv-packages`), and remain unchanged elsewhere.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import fields
from importlib.util import find_spec
from inspect import cleandoc, getdoc
from pathlib import Path

from drawings import drawings
from executed import groups, missing, with_output
from rooms import with_rooms

from pyshardy.ir.module import Module
from pyshardy.passes.base import Anchor, Pass
from pyshardy.passes.export_options import ExportOptions
from pyshardy.passes.options import HasOptions, format_value
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.passes.pipelines import PIPELINES
from pyshardy.passes.table import PASSES, pass_class

FOLDER = Path(__file__).parent
TARGET = FOLDER / "passes.md"
PAGES = sorted((FOLDER / "semantics").glob("*.md"))
ROOT = FOLDER.parent
CONSOLE_PAGES = [ROOT / "README.md", *sorted(FOLDER.rglob("*.md"))]
PACKAGES = ("flax", "equinox", "haiku", "keras", "optax")
"""What examples with published packages import."""
_CONSOLE = re.compile(r"^```console(?P<packages> packages)?\n\$ (?P<command>.*)\n((?:(?!```).*\n)*)```$", re.MULTILINE)
_MLIR = r"```mlir\n(?:(?!```).)*```\n"
_EXAMPLE = re.compile(rf"({_MLIR})((?:\nafter `[^`]+`\n\n{_MLIR})+)", re.DOTALL)
_AFTER = re.compile(rf"\nafter `([^`]+)`\n\n({_MLIR})", re.DOTALL)
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
    own = cls.own_options if issubclass(cls, Pass) else ()
    return [
        f"- `{field.name.replace('_', '-')}` ({format_value(field.default) or 'empty'}): {said[field.name]}"
        + (" Shardy's pass does not have this option." if field.name in own and cls.name.startswith("sdy-") else "")
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
    after = shown(run_pipeline(Module.parse(before), name + OPTIONS.get(name, "")))
    title = f"`{name}{OPTIONS.get(name, '')}`"
    options = "\n".join(["", "Options, with their defaults:", "", *options_of(cls), ""]) if fields(cls) else ""
    return (
        f"## `{name}`\n\n{text}\n\nRuns on {runs_on}.\n{options}\n"
        f"```mlir\n{before}```\n\nafter {title}\n\n```mlir\n{after}\n```\n"
    )


def shown(module: Module) -> str:
    """A module as pages show it: what is in it, unless it says something itself."""
    text = module.text().rstrip()
    if not text.startswith("module {\n"):
        return text
    text = text.removeprefix("module {\n").removesuffix("}").rstrip()
    return re.sub(r"^  ", "", text, flags=re.MULTILINE)


def examples(text: str) -> list[tuple[str, str, str]]:
    """The examples on a page: a module, a pipeline, and what the page says that this makes of it."""
    return [
        (_inside(before), pipeline, _inside(after))
        for before, results in _EXAMPLE.findall(text)
        for pipeline, after in _AFTER.findall(results)
    ]


def _inside(block: str) -> str:
    return block.removeprefix("```mlir\n").removesuffix("```\n")


def with_results(text: str) -> str:
    """A page with what the pipelines of its examples give."""

    def filled(example: re.Match[str]) -> str:
        module = Module.parse(_inside(example[1]))

        def result(after: re.Match[str]) -> str:
            return f"\nafter `{after[1]}`\n\n```mlir\n{shown(run_pipeline(module, after[1]))}\n```\n"

        return example[1] + _AFTER.sub(result, example[2])

    return _EXAMPLE.sub(filled, text)


def printed(command: str) -> str:
    """What a command of a `console` block prints, on a terminal of no known width, without colors."""
    unset = ("COLUMNS", "FORCE_COLOR", "XLA_FLAGS", "JAX_NUM_CPU_DEVICES")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", "")])
    found = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=ROOT, env=environment, check=True, stdout=subprocess.PIPE
    )
    return found.stdout.decode()


def commands(text: str, packages: bool = False) -> list[tuple[str, str]]:
    """The commands in the `console` blocks of a page, and what the page says that they print.

    Args:
        text: The page.
        packages: Whether they are those of blocks that need published packages.
    """
    found = _CONSOLE.finditer(text)
    return [(block["command"], block[3]) for block in found if bool(block["packages"]) == packages]


def with_outputs(text: str, packages: bool = False) -> str:
    """A page with what the commands in its `console` blocks print; see `commands`."""

    def filled(block: re.Match[str]) -> str:
        if bool(block["packages"]) != packages:
            return block[0]
        return f"```console{block['packages'] or ''}\n$ {block['command']}\n{printed(block['command'])}```"

    return _CONSOLE.sub(filled, text)


def page() -> str:
    """The whole page."""
    rows = "".join(f"| [`{name}`](#{name}) | {(getdoc(pass_class(name)) or '').splitlines()[0]} |\n" for name in PASSES)
    pipelines = "".join(
        f"- `{name}`\n" + "".join(f"  {line}\n" for line in pipeline_options(name)) for name in PIPELINES
    )
    return f"{HEAD}{rows}\nPipelines that string them together:\n\n{pipelines}\n" + "\n".join(map(section, PASSES))


def write(*named: str) -> None:
    """Write the pages of these files, or all pages and drawings if there are none."""
    only = {Path(name).resolve() for name in named}
    pages = {TARGET, ROOT / "CONTRIBUTING.md", *CONSOLE_PAGES}
    if only - pages:
        sys.exit(f"no pages: {', '.join(sorted(map(str, only - pages)))}")
    for path in sorted(only or pages):
        written = filled(path)
        if written != path.read_text():
            path.write_text(written)
    for path, text in drawings().items() if not only else ():
        path.write_text(text)


def filled(path: Path) -> str:
    """A page with all that is written by this script."""
    text = page() if path == TARGET else path.read_text()
    if path == ROOT / "CONTRIBUTING.md":
        return with_rooms(text)
    if path in PAGES:
        text = with_results(text)
    if path.is_relative_to(FOLDER):
        text = with_output(text)
        if all(map(find_spec, PACKAGES)) and not missing(
            "".join(block.code for one in groups(text, True) for block in one)
        ):
            text = with_output(text, packages=True)
        if all(map(find_spec, PACKAGES)) and not missing("".join(command for command, _ in commands(text, True))):
            text = with_outputs(text, packages=True)
    return with_outputs(text)


if __name__ == "__main__":
    write(*sys.argv[1:])
