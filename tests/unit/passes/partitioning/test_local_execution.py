"""Local programs give on all devices what the program on whole tensors gives."""

from __future__ import annotations

import pytest

from pyshardy.ir.module import Module
from pyshardy.passes.pipeline import run_pipeline
from support.interpreter import disagreement
from support.local_programs import PROGRAMS
from support.reference import jaxlib_version

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="before 0.12, the interpreter needs as many threads as there are devices"
)
LOCAL = "sdy-convert-global-to-local"


@pytest.mark.parametrize("options", ["", "{enable-rgv3=false}"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_devices_give_what_the_whole_program_gives(name: str, options: str) -> None:
    source = Module.parse(PROGRAMS[name])
    assert not disagreement(source, run_pipeline(source, LOCAL + options), seed=len(name))


@pytest.mark.parametrize("name", ["iota", "reduce add from an argument", "scatter add of i32"])
def test_devices_can_be_replicas(name: str) -> None:
    source = Module.parse(PROGRAMS[name])
    local = run_pipeline(source, f"{LOCAL}{{replica-count=4 enable-rgv3=false}}")
    assert not disagreement(source, local, as_replicas=True)


def test_a_wrong_program_disagrees() -> None:
    source = Module.parse(PROGRAMS["iota"])
    text = run_pipeline(source, LOCAL).text()
    assert "[0, 3, 0, 3]" in text
    wrong = Module.parse(text.replace("[0, 3, 0, 3]", "[0, 3, 0, 2]"))
    assert "result 0 on device 3" in disagreement(source, wrong)
