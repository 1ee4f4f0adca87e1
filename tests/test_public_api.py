"""The exported names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pyshardy


def test_exports() -> None:
    assert pyshardy.__all__ == [
        "AxisRef", "DimSharding", "Mesh", "Module", "Partition", "PartitionOptions", "PartitionSpec",
        "PropagateOptions", "Propagation", "ReductionKind", "Rule", "ShardyError", "TensorSharding", "annotate",
        "clear_caches", "connect", "constrain", "from_gspmd", "from_torch", "jit", "load", "partition",
        "propagate", "propagation_barrier", "register_rule", "run", "run_pipeline", "shard_alike", "to_gspmd",
        "to_torch",
    ]  # fmt: skip


def test_every_export_resolves_and_is_documented() -> None:
    for name in pyshardy.__all__:
        assert getattr(pyshardy, name).__doc__, name


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = pyshardy.nothing


def run_python(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_import_loads_neither_jax_nor_jaxlib() -> None:
    code = "import sys, pyshardy; print(sorted({'jax', 'jaxlib', 'numpy', 'rich'} & set(sys.modules)))"
    assert run_python(code).strip() == "[]"


def test_the_driver_never_imports_jax() -> None:
    code = (
        "import io, sys; from pyshardy.cli.opt import run_opt; "
        "status = run_opt(['--help'], io.BytesIO(), sys.stderr); print(status, 'jax' in sys.modules)"
    )
    assert run_python(code).strip() == "0 False"


def test_propagate_stays_the_function_after_its_parts_are_imported() -> None:
    code = "import pyshardy, pyshardy.api, pyshardy.propagation.engine; print(pyshardy.propagate.__module__)"
    assert run_python(code).strip() == "pyshardy.api"
