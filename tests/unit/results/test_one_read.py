"""A program is read once and propagated once, however far it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyshardy
from pyshardy.cli.main import main
from pyshardy.ir import module as module_file
from pyshardy.passes import propagation_pass as propagation_file
from pyshardy.results import sharded_program as sharded_file
from support.reference import jaxlib_version

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
NEWEST = jaxlib_version() >= (0, 12)
ARRAYS = [np.ones(shape, np.float32) for shape in ((32, 64), (64, 256), (256, 64))]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often a module was read and propagated since."""
    found: Counter[str] = Counter()
    count_calls(monkeypatch, found, module_file, "read_module", "reads")
    count_calls(monkeypatch, found, propagation_file, "propagate_program", "fixed points")
    yield found


@pytest.fixture
def conversions(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often a module was copied as nodes and written as MLIR since."""
    found: Counter[str] = Counter()
    count_calls(monkeypatch, found, module_file, "write_module", "writes")
    for file in (module_file, sharded_file):
        count_calls(monkeypatch, found, file, "copy_module", "copies")
    yield found


def count_calls(patch: pytest.MonkeyPatch, found: Counter[str], owner: Any, name: str, what: str) -> None:
    original = getattr(owner, name)

    def counted(*args: Any, **options: Any) -> Any:
        found[what] += 1
        return original(*args, **options)

    patch.setattr(owner, name, counted)


def test_the_counter_counts(counts: Counter[str]) -> None:
    """Two modules of one text are two programs."""
    for _ in range(2):
        pyshardy.propagate(pyshardy.load(MLP))
    assert counts == {"reads": 2, "fixed points": 2}


SHARDED = pyshardy.PartitionSpec("data", None)


@pytest.mark.parametrize(
    "verb, copies, writes",
    [
        pytest.param(pyshardy.propagate, 2, 1, id="propagate"),
        pytest.param(pyshardy.partition, 2, 1, id="partition"),
        pytest.param(lambda module: str(pyshardy.partition(module)), 3, 1, id="partition, with a table of inputs"),
        pytest.param(pyshardy.cost, 2, 1, id="cost"),
        pytest.param(lambda module: pyshardy.propagate(module).explain("tanh"), 2, 1, id="explain"),
        pytest.param(lambda module: pyshardy.propagate(module).edit({"x": SHARDED}).result, 6, 1, id="edit"),
        pytest.param(lambda module: pyshardy.partition(module).edit({"x": SHARDED}).result, 6, 2, id="edit of shards"),
    ],
)
def test_each_program_that_is_kept_is_copied_once_and_written_once(
    verb: Callable[[pyshardy.Module], Any], copies: int, writes: int, conversions: Counter[str]
) -> None:
    """A result keeps the program as given, with its shardings, and as it is written: three programs, two copies.

    A table of inputs needs the propagated module, and an edit the annotated program, the prepared one, which later
    edits start from, and the prepared one with the edit. The module of an edited propagation is written on first use.
    """
    module = pyshardy.load(MLP)
    assert module.root
    verb(module)
    assert conversions == {"copies": copies, "writes": writes}


def test_a_checkup_of_a_partitioned_program_propagates_candidates_alone(counts: Counter[str]) -> None:
    part = pyshardy.partition(pyshardy.propagate(MLP, trace=True))
    found = pyshardy.doctor(part, hardware="h100")
    assert counts == {"reads": 1, "fixed points": 1 + found.tries}
    assert str(found) == str(pyshardy.doctor(MLP, hardware="h100"))
    basic = pyshardy.partition(MLP, strategy="basic", conservative=True)
    assert str(found) == str(pyshardy.doctor(basic, hardware="h100"))


@pytest.mark.parametrize(
    "engine", ["local", "xla", *([pytest.param("interpreter", marks=pytest.mark.slow)] if NEWEST else [])]
)
def test_from_loading_to_running_is_one_read_and_one_fixed_point(engine: str, counts: Counter[str]) -> None:
    module = pyshardy.load(MLP)
    propagation = pyshardy.propagate(module)
    partition = pyshardy.partition(propagation)
    assert partition.propagated is propagation
    assert propagation.summary.inputs and partition.summary.traffic.collectives
    assert repr(propagation) and str(partition) and repr(partition)
    (found,) = pyshardy.run(partition, *ARRAYS, engine=engine)
    np.testing.assert_allclose(found, np.tanh(ARRAYS[0] @ ARRAYS[1]) @ ARRAYS[2], rtol=1e-5)
    assert counts == {"reads": 1, "fixed points": 1}


def test_who_prints_or_asks_for_values_propagates_nothing_again(counts: Counter[str]) -> None:
    propagation = pyshardy.propagate(MLP)
    assert "params['w1']" in str(propagation)
    assert propagation.values["tanh"] and pyshardy.partition(propagation).values["tanh"]
    assert counts == {"reads": 1, "fixed points": 1}


def test_explanations_read_nothing_again(counts: Counter[str]) -> None:
    propagation = pyshardy.propagate(MLP)
    assert "given to the input `x`" in str(propagation.explain("tanh"))
    assert len(propagation.conflicts()) == 0
    assert pyshardy.partition(propagation).collectives
    assert counts == {"reads": 1, "fixed points": 1}


@pytest.mark.parametrize(
    "command",
    [("explain", MLP, "tanh"), ("show", MLP), ("cost", MLP), ("partition", MLP), ("propagate", MLP)],
    ids=lambda command: " ".join(map(str, command)).replace(str(MLP), "MLP"),
)
def test_commands_read_and_propagate_once(
    command: tuple[Any, ...], counts: Counter[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([str(part) for part in command]) == 0
    assert capfd.readouterr().out
    assert counts == {"reads": 1, "fixed points": 1}


def test_partitioning_at_once_propagates_once(counts: Counter[str]) -> None:
    partition = pyshardy.partition(MLP)
    for _ in range(2):
        assert partition.propagated.summary.inputs
    partition.run(*ARRAYS, engine="xla")
    pyshardy.partition(partition, halo_exchange=False)
    pyshardy.propagate(partition)
    assert counts == {"reads": 1, "fixed points": 1}


def test_a_propagation_runs_per_device_without_propagating_again(counts: Counter[str]) -> None:
    propagation = pyshardy.propagate(MLP)
    (here,), (xla,) = (propagation.run(*ARRAYS, engine=engine) for engine in ("local", "xla"))
    np.testing.assert_allclose(here, xla, rtol=1e-5)
    assert counts == {"reads": 1, "fixed points": 1}


def test_other_options_propagate_anew_and_say_so(counts: Counter[str]) -> None:
    propagation = pyshardy.propagate(MLP)
    assert pyshardy.propagate(propagation) is propagation
    assert pyshardy.propagate(propagation, strategy="aggressive") is propagation
    basic = pyshardy.partition(propagation, strategy="basic")
    assert basic.propagate_options.strategy is pyshardy.StrategyOption.BASIC
    assert counts["fixed points"] == 2


@pytest.mark.parametrize("view", ["xla", "stablehlo"])
def test_going_on_gives_what_starting_anew_gives(view: str) -> None:
    module = pyshardy.load(MLP)
    at_once = pyshardy.partition(module, view=view)
    going_on = pyshardy.partition(pyshardy.propagate(module, view=view))
    assert going_on.module.text(debug_info=True) == at_once.module.text(debug_info=True)
    propagated = pyshardy.propagate(module, view=view).module.text(debug_info=True)
    assert at_once.propagated.module.text(debug_info=True) == propagated


def test_nothing_is_changed_by_going_on() -> None:
    propagation = pyshardy.propagate(MLP)
    before = propagation.module.text(debug_info=True)
    texts = {pyshardy.partition(propagation).module.text(debug_info=True) for _ in range(2)}
    assert len(texts) == 1
    assert propagation.module.text(debug_info=True) == before
