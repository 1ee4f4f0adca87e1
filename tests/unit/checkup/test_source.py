"""Changes of the user's source, as diffs."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyshardy.checkup.code import _patch
from pyshardy.checkup.source import jit_patch, spec_patch

DONATE = "donate_argnames=('x',)"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "train.py"


def added(diff: str) -> list[str]:
    return [line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]


@pytest.mark.parametrize(
    "before, after",
    [
        ("step = jax.jit(f)", "step = jax.jit(f, donate_argnames=('x',))"),
        ("step = jit(f, static_argnums=1)", "step = jit(f, static_argnums=1, donate_argnames=('x',))"),
        ("@jax.jit\ndef f(x): return x", "@jax.jit(donate_argnames=('x',))"),
        ("@partial(jax.jit, static_argnums=1)\ndef f(x): return x",
         "@partial(jax.jit, static_argnums=1, donate_argnames=('x',))"),
        ("@jax.jit(static_argnums=1)\ndef f(x): return x", "@jax.jit(static_argnums=1, donate_argnames=('x',))"),
    ],
)  # fmt: skip
def test_jit_gets_one_more_argument(file: Path, before: str, after: str) -> None:
    file.write_text(f"{before}\n")
    assert added(jit_patch([str(file)], "f", DONATE)) == [after]


@pytest.mark.parametrize(
    "text", ["step = jax.jit(g)\n", "a = jax.jit(f)\nb = jax.jit(f)\n", "not python at all (\n", "f = f\n"]
)
def test_without_one_place_there_is_no_patch(file: Path, text: str) -> None:
    file.write_text(text)
    assert jit_patch([str(file), "no such file.py"], "f", DONATE) == ""


def test_a_spec_is_changed_where_its_name_has_it(file: Path) -> None:
    file.write_text('specs = {"w": P("data", None), "v": P("data")}\nmore = dict(w=P("model"))\n')
    diff = spec_patch([str(file)], "w", (("data",), ()), ((), ("data", "model")))
    assert added(diff) == ['specs = {"w": P(None, (\'data\', \'model\')), "v": P("data")}']
    assert added(spec_patch([str(file)], "w", (("model",),), ())) == ["more = dict(w=P())"]
    assert spec_patch([str(file)], "w", (("other",),), ()) == ""


def test_a_spec_at_two_places_or_over_lines_is_left_alone(file: Path) -> None:
    file.write_text('a = {"w": P("data")}\nb = {"w": P("data")}\nc = {"u": P(\n    "x")}\nd = {"t": P(axis)}\n')
    assert spec_patch([str(file)], "w", (("data",),), ()) == ""
    assert spec_patch([str(file)], "u", (("x",),), ()) == ""
    assert spec_patch([str(file)], "t", (("x",),), ()) == ""


def test_a_constraint_is_left_out(file: Path) -> None:
    file.write_text("y = jax.lax.with_sharding_constraint(x + 1, P('data'))\n")
    assert added(_patch((str(file), 1, 0))) == ["y = x + 1"]
    assert _patch((str(file), 2, 0)) == ""
