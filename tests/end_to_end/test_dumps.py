"""What XLA dumps is imported as XLA imports it, and propagated to what XLA's Shardy decides."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyshardy
from pyshardy.results.decided import compare, dump_shardings

PROGRAM = Path(__file__).parents[1] / "support" / "dump_programs.py"
NAMES = ("mlp_training", "embedding_training", "several_meshes", "device_order", "sorting", "exported_call",
         "explicit_types", "manual_partial", "manual_nested", "manual_collectives", "pipeline_stages", "callbacks")  # fmt: skip

OTHER_OPS = {"sorting", "explicit_types", "pipeline_stages", "callbacks"}
"""Programs whose ops are not one by one those of XLA's dump after propagation."""


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("dumps")
    subprocess.run([sys.executable, str(PROGRAM), str(directory), *NAMES], check=True, capture_output=True)
    return directory


@pytest.mark.parametrize("name", NAMES)
def test_a_dump_is_propagated_as_xla_does(name: str, dumps: Path) -> None:
    propagation = pyshardy.propagate(pyshardy.load(f"{dumps}/dump::{name}"))
    propagation.module.verify()
    found = compare(propagation.module, dump_shardings(f"{dumps}/dump::{name}"))
    assert found.differences == ()
    assert found.values > 1
    assert (found.ops is None) == (name in OTHER_OPS)


@pytest.mark.parametrize("name", NAMES)
def test_the_hlo_of_the_same_program_too(name: str, dumps: Path) -> None:
    propagation = pyshardy.propagate(pyshardy.load(dumps / f"{name}.txt"))
    decided = dump_shardings(f"{dumps}/dump::{name}")
    differences = compare(propagation.module, decided).differences
    assert [found for found in differences if found.where.startswith(("input", "output"))] == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith(("manual", "pipeline", "device"))])
def test_manual_computations_are_those_of_xla(name: str, dumps: Path) -> None:
    theirs = (dumps / f"dump/shardy/module.{name}/01.before_propagation.mlir").read_text()
    heads = [
        re.findall(
            r"in_shardings=.* manual_axes=\{.*?\}", pyshardy.run_pipeline(module, "sdy-manual-axes-cleanup").text()
        )
        for module in (pyshardy.load(f"{dumps}/dump::{name}"), pyshardy.load(theirs))
    ]
    assert heads[0] == heads[1]
    assert heads[0]
