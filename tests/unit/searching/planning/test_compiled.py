"""Plans in the order of the programs that a compiler makes of them: here XLA for CPUs, priced as on a v5p."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.core.text import format_bytes
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.errors import UsageError
from pyshardy.report.plan import THE_PLAN, CompiledRow
from pyshardy.results.plan import plan_from_json
from pyshardy.searching.autopartition.objective import Objective
from pyshardy.searching.planning import compiled
from pyshardy.searching.planning.compiled import AS_GIVEN, Rival, confirmed
from pyshardy.searching.planning.options import SearchOptions
from pyshardy.searching.program.to_the_end import CompiledProgram
from tests.unit.compilers.programs import REPLICATED

PROGRAM = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<4096x512xbf16>, %up: tensor<512x2048xbf16>, %down: tensor<2048x512xbf16>)
    -> tensor<4096x512xbf16> {
  %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0]
    : (tensor<4096x512xbf16>, tensor<512x2048xbf16>) -> tensor<4096x2048xbf16>
  %1 = stablehlo.tanh %0 : tensor<4096x2048xbf16>
  %2 = stablehlo.dot_general %1, %down, contracting_dims = [1] x [0]
    : (tensor<4096x2048xbf16>, tensor<2048x512xbf16>) -> tensor<4096x512xbf16>
  return %2 : tensor<4096x512xbf16>
}"""
STEP_BY_STEP = REPLICATED.replace('<@mesh, [{}, {"x", "y"}, {}]>', '<@mesh, [{"y"}, {}, {"x"}]>')
"""Without the constraint that XLA replicates a tensor for."""
OPTIONS = SearchOptions(
    find_hardware("v5p"), None, None, CollectiveModel.FORMULA, Objective(1e12), 10.0, 10, 0, compiler="cpu"
)  # fmt: skip


def rival(name: str, text: str, is_plan: bool = True) -> Rival:
    module = pyshardy.load(text)
    row = OPTIONS.row(name, module)
    assert row is not None
    return Rival(row, module, ((),) if is_plan else None)


def said(text: str) -> None:
    pass


@pytest.mark.slow
def test_the_figures_are_those_of_the_compiler_s_program() -> None:
    module = pyshardy.load(PROGRAM)
    plan = pyshardy.search(module, compiler="cpu", candidates=30)
    rows = plan.summary.compiled
    assert plan.summary.compiler.startswith("XLA for CPUs (jaxlib ")
    assert 3 <= len(rows) <= 7 and {THE_PLAN, AS_GIVEN} <= {row.name for row in rows}
    assert [row.seconds for row in rows] == sorted(row.seconds for row in rows)
    again = pyshardy.cost(pyshardy.partition(plan.apply(module), compiler="cpu"), "v5p")
    assert (plan.step_seconds, plan.peak_bytes) == (again.step_seconds, again.peak_bytes)
    assert f"programs that {plan.summary.compiler} makes" in str(plan)
    assert "not confirmed" not in str(plan)
    assert plan_from_json(plan.to_json()).summary == plan.summary


def test_without_a_compiler_the_plan_is_said_to_be_unconfirmed() -> None:
    for compiler in (None, "none"):
        plan = pyshardy.search(PROGRAM, compiler=compiler, candidates=10)
        assert (plan.summary.compiler, plan.summary.compiled) == ("", ())
        assert str(plan).count("not confirmed: --compiler NAME asks the compiler that you will run") == 1


def test_a_plan_for_which_the_compiler_sends_more_comes_later() -> None:
    found = confirmed([rival(THE_PLAN, REPLICATED), rival("other", STEP_BY_STEP)], OPTIONS, said)
    assert found.plan.row.name == "other"
    assert [row.name for row in found.rows] == [THE_PLAN, "the best plan by estimates"]
    first, last = found.rows
    assert (
        first.needed_bytes
        and first.words == f"needs {format_bytes(first.needed_bytes)} compiled to the end, which fits"
    )
    assert not first.is_far and last.needed_bytes is None
    assert last.is_far and last.replicated_bytes == 2**20
    times = last.sent_bytes / last.estimated_sent_bytes
    assert last.words.startswith(f"sends {times:.1f} times what was estimated; 1.0 MiB of tensors are gathered whole")
    assert found.notes == (
        f"by estimates another plan is better; by the programs that {found.compiler} makes, this one is",
    )


