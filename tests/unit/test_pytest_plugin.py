"""The option of pytest that writes locks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pyshardy
from pyshardy import pytest_plugin, testing

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


def pytest_in(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "pyshardy.pytest_plugin", "-p", "no:cacheprovider", *options]
    env = {name: value for name, value in os.environ.items() if name != testing.UPDATE}
    env |= {"PYTHONPATH": str(Path(__file__).parents[2]), "PYTEST_ADDOPTS": ""}
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)


@pytest.mark.slow
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


def test_an_option_of_that_name_that_is_there_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """The parser and the configuration of a pytest with such an option, which says something else."""

        def getgroup(self, _: str) -> Other:
            return self

        def addoption(self, name: str, **_: object) -> None:
            raise ValueError(f"option names {{{name!r}}} already added")

        def getoption(self, _: str, default: object) -> object:
            return "a lock" if default is False else None

    monkeypatch.delenv(testing.UPDATE, raising=False)
    pytest_plugin.pytest_addoption(Other())
    pytest_plugin.pytest_configure(Other())
    assert testing.UPDATE not in os.environ
