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

SCRIPTS = Path(__file__).parents[2] / "examples/frameworks"
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


def needs(*packages: str, reason: str = "needs published packages, which `make test-packages` installs") -> Any:
    missing = [name for name in packages if find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=reason)


@needs("flax", "optax")
def test_flax_nnx(tmp_path: Path) -> None:
    found, printed = watched("nnx_train.py", tmp_path)
    assert printed.startswith("loss ")
    assert {one["name"] for one in found["programs"]} == {"jit_train_step"}
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    for layer in range(4):
        names = ("wi.bias", "wi.kernel", "wo.bias", "wo.kernel")
        assert [inputs[f"model.layers[{layer}].{name}.value"] for name in names] == [[], UP, [], DOWN]
    assert (inputs["optimizer.opt_state[0].mu.layers[3].wi.kernel.value"], inputs["x"]) == (UP, ["data"])
    assert specs(step["shardings"]["outputs"])["result[0][0].layers[0].wi.kernel.value"] == UP
    assert lines(step, "nnx_train.py") >= {"return x + self.wo(nnx.relu(self.wi(x)))"}
    assert step["notes"] == []


@needs("flax", "optax")
def test_flax_linen(tmp_path: Path) -> None:
    found, printed = watched("linen_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs, outputs = specs(step["shardings"]["inputs"]), specs(step["shardings"]["outputs"])
    for layer in range(4):
        assert inputs[f"state.params['layers_{layer}']['wi']['kernel'].value"] == UP
        assert inputs[f"state.opt_state[0].mu['layers_{layer}']['wo']['kernel'].value"] == DOWN
        assert outputs[f"result[0].params['layers_{layer}']['wi']['bias']"] == ["model"]
    assert inputs["batch"] == ["data"]
    assert any("nn.Dense(2048" in line for line in lines(step, "linen_train.py"))
    assert step["notes"] == []


@needs("equinox", "optax")
def test_equinox(tmp_path: Path) -> None:
    found, printed = watched("equinox_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    for layer in range(4):
        assert inputs[f"model.layers[{layer}].wi.weight"] == DOWN  # [out, in]
        assert inputs[f"state[0].mu.layers[{layer}].wo.weight"] == UP
    assert inputs["x"] == ["data"]
    assert "result[0].layers[0].wi.weight" in specs(step["shardings"]["outputs"])
    assert lines(step, "equinox_train.py") >= {"return x + self.wo(jax.nn.relu(self.wi(x)))"}
    assert step["notes"] == []


@needs("keras")
def test_keras_on_jax(tmp_path: Path) -> None:
    found, printed = watched("keras_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    for layer in range(4):
        assert inputs[f"model['decoder/mlp_{layer}/wi/kernel']"] == UP
        assert inputs[f"optimizer['adam/decoder_mlp_{layer}_wi_kernel_momentum']"] == UP
        assert specs(step["shardings"]["outputs"])[f"result[1].model['decoder/mlp_{layer}/wo/kernel']"] == DOWN
    assert inputs["data[0]"] == ["batch"]
    assert lines(step, "keras_train.py") >= {"return x + self.wo(self.wi(x))"}
    assert step["notes"] == []
    evaluated = next(one for one in found["programs"] if one["name"] == "jit_test_step")
    assert {"model['decoder/mlp_0/wi/kernel']", "metrics['loss/total']"} <= set(specs(evaluated["shardings"]["inputs"]))


@needs("haliax", "optax", reason="needs haliax, which runs on jax 0.10 but not on 0.12")
def test_haliax(tmp_path: Path) -> None:
    found, printed = watched("haliax_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    stacked = "layers.stacked.wi.weight[0]"
    assert inputs[f"model.{stacked}"] == inputs[f"state[0].mu.{stacked}"] == [None, "model"]
    assert inputs["x[0]"] == ["data"]
    assert lines(step, "haliax_train.py") >= {"return x + self.wo(hax.nn.relu(self.wi(x)))"}


@needs("torchax", "optax")
def test_torchax(tmp_path: Path) -> None:
    found, printed = watched("torchax_train.py", tmp_path)
    assert printed.startswith("loss ")
    step = step_of(found)
    inputs = specs(step["shardings"]["inputs"])
    assert (inputs["weights['0.wi.weight']"], inputs["weights['3.wo.weight']"]) == (DOWN, UP)  # [out, in]
    assert inputs["opt_state[0].mu['1.wi.weight']"] == DOWN
    assert lines(step, "torchax_train.py") >= {"return x + self.wo(torch.relu(self.wi(x)))"}
    assert step["notes"] == []