def test_a_given_program_that_is_better_than_every_plan_is_the_plan() -> None:
    found = confirmed([rival(THE_PLAN, REPLICATED), rival(AS_GIVEN, STEP_BY_STEP, is_plan=False)], OPTIONS, said)
    assert [row.name for row in found.rows] == [THE_PLAN, "the best plan by estimates"]
    assert found.plan.assignment is None and [row.sent_bytes for row in found.rows] == [0, 896 * 1024]
    (note,) = found.notes
    assert note.endswith("the program as it was given is better than every plan: it is the plan")


@pytest.mark.slow
def test_no_plan_is_worse_than_the_given_program_as_the_compiler_makes_it() -> None:
    module = pyshardy.load(PROGRAM).annotate({"arg0": pyshardy.PartitionSpec(["data", "model"])})
    plan = pyshardy.search(module, compiler="cpu", candidates=10)
    given = pyshardy.cost(pyshardy.partition(module, compiler="cpu"), "v5p")
    assert plan.step_seconds <= given.step_seconds
    again = pyshardy.cost(pyshardy.partition(plan.apply(), compiler="cpu"), "v5p")
    assert (plan.step_seconds, plan.peak_bytes) == (again.step_seconds, again.peak_bytes)


def test_a_plan_that_the_compiler_refuses_comes_last(monkeypatch: pytest.MonkeyPatch) -> None:
    real, plans = compiled.partition_of, [rival(THE_PLAN, STEP_BY_STEP), rival("other", REPLICATED)]

    def refuses(program: pyshardy.Module, options: pyshardy.PropagateOptions) -> pyshardy.Partition:
        if program is plans[0].module:
            raise pyshardy.ShardyError("asking", got="UNIMPLEMENTED: no rule for it")
        return real(program, options)

    monkeypatch.setattr(compiled, "partition_of", refuses)
    found = confirmed(plans, OPTIONS, said)
    assert (found.plan, found.rows[-1].words) == (plans[1], "the compiler refuses it: UNIMPLEMENTED: no rule for it")
    assert found.rows[-1].name == "the best plan by estimates"
    alone = confirmed(plans[:1], OPTIONS, said)
    assert alone.plan is plans[0] and [row.name for row in alone.rows] == [THE_PLAN]


def test_a_plan_that_was_to_send_nothing() -> None:
    assert CompiledRow("a", 1.0, 1.0, True, 8, 1.0, 0).words == "was estimated to send nothing"
    assert CompiledRow("a", 1.0, 1.0, True, 0, 1.0, 0).words == ""


@pytest.mark.parametrize(
    ("compiler", "needed"),
    [("tpx", "needed tpu:v5e:2x4, cuda:h100:8 or cpu"), ("cpu:4", "needed 8 devices, those of the program's mesh")],
)
def test_a_compiler_that_cannot_be_asked_is_refused_before_the_search(compiler: str, needed: str) -> None:
    messages: list[str] = []
    with pytest.raises(UsageError, match=needed):
        pyshardy.search(PROGRAM, compiler=compiler, progress=messages.append)
    assert messages == []


def test_a_plan_that_does_not_fit_as_it_is_compiled_is_not_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = [rival(THE_PLAN, REPLICATED), rival("other", STEP_BY_STEP)]
    refusals = iter(["Ran out of memory in memory space hbm. Used 2.00M of 1.00M hbm."])

    def compiles(module: pyshardy.Module, *_: object, shortened: bool) -> tuple[CompiledProgram | None, str | None]:
        if shortened:
            raise UsageError("compiling", got="no layers", needed="layers")
        if module is plans[1].module:
            return None, next(refusals)
        return CompiledProgram({"argument": 64, "output": 8, "alias": 8, "temp": 36}, (), (), 1.0), None

    monkeypatch.setattr(compiled, "compiled_to_the_end", compiles)
    found = confirmed(plans, OPTIONS, said)
    assert found.plan.row.name == THE_PLAN
    assert [(row.needed_bytes, row.fits) for row in found.rows] == [(100, True), (2 << 20, False)]
    assert found.rows[0].words.endswith("needs 100 B compiled to the end, which fits")
    assert found.rows[1].words == "needs 2.0 MiB compiled to the end, which does NOT fit"


def test_a_plan_that_takes_too_long_to_compile_keeps_its_estimate(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object, shortened: bool) -> None:
        raise pyshardy.ShardyError("asking", got="no answer after 180 s")

    monkeypatch.setattr(compiled, "compiled_to_the_end", refuses)
    found = confirmed([rival(THE_PLAN, STEP_BY_STEP)], OPTIONS, said)
    assert found.rows[0].fits and found.rows[0].needed_bytes is None
    (note,) = found.notes
    assert note == "the memory of the plan is estimated: cpu did not compile it to the end: no answer after 180 s"
