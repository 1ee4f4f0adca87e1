"""Plans confirmed by the compilers for TPUs and GPUs, where they are installed."""

from __future__ import annotations

import pytest
from search.written import COMPILERS, compared

import pyshardy
from pyshardy.compilers.plugins import is_installed
from tests.unit.searching.planning.test_compiled import PROGRAM


@pytest.mark.parametrize(("compiler", "hardware"), [("tpu", "v5e"), ("cuda:h100:8", "h100")])
def test_the_plan_is_the_one_whose_program_is_best(compiler: str, hardware: str) -> None:
    if not is_installed(compiler.partition(":")[0]):
        pytest.skip(f"the compiler {compiler} is not installed beside this Python")
    module = pyshardy.load(PROGRAM)
    plan = pyshardy.search(module, compiler=compiler, candidates=20)
    rows = plan.summary.compiled
    assert hardware in plan.summary.compiler and hardware in plan.summary.hardware.lower()
    assert [row.seconds for row in rows] == sorted(row.seconds for row in rows) and len(rows) >= 3
    compiled = pyshardy.partition(plan.apply(module), compiler=compiler)
    assert plan.step_seconds == pyshardy.cost(compiled, hardware).step_seconds


@pytest.mark.parametrize(("program", "chip"), [("routed", "v5e"), ("prefill", "h100")])
def test_no_worse_than_what_people_write_with_constraints(program: str, chip: str) -> None:
    if not is_installed(COMPILERS[chip].partition(":")[0]):
        pytest.skip(f"the compiler {COMPILERS[chip]} is not installed beside this Python")
    found = compared(program, chip, {"data": 2, "model": 4}, budget_s=120, candidates=120)
    assert found.verdict != "loss", found
