"""`pyshardy.doctor` judges by the compiler's program where one is asked."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from checkup.programs import CASES
from checkup.test_doctor import load
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.compilers.plugins import is_installed


@pytest.mark.parametrize("platform, compiler", [("tpu", "tpu:v5e:2x4"), ("cuda", "cuda:h100:8")])
def test_the_cure_pays_in_the_compilers_program(
    platform: str, compiler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_installed(platform):
        pytest.skip(f"needs the compiler for {platform}")
    monkeypatch.chdir(tmp_path)
    case = CASES["axis lost at a lookup"]
    found = pyshardy.doctor(load(case.wrong, tmp_path / f"wrong_for_{platform}.py"), compiler=compiler)
    first = found.findings[0]
    assert found.speaker.startswith("as compiled by ") and first.kind.value == "lost axis" and "`x`" in first.what
    assert first.after is not None and first.after.seconds < 0.7 * first.before.seconds


def test_what_the_compiler_gathers_whole_is_the_first_finding() -> None:
    if not is_installed("tpu"):
        pytest.skip("needs the compiler for TPUs")
    mesh = AbstractMesh((4, 2), ("x", "y"), axis_types=(AxisType.Auto,) * 2)
    given, wanted = (NamedSharding(mesh, spec) for spec in (P("y", None, "x"), P(None, ("x", "y"), None)))

    def step(u: jax.Array, v: jax.Array, w: jax.Array) -> jax.Array:
        t = jax.lax.with_sharding_constraint(u * v, wanted)
        return w + t

    shape = jax.ShapeDtypeStruct((512, 512, 512), jnp.float32)
    module = pyshardy.load(step, shape, shape, shape, in_shardings=(given, given, wanted), out_shardings=wanted)
    first = pyshardy.doctor(module, compiler="tpu:v5e:2x4").findings[0]
    assert first.kind.value == "replication" and "is gathered whole on every device" in first.what
    assert first.after is not None and first.after.seconds < first.before.seconds
