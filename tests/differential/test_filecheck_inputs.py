"""What the file-check tests expect is what the reference gives: every module of theirs goes through both.

A comment in a module says where that is not so:

    // NEWER: reason      jaxlib before 0.12 gives something else
    // DIFFERS: reason    the reference dies, or gives something that makes no sense
    // UNDEFINED: reason  the reference reads what it has freed, or takes all memory: it may die, or not
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from pyshardy.passes.pipelines import is_pass_or_pipeline
from pyshardy.passes.table import PASSES, pass_class
from support.reference import jaxlib_version

from .compare import compare, reference_pipeline
from .reference_process import Died, ReferenceProcess, Refused

FOLDER = Path(__file__).parents[1] / "filecheck"
FILES = sorted(path.relative_to(FOLDER) for path in FOLDER.rglob("*.mlir") if ".lit" not in path.parts)
SHOWN_ELSEWHERE = frozenset(("trace", "module_dump_index", "name_causes"))
"""Options that change nothing in the text of a module."""

_RUN = re.compile(r"^// RUN: (.*)$", re.MULTILINE)
_SEPARATOR = re.compile(r"^// -----.*$", re.MULTILINE)
_REMARK = re.compile(r"^// (NEWER|DIFFERS|UNDEFINED): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """One module of a file with the passes of one of its RUN lines.

    Attributes:
        name: What to call it.
        pipeline: The passes, as MLIR writes them.
        text: The module.
    """

    name: str
    pipeline: str
    text: str

    @property
    def remarks(self) -> dict[str, str]:
        """The remarks of the module by their kind."""
        return dict(_REMARK.findall(self.text))

    @property
    def is_refused(self) -> bool:
        """Whether an error is expected."""
        return "expected-error" in self.text


def pipeline_of(command: str) -> str:
    """The passes of a RUN line.

    >>> pipeline_of("sdy_opt %s -split-input-file -symbol-dce -sdy-unflatten-call-graph='a=1 b=2' | FileCheck %s")
    'symbol-dce,sdy-unflatten-call-graph{a=1 b=2}'
    """
    passes = []
    for argument in shlex.split(command.partition("|")[0]):
        name, _, options = argument.lstrip("-").partition("=")
        if argument.startswith("-") and is_pass_or_pipeline(name):
            passes.append(f"{name}{{{options}}}" if options else name)
    return ",".join(passes)


def options_in(pipeline: str) -> list[tuple[str, str]]:
    """The options of a pipeline, each with its pass.

    >>> options_in("symbol-dce,sdy-unflatten-call-graph{a=1 b=2}")
    [('sdy-unflatten-call-graph', 'a'), ('sdy-unflatten-call-graph', 'b')]
    """
    found = re.findall(r"([\w-]+)\{([^}]*)\}", pipeline)
    return [(name, option) for name, options in found for option in re.findall(r"([\w-]+)=", options)]


def is_own(pipeline: str) -> bool:
    """Whether the reference cannot run a pipeline: it lacks a pass of it, or an option."""
    options = [(name, option) for name, option in options_in(pipeline) if name in PASSES]
    return "pyshardy-" in pipeline or any(
        option.replace("-", "_") in pass_class(name).own_options for name, option in options
    )


def cases_of(name: str, text: str) -> Iterator[Case]:
    """Every module of a file with every pipeline that the file runs."""
    for pipeline in dict.fromkeys(pipeline_of(command) for command in _RUN.findall(text)):
        for number, module in enumerate(_SEPARATOR.split(text)):
            yield Case(f"{name}:{number}:{pipeline}", pipeline, module)


CASES = [case for path in FILES for case in cases_of(str(path.with_suffix("")), (FOLDER / path).read_text())]


def is_refused_here(case: Case) -> bool:
    """Whether pyshardy refuses the module."""
    try:
        run_pipeline(Module.parse(case.text), case.pipeline).verify()
    except InvalidModuleError:
        return True
    return False


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Case, reference: ReferenceProcess) -> None:
    remarks = case.remarks
    if "NEWER" in remarks and jaxlib_version() < (0, 12):
        pytest.skip(f"jaxlib 0.12: {remarks['NEWER']}")
    assert is_refused_here(case) == case.is_refused
    if "UNDEFINED" in remarks or is_own(case.pipeline):
        return
    if not case.is_refused and "DIFFERS" not in remarks:
        assert compare(case.text, case.pipeline) == ""
        return
    try:
        reference.run(case.text, reference_pipeline(case.pipeline))
    except (Died, Refused) as error:
        assert ("DIFFERS" in remarks) == (isinstance(error, Died) or not case.is_refused)
    else:
        assert "DIFFERS" in remarks
        assert compare(case.text, case.pipeline) != ""


def test_what_a_file_runs() -> None:
    text = (
        "// RUN: sdy_opt %s -symbol-dce | FileCheck %s\n"
        "// RUN: sdy_opt %s -sdy-unflatten-call-graph='dedup-functions-fully=true' -symbol-dce\n"
        "module {}\n// -----\n// DIFFERS: so\n// expected-error@+1 {{no}}\nmodule {}\n"
    )
    cases = list(cases_of("file", text))
    assert [case.pipeline for case in cases] == [
        "symbol-dce",
        "symbol-dce",
        *["sdy-unflatten-call-graph{dedup-functions-fully=true},symbol-dce"] * 2,
    ]
    assert [case.is_refused for case in cases] == [False, True, False, True]
    assert [case.remarks for case in cases[:2]] == [{}, {"DIFFERS": "so"}]


def test_what_the_reference_lacks_is_known() -> None:
    pass_ = "sdy-resolve-permutation-factors"
    assert is_own("pyshardy-expand,symbol-dce") and is_own(f"symbol-dce,{pass_}{{exchange-windows=true}}")
    assert not is_own(f"{pass_}{{enable-halo-exchange=false}},sdy-export-pipeline{{inline-meshes=false}}")


def test_every_option_of_every_pass_is_run() -> None:
    used = {found for case in CASES for found in options_in(case.pipeline)}
    known = {
        (name, field.name.replace("_", "-"))
        for name in PASSES
        for field in fields(pass_class(name))
        if field.name not in SHOWN_ELSEWHERE
    }
    assert not known - used, f"a file in tests/filecheck/ is to show what these options do: {sorted(known - used)}"
