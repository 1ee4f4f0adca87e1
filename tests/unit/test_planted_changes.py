"""Changes of a training step, each of which its lock finds and names."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import pyshardy
from pyshardy.report.lock_difference import LockDifference
from tests.support.locked_step import Step, lowered

BEFORE = Step()


@cache
def lock() -> pyshardy.Lock:
    return pyshardy.lock(lowered(BEFORE))


def compared(**change: object) -> LockDifference:
    return pyshardy.check(lowered(replace(BEFORE, **change)), lock(), name="step.mlir")  # type: ignore[arg-type]


def lines(found: LockDifference) -> list[str]:
    """The diff without its margins, in lines that are not wrapped."""
    return [line.plain.strip() for line in found.tables().lines(10_000)]


def line_of(text: str) -> str:
    """The place of the line of the step that has a text."""
    path = Path(__file__).parents[1] / "support" / "locked_step.py"
    (number,) = [number for number, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return f"locked_step.py:{number}"


def test_nothing() -> None:
    found = compared()
    assert bool(found) and not found.changes
    assert str(found) == "step.mlir is sharded as the lock says\n"


def test_a_removed_constraint() -> None:
    found = compared(constrains=False)
    assert not found
    (change,) = [change for change in found.changes if change.kind == "constraint"]
    assert (change.verb, change.name, len(change.members)) == ("removed", "layers_0..2/mlp", 3)
    assert change.before == ("×2 f32[32, 256] P('data', 'model')",)
    assert "-   ×2 f32[32, 256] P('data', 'model')" in lines(found)


@pytest.mark.slow
def test_a_new_axis() -> None:
    found = compared(expert=True)
    assert not found
    assert [(change.kind, change.before, change.after) for change in found.changes[:2]] == [
        ("mesh", ("data=4, model=2",), ("data=4, model=2, expert=2",)),
        ("input", ("f32[32, 64] P('data') (annotated)",), ("f32[32, 64] P(('data', 'expert')) (annotated)",)),
    ]
    added = [change for change in found.changes if change.kind == "collective" and change.verb == "added"]
    assert "all_gather along expert, reshard of tanh" in [change.what for change in added]
    (removed,) = [change for change in found.changes if change.verb == "removed" and change.name == "loss"]
    assert removed.why == (f"it was for `reduce`, which is at {line_of('.mean()')}",)


@pytest.mark.slow
def test_an_op_that_reshards() -> None:
    found = compared(gathers=True)
    assert not found
    (change,) = [
        change for change in found.changes if change.what == "all_to_all along model, reshard of operand 0 of sort"
    ]
    assert (change.verb, change.name, change.bytes_before) == ("added", "layers_0..2/mlp", 0)
    assert change.bytes_after > 0 and change.places == (line_of("jnp.cumsum"),)
    assert "the op cannot run on it as it is split" in change.why[0]


def test_a_larger_batch() -> None:
    found = compared(batch=1024)
    assert not found
    (change,) = [change for change in found.changes if change.kind == "input"]
    assert (change.name, change.after) == ("x", ("f32[1024, 64] P('data') (annotated)",))
    totals = {total.name: total for total in found.totals}
    for name in ("sent in collectives", "peak memory (estimated)", "  activations"):
        assert totals[name].after > totals[name].before


def test_another_optimizer() -> None:
    found = compared(momentum=True)
    assert not found
    assert [(change.verb, change.name) for change in found.changes if change.kind == "input"] == [
        ("added", "state[0..2]['w1']"),
        ("added", "state[0..2]['w2']"),
    ]
    assert [total.after for total in found.totals if total.name == "  optimizer state"] == [192 * 1024]


@pytest.mark.slow
def test_a_changed_input_spec() -> None:
    found = compared(columns=False)
    assert not found
    first = found.changes[0]
    assert (first.kind, first.name) == ("input", "layers[0..2]['w1']")
    assert first.before == ("f32[64, 256] P(None, 'model'), donated (annotated)",)
    assert first.after == ("f32[64, 256] P('model'), donated (annotated)",)
    assert first.why[0] == 'dimension 0: "model", given by its own annotation'
    inferred = next(change for change in found.changes if change.name == "layers[0]['w2']")
    assert "given to the input `layers[2]['w1']` on dimension 0" in " ".join(inferred.why)


def test_dropped_donation() -> None:
    large = replace(BEFORE, batch=1024)  # where the peak is not in the sums of gradients, whose memory results may have
    found = pyshardy.check(lowered(replace(large, donates=False)), pyshardy.lock(lowered(large)))
    assert not found and found.other_peak
    assert {change.kind for change in found.changes} == {"input"}
    said = "its memory is no longer handed on to a result (donate_argnums of jax.jit)"
    assert [change.why for change in found.changes] == [(said,), (said,)]


def test_another_mesh_size() -> None:
    found = compared(data=8)
    assert not found
    assert (found.changes[0].kind, found.changes[0].after) == ("mesh", ("data=8, model=2",))
    assert {change.kind for change in found.changes} == {"mesh", "collective"}


def test_an_op_of_another_type() -> None:
    found = compared(narrow=True)
    assert not found
    (change,) = [change for change in found.changes if change.kind == "type"]
    assert (change.name, change.before, change.after) == ("layers_0..2/mlp", (), ("bf16",))
    assert change.why == (f"bf16 by `convert_element_type` at {line_of('bfloat16')}",)
    summed = [change for change in found.changes if change.kind == "collective"]
    assert "bf16[64, 128], 24.0 KiB" in summed[0].after


@pytest.mark.slow
def test_an_additional_output() -> None:
    found = compared(counts=True)
    assert not found
    assert [(change.verb, change.name) for change in found.changes if change.kind == "output"] == [
        ("added", "result[3][0..2]['w1']"),
        ("added", "result[3][0..2]['w2']"),
    ]
    (change,) = [change for change in found.changes if change.kind == "collective"]
    assert (change.verb, change.places) == ("added", (line_of("jnp.sqrt"),))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change, kind", [({"constrains": False}, "constraint"), ({"narrow": True}, "type"), ({"data": 8}, "mesh")]
)
def test_a_program_without_names_and_lines(change: dict[str, object], kind: str) -> None:
    before, after = (lowered(step).text() for step in (BEFORE, replace(BEFORE, **change)))  # type: ignore[arg-type]
    assert "layers" not in before
    found = pyshardy.check(after, pyshardy.lock(before))
    assert not found and found.changes[0].kind == kind
    if kind == "type":
        line = next(at for at, text in enumerate(after.splitlines(), 1) if "stablehlo.convert" in text)
        assert found.changes[0].why == (f"bf16 by `convert` at the text:{line}",)


@pytest.mark.slow
def test_every_line_is_in_a_width(monkeypatch: pytest.MonkeyPatch) -> None:
    found = compared(columns=False)
    for width in (60, 80, 200):
        monkeypatch.setenv("COLUMNS", str(width))
        assert max(map(len, str(found).splitlines())) <= width
