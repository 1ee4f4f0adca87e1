"""What pyshardy imports of the dialects leaves jaxlib's modules as everybody else needs them."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

LOST = """
from importlib import import_module
import {first}
lost = []
for name, half in {{"chlo": "_chlo", "mhlo": "_mlirHlo", "sdy": "_sdy", "stablehlo": "_stablehlo"}}.items():
    known = dir(import_module("jaxlib.mlir.dialects." + name))
    lost += [each for each in dir(import_module("jaxlib.mlir._mlir_libs." + half)) if each not in known]
print(*lost)
"""


def lost_names(first: str) -> list[str]:
    """What the Python modules of the dialects lack of their C++ halves if a module is imported before them."""
    done = subprocess.run([sys.executable, "-c", LOST.format(first=first)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_modules_of_dialects_are_complete() -> None:
    assert lost_names("pyshardy.ir.context") == lost_names("jaxlib.mlir.dialects.sdy")


def test_a_module_that_is_not_complete_is_noticed() -> None:
    if lost_names("jaxlib.mlir._mlir_libs._sdy") == lost_names("jaxlib.mlir.dialects.sdy"):
        pytest.skip("the C++ half of this jaxlib does not import the Python half")
    assert "TensorShardingPerValueAttr" in lost_names("jaxlib.mlir._mlir_libs._sdy")


def test_jax_writes_shardings_after_pyshardy() -> None:
    code = (
        "import pyshardy; pyshardy.Module\n"
        "import jax\n"
        "mesh = jax.sharding.Mesh(jax.devices()[:1], 'x')\n"
        "spec = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec('x'))\n"
        "text = jax.jit(lambda x: jax.lax.with_sharding_constraint(x, spec)).lower(jax.numpy.ones(8)).as_text()\n"
        "print('sdy.sharding_constraint' in text)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr
