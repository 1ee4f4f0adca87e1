"""Constraints by logical names that flax ignores: one finding, which sets the mesh that flax looks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from search.patching import apply_patch, imported

import pyshardy
from pyshardy.report.diagnosis import Diagnosis, FindingKind

SOURCE = """\
import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
import numpy as np

mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
RULES = (("batch", "data"), ("embed", None), ("vocab", "model"))


def with_logical_constraint(x, names):
    \"\"\"As that of flax.linen, which looks for the mesh of jax.set_mesh alone.\"\"\"
    if jax.sharding.get_abstract_mesh().empty:
        return x
    rules = dict(RULES)
    return jax.lax.with_sharding_constraint(x, P(*(rules.get(name) for name in names)))


def loss(params, tokens):
    x = params["embed"][tokens]
    x = with_logical_constraint(x, ("batch", None, "embed"))
    y = jnp.tanh(x @ params["up"]) @ params["down"]
    return (y**2).mean()


def shape(spec, *sizes, dtype="float32"):
    return jax.ShapeDtypeStruct(sizes, dtype, sharding=NamedSharding(mesh, spec))


arguments = (
    {
        "embed": shape(P("model", "data"), 32000, 1024),
        "up": shape(P("data", "model"), 1024, 4096),
        "down": shape(P("model", "data"), 4096, 1024),
    },
    shape(P("data"), 64, 1024, dtype="int32"),
)


def lower():
    with mesh:
        return jax.jit(jax.grad(loss)).lower(*arguments)
"""


pytestmark = pytest.mark.filterwarnings("ignore:.with mesh:DeprecationWarning")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(source: str, path: Path) -> pyshardy.Module:
    return pyshardy.load(imported(path, source.splitlines(keepends=True)).lower())


def diagnosis(source: str, path: Path) -> Diagnosis:
    return pyshardy.doctor(load(source, path), hardware="h100")


def test_ignored_constraints_are_one_finding_and_the_mesh_mends_them(folder: Path) -> None:
    found = diagnosis(SOURCE, folder / "ignored.py").findings[0]
    assert found.kind is FindingKind.CONSTRAINT and "flax ignores the constraint" in found.what
    assert found.after is not None
    patched = "".join(apply_patch(SOURCE.splitlines(keepends=True), found.patch))
    assert "    with jax.set_mesh(mesh):\n" in patched
    mended = load(patched, folder / "mended.py")
    assert pyshardy.cost(mended, "h100").step_seconds == pytest.approx(found.after.seconds, rel=1e-6)
    assert pyshardy.cost(mended, "h100").step_seconds < 0.8 * found.before.seconds


def test_constraints_that_are_there_are_not_ignored(folder: Path) -> None:
    sound = SOURCE.replace("with mesh:", "with jax.set_mesh(mesh):")
    assert not [one for one in diagnosis(sound, folder / "sound.py").findings if "ignores" in one.what]
