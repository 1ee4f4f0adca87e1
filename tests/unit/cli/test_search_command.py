"""`pyshardy search` from its command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import pytest
from jax.sharding import PartitionSpec as P

import pyshardy

from .command_line import Cli
from .opt_command_line import Put

PROGRAM = """
func.func @main(%x: tensor<4096x1024xbf16>, %w: tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<4096x1024xbf16>, tensor<1024x4096xbf16>) -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}"""
"""Without a mesh."""


@pytest.mark.slow
def test_a_plan_is_printed_and_saved(cli: Cli, put: Put, tmp_path: Path) -> None:
    saved = tmp_path / "plan.json"
    found = cli("search", put(PROGRAM), "--mesh", "data=4,model=2", "--hardware", "h100", "--save", str(saved))
    assert found.status == 0
    assert "plan for 8 x NVIDIA H100 SXM, mesh data=4, model=2" in found.out
    assert "none is measured" in found.out and "as it was given" in found.out
    assert "candidate 1: about" in found.err
    assert pyshardy.load_plan(saved).mesh == {"data": 4, "model": 2}


def test_json_is_the_plan(cli: Cli, put: Put) -> None:
    found = cli("search", put(PROGRAM), "--mesh", "data=8", "--hardware", "v5e", "--json", "--quiet")
    data = json.loads(found.out)
    assert (data["mesh"], data["chosen"]["fits"], found.err) == ([["data", 8]], True, "")


MODEL = """\
import jax
import jax.numpy as jnp


def predict(x, up, down):
    hidden = jnp.tanh(x @ up)
    y = hidden @ down
    return jnp.sin(y) + jnp.cos(y)
"""


@pytest.mark.slow
def test_constraints_are_written_as_a_patch(cli: Cli, put: Put, tmp_path: Path) -> None:
    """Weights are split, and their products are to be whole: only intermediate values are left to decide."""
    (tmp_path / "model.py").write_text(MODEL)
    names: dict[str, Any] = {}
    exec(compile(MODEL, tmp_path / "model.py", "exec"), names)
    shapes = [jax.ShapeDtypeStruct(shape, "bfloat16") for shape in ((4096, 1024), (1024, 4096), (4096, 1024))]
    module = pyshardy.load(
        names["predict"], *shapes, mesh={"model": 8}, in_shardings=(P(), P(None, "model"), P("model"))
    )
    file, patch = put(module.text(debug_info=True)), tmp_path / "a.patch"
    found = cli("search", file, "--hardware", "v5e", "--patch", str(patch), "--quiet")
    assert found.status == 0 and "constraints of intermediate values" in found.out
    mesh = "jax.sharding.AbstractMesh((8,), ('model',), (jax.sharding.AxisType.Auto,) * 1)"
    sharding = f"jax.sharding.NamedSharding({mesh}, jax.sharding.PartitionSpec('model'))"
    constrained = f"jax.lax.with_sharding_constraint(jnp.sin(y) + jnp.cos(y), {sharding})"
    assert f"+    return {constrained}" in patch.read_text()
    without = cli("search", file, "--hardware", "v5e", "--no-constraints", "--patch", str(patch), "--quiet")
    assert "constraints of" not in without.out and patch.read_text() == ""
    refused = cli("search", file, "--no-constraints", "--patch", str(tmp_path), "--quiet")
    assert refused.status == 2 and f"writing {tmp_path}" in refused.err


def test_limits_of_a_plan(cli: Cli, put: Put) -> None:
    command = ("search", put(PROGRAM), "--mesh", "a=2,b=2,c=2", "--hardware", "v5e", "--json", "--quiet", "--let-go")
    free, bound = (json.loads(cli(*command, *limits).out) for limits in ((), ("--axes-at-most", "1")))
    counts = [[sum(map(len, one["axes"])) for one in found["specs"] if not one["is_output"]] for found in (free, bound)]
    assert [max(found) for found in counts] == [2, 1]


def test_what_does_not_fit_is_a_failure(cli: Cli, put: Put) -> None:
    found = cli("search", put(PROGRAM), "--mesh", "data=8", "--memory", "1kB", "--quiet")
    assert found.status == 1
    assert "does NOT fit in" in found.out and "no candidate fits" in found.out


@pytest.mark.parametrize(
    "options, message",
    [
        (("--memory", "much", "--mesh", "a=2"), "bytes, like 60GiB"),
        (("--budget", "0", "--mesh", "a=2"), "more than 0"),
        (("--seed", "x", "--mesh", "a=2"), "a whole number"),
        (("--devices", "8", "--mesh", "a=2"), "one of them"),
        (("--axes-at-most", "many", "--mesh", "a=2"), "--axes-at-most many, needed a whole number"),
        (("--axes-at-most", "0", "--mesh", "a=2"), "axes_at_most=0, needed a number of mesh axes from 1"),
        (("--goal", "speed"), "--goal speed, needed one of time, memory"),
        ((), "without a mesh"),
    ],
)
def test_wrong_command_lines_are_refused(cli: Cli, put: Put, options: tuple[str, ...], message: str) -> None:
    found = cli("search", put(PROGRAM), *options)
    assert found.status == 2 and message in found.err and "Traceback" not in found.err
