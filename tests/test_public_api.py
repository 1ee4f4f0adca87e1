"""The exported names, and what importing them costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
import typing
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import pyshardy


def test_exports() -> None:
    assert pyshardy.__all__ == [
        "AxisRef", "Budgets", "CollectiveModel", "Confirmation", "Cost", "Diagnosis", "Diagnostic", "Diagnostics", "Difference", "DimSharding", "Drawing",
        "Edit", "Engine", "Estimate", "FactorKind", "Finding", "Hardware", "InvalidModuleError", "InvalidRuleError",
        "InvalidShardingError", "KindTotal", "Lock", "LockDifference", "Mesh", "Module", "NotationError", "OpSpec", "Partition",
        "PartitionOptions", "PartitionSpec", "PassError", "Plan", "PlanDifference", "PropagateOptions", "Propagation", "ReductionKind",
        "Rule", "RuleNotationError", "SearchTask", "Severity", "ShardyError", "StrategyOption", "TensorSharding",
        "UnsupportedVersionError", "UsageError", "View", "annotate", "check", "clear_caches", "compiled_collectives",
        "confirm", "constrain", "cost", "diff", "doctor", "draw", "from_gspmd", "from_torch", "initialize_distributed", "jit", "load",
        "load_file", "load_lock", "load_plan", "load_text", "local_shape", "lock", "parse_mesh", "parse_sharding", "partition",
        "propagate", "propagation_barrier", "register_partitioner", "register_rule", "rule_of", "run", "run_pipeline",
        "search", "set_user_code", "shard_alike", "to_gspmd", "to_torch", "unregister_rule", "write_lock",
    ]  # fmt: skip


def test_what_public_signatures_mention_is_exported() -> None:
    """Every class of ours in the signature of a public function or class."""
    exported = {getattr(pyshardy, name) for name in pyshardy.__all__}
    seen = set()
    for value in [value for value in exported if callable(value)]:
        target = value.__new__ if isinstance(value, type) and "__new__" in vars(value) else value
        for hint in annotations_of(target):
            for part in parts_of(hint):
                if isinstance(part, type) and part.__module__.startswith("pyshardy"):
                    seen.add(part)
    left_out = {found.__name__ for found in seen - exported}
    keywords = {"PropagateKeywords", "PartitionKeywords"}
    parts_of_an_estimate = {"CollectiveCost", "CustomCallCost", "KnownError", "Launches", "Measured", "Network", "Peak"}
    parts_of_a_difference = {"Change", "EditState", "Reach", "Communication", "Total"}
    parts_of_a_difference |= {"ConstraintChange", "FigureChange", "InputSpecChange"}
    parts_of_a_lock = {"LockChange", "LockedCollective", "LockedConstraint", "LockedMemory", "LockedMesh"}
    parts_of_a_lock |= {"LockedReplication", "LockedTensor", "LockedTypes"}
    parts_of_a_search = {"Candidate", "Explorer", "ConstrainableValues", "PlanSummary", "Problem", "Space"}
    placements = {"Partial", "Replicate", "Shard"}  # PyTorch's words
    parts = parts_of_an_estimate | parts_of_a_difference | parts_of_a_lock | parts_of_a_search
    parts |= {"CollectivesCheck", "Replication", "Figures", "FindingKind"}
    assert left_out == keywords | parts | placements | {"Jitted"}
    assert pyshardy.OpSpec in seen and pyshardy.PropagateOptions in seen and pyshardy.FactorKind in seen


def annotations_of(value: Any) -> list[Any]:
    try:
        return list(typing.get_type_hints(value).values())
    except (TypeError, NameError):
        return []


def parts_of(hint: Any) -> Iterator[Any]:
    """A type and the types inside it."""
    yield hint
    for inner in typing.get_args(hint):
        for part in inner if isinstance(inner, list) else [inner]:
            yield from parts_of(part)


def test_keywords_are_the_options() -> None:
    from pyshardy.api.partition import PartitionKeywords
    from pyshardy.api.propagate import PropagateKeywords

    propagation = [field.name for field in fields(pyshardy.PropagateOptions)]
    partitioning = [field.name for field in fields(pyshardy.PartitionOptions)]
    assert set(PropagateKeywords.__annotations__) == set(propagation)
    assert set(PartitionKeywords.__annotations__) == {*propagation, *partitioning}


def test_one_concept_has_one_name() -> None:
    from pyshardy.passes.export_options import ExportOptions

    shared = {"rng_bit_generator_unsafe"}
    assert shared <= {field.name for field in fields(pyshardy.PartitionOptions)}
    assert shared <= {field.name for field in fields(ExportOptions)}
    assert pyshardy.connect is pyshardy.initialize_distributed  # as it was called before


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    from pyshardy.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out == f"pyshardy {pyshardy.__version__}\n"
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "pyshardy.__version__"}


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


@pytest.mark.slow
def test_the_driver_never_imports_jax() -> None:
    code = (
        "import io, sys; from pyshardy.cli.opt import run_opt; "
        "status = run_opt(['--help'], io.BytesIO(), sys.stderr); print(status, 'jax' in sys.modules)"
    )
    assert run_python(code).strip() == "0 False"


@pytest.mark.slow
def test_propagate_stays_the_function_after_its_parts_are_imported() -> None:
    code = "import pyshardy, pyshardy.api.partition, pyshardy.propagation.engine; print(pyshardy.propagate.__module__)"
    assert run_python(code).strip() == "pyshardy.api.propagate"
