"""Assertions for tests, and the option of pytest that writes locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy import pytest_plugin, testing
from pyshardy.errors import UsageError
from pyshardy.testing import assert_sharding

ARGS = jax.ShapeDtypeStruct((8, 4), "float32"), jax.ShapeDtypeStruct((4, 6), "float32")
TEST = """
from pathlib import Path

from pyshardy.testing import assert_sharding

PROGRAM = '''
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}'''


def test_step():
    assert_sharding(PROGRAM, lock=Path(__file__).with_name("step.lock"))
"""


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


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pyshardy.pytest_plugin", "-p", "no:cacheprovider", *options]
    env = {name: value for name, value in os.environ.items() if name != testing.UPDATE}
    env |= {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


def test_the_option_of_pytest(tmp_path: Path) -> None:
    (tmp_path / "test_step.py").write_text(TEST)
    missing = pytest_in(tmp_path)
    assert missing.returncode == 1 and "`pytest --update-lock` writes it" in missing.stdout
    assert pytest_in(tmp_path, "--update-lock").returncode == 0
    assert (tmp_path / "step.lock").read_text() == pyshardy.lock(TEST.split("'''")[1]).text()


def test_the_plugin_is_an_entry_point_that_loads_no_jax() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert '[project.entry-points.pytest11]\n"pyshardy.pytest_plugin" = "pyshardy.pytest_plugin"\n' in text
    code = "import sys, pyshardy.pytest_plugin as p; print(p._UPDATE, [name for name in sys.modules if 'jax' in name])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == f"{testing.UPDATE} []" and pytest_plugin._UPDATE == testing.UPDATE
