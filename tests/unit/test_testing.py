"""Assertions for tests of programs that run on several devices."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy import testing
from pyshardy.errors import UsageError
from pyshardy.testing import assert_sharding

ARGS = jax.ShapeDtypeStruct((8, 4), "float32"), jax.ShapeDtypeStruct((4, 6), "float32")


def step(x: jax.Array, w: jax.Array) -> jax.Array:
    return jnp.tanh(x @ w)


ROWS, COLUMNS = P("x"), P(None, "x")


def asserted(path: Path, spec: P = ROWS, **keywords: object) -> None:
    assert_sharding(step, ARGS, lock=path, mesh={"x": 2}, in_shardings=(spec, None), **keywords)  # type: ignore[arg-type]


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A lock of the step, as an update writes it."""
    path = tmp_path / "step.lock"
    monkeypatch.setenv("COLUMNS", "300")
    monkeypatch.setenv(testing.UPDATE, "1")
    asserted(path)
    monkeypatch.delenv(testing.UPDATE)
    return path


def test_a_step_that_is_sharded_as_its_lock_says(lock: Path) -> None:
    before = lock.read_bytes()
    asserted(lock)
    assert lock.read_bytes() == before


def test_one_that_is_not(lock: Path) -> None:
    with pytest.raises(AssertionError) as raised:
        asserted(lock, COLUMNS)
    text = str(raised.value)
    assert text.startswith("step differs from ") and "-   f32[8, 4] P('x') (annotated)\n" in text
    assert text.endswith("`pytest --update-lock` accepts what differs")


def test_an_update_accepts_what_differs_but_no_broken_budget(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(testing.UPDATE, "1")
    with pytest.raises(AssertionError, match="says, but 1 budget is broken\n! no all_reduce is allowed"):
        asserted(lock, COLUMNS, budgets=pyshardy.Budgets(no=("all_reduce",)))
    asserted(lock, COLUMNS)  # without that budget
    monkeypatch.delenv(testing.UPDATE)
    asserted(lock, COLUMNS)
    with pytest.raises(AssertionError, match="differs from"):
        asserted(lock)


def test_without_a_lock(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="there is no lock .*nowhere.lock: `pytest --update-lock` writes it"):
        asserted(tmp_path / "nowhere.lock")
    with pytest.raises(UsageError, match="asserting shardings: got an int as the lock, needed a path"):
        asserted(3)  # type: ignore[arg-type]
