"""A program is read once and propagated once, however far it goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyshardy
from pyshardy.cli.main import main
from pyshardy.ir import module as module_file
from pyshardy.passes import propagation_pass as propagation_file
from support.reference import jaxlib_version

MLP = Path(__file__).parents[3] / "examples" / "mlp.mlir"
NEWEST = jaxlib_version() >= (0, 12)
ARRAYS = [np.ones(shape, np.float32) for shape in ((32, 64), (64, 256), (256, 64))]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """How often a module was read and propagated since."""
    found: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        original = getattr(owner, name)

        def counted(*args: Any, **options: Any) -> Any:
            found[what] += 1
            return original(*args, **options)

        monkeypatch.setattr(owner, name, counted)

    count(module_file, "read_module", "reads")
    count(propagation_file, "propagate_program", "fixed points")
    yield found


def test_the_counter_counts(counts: Counter[str]) -> None:
    """Two modules of one text are two programs."""
    for _ in range(2):
        pyshardy.propagate(pyshardy.load(MLP))
    assert counts == {"reads": 2, "fixed points": 2}


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
