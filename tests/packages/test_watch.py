"""`pyshardy watch` on training scripts in frameworks: names, lines and shardings are those of the script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parent / "watched"
ROOT = Path(__file__).parents[2]
DOWN, UP = ["model"], [None, "model"]


def watched(name: str, folder: Path) -> tuple[dict[str, Any], str]:
    """What is said of a script, and what it prints."""
    output = folder / "found.json"
    command = [sys.executable, "-m", "pyshardy", "watch", "--devices", "8", "--chip", "v5e", "--compiler", "none"]
    command += ["--json", "-o", str(output), str(SCRIPTS / name)]
    environment = {key: value for key, value in os.environ.items() if key not in ("XLA_FLAGS", "JAX_PLATFORMS")}
    found = subprocess.run(
        command, env=environment | {"PYTHONPATH": str(ROOT)}, cwd=folder, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr
    return json.loads(output.read_text()), found.stdout


def step_of(found: dict[str, Any]) -> dict[str, Any]:
    """The program of the training step as it was first compiled."""
    return next(one for one in found["programs"] if one["name"] == "jit_train_step" and one["version"] == 1)


def specs(rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {row["name"]: row["spec"] for row in rows}


def lines(step: dict[str, Any], script: str) -> set[str]:
    """The code of the lines of the script that collectives are said to come from."""
    code = (SCRIPTS / script).read_text().splitlines()
    places = [row["source"] for row in step["cost"]["estimated"]["collectives"] if row["source"]]
    return {code[place[1] - 1].strip() for place in places if place[0].endswith(script)}


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason="needs published packages, which `make test-packages` installs")


@needs("flax", "optax")
def test_flax_nnx(tmp_path: Path) -> None:
    found, printed = watched("nnx_train.py", tmp_path)
    assert printed.startswith("loss ")
    assert {one["name"] for one in found["programs"]} == {"jit_create", "jit_train_step"}
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    assert [inputs[f"model.states[0][{number}]"] for number in range(4)] == [[], DOWN, [], UP]
    assert inputs["x"] == ["data"]
    assert lines(step, "nnx_train.py") >= {"return self.down(nnx.relu(self.up(x)))"}
    assert "graph=False" in step["notes"][0]


@needs("flax", "optax")
def test_flax_linen(tmp_path: Path) -> None:
    found, printed = watched("linen_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs, outputs = specs(step["shardings"]["inputs"]), specs(step["shardings"]["outputs"])
    for layer in range(2):
        assert inputs[f"state.params['layers_{layer}']['wi']['kernel'].value"] == UP
        assert inputs[f"state.opt_state[0].mu['layers_{layer}']['wo']['kernel'].value"] == DOWN
        assert outputs[f"result[0].params['layers_{layer}']['wi']['bias']"] == ["model"]
    assert inputs["batch"] == ["data"]
    assert any("nn.Dense(256" in line for line in lines(step, "linen_train.py"))
    assert step["notes"] == []


@needs("equinox", "optax")
def test_equinox(tmp_path: Path) -> None:
    found, printed = watched("equinox_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    (x,) = [row for row in step["shardings"]["inputs"] if row["shape"] == [32, 64]]
    assert (x["spec"], x["given_by"]) == (["data"], "propagation")
    assert "result[1][0].layers[0].weight" in specs(step["shardings"]["outputs"])
    assert lines(step, "equinox_train.py") >= {"return jnp.mean((jax.vmap(model)(x) - x) ** 2)"}
    assert "eqx.filter_jit" in step["notes"][0]


@needs("keras")
def test_keras_on_jax(tmp_path: Path) -> None:
    found, printed = watched("keras_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    assert (inputs["state[0][0]"], inputs["state[0][2]"], inputs["data[0]"]) == (UP, DOWN, ["batch"])
    assert "model.trainable_variables" in step["notes"][0]
