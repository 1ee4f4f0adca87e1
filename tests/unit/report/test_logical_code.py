"""Logical axis rules as text to paste."""

from __future__ import annotations

import ast

import pytest

from pyshardy.errors import UsageError
from pyshardy.report.logical_code import Framework
from pyshardy.report.logical_fit import LogicalArrays
from pyshardy.report.logical_rules import logical_rules

MESH = (("fsdp", 4), ("tensor", 2))
UP = LogicalArrays(("params['up']",), ("embed", "mlp"), (("fsdp",), ("tensor",)), 4, 4 << 20)
DOWN = LogicalArrays(("params['down']",), ("mlp", "embed"), (("fsdp", "tensor"),), 4, 2 << 20)
FOUND = logical_rules([UP, DOWN, LogicalArrays(("norm",), ("norm",), (), 1, 4)], MESH)
REMARK = "params['down'], 2.0 MiB: P(('fsdp', 'tensor')) in the plan, P('tensor', 'fsdp') by the rules"


@pytest.mark.parametrize("framework", ["linen", "nnx"])
def test_python_for_flax(framework: str) -> None:
    source = FOUND.code(framework)
    value = next(node.value for node in ast.parse(source).body if isinstance(node, ast.Assign))
    assert ast.literal_eval(value) == FOUND.pairs == (("embed", "fsdp"), ("mlp", "tensor"), ("norm", None))
    assert f"    # {REMARK}\n" in source
    assert "jax.make_mesh((4, 2), ('fsdp', 'tensor'), axis_types=(AxisType.Auto,) * 2)" in source


def test_an_axis_mapping_has_no_entry_for_what_stays_whole() -> None:
    source = FOUND.code(Framework.HALIAX)
    value = next(node.value for node in ast.parse(source).body if isinstance(node, ast.Assign))
    assert ast.literal_eval(value) == {"embed": "fsdp", "mlp": "tensor"}


def test_a_table_is_written_for_what_reads_tables() -> None:
    experts = LogicalArrays(("experts",), ("experts", "mlp"), (("tensor",),), 1, 1)
    found = logical_rules([UP, experts], MESH)
    assert found.fits
    assert "('mlp', 'tensor'),\n" in found.code("linen") and "# " not in found.code("maxtext")
    for framework in ("nnx", "haliax"):
        assert "# experts, 1 B: P('tensor') in the plan" in found.code(framework)


def test_a_configuration_of_maxtext() -> None:
    assert FOUND.code("maxtext") == (
        f"# {REMARK}\n"
        "ici_fsdp_parallelism: 4\n"
        "ici_tensor_parallelism: 2\n"
        "logical_axis_rules: [\n"
        '  ["embed", ["fsdp"]],\n'
        '  ["mlp", ["tensor"]],\n'
        '  ["norm", []],\n'
        "]\n"
    )


def test_maxtext_fills_no_axis_that_the_plan_does_not_have_and_its_order_is_told() -> None:
    source = logical_rules([UP], (("tensor", 2), ("stage", 4))).code("maxtext")
    assert source.splitlines()[:4] == [
        "# the mesh of the plan is tensor, stage; MaxText puts devices on it in another order",
        "ici_fsdp_parallelism: 1",
        "ici_pipeline_parallelism: 4",
        "ici_tensor_parallelism: 2",
    ]


def test_a_mesh_axis_that_maxtext_does_not_have() -> None:
    with pytest.raises(UsageError, match="got the mesh axis 'model', needed one of diloco, data, stage, fsdp"):
        logical_rules([UP], (("fsdp", 4), ("model", 2))).code("maxtext")


def test_an_unknown_framework() -> None:
    with pytest.raises(UsageError, match="got 'max-text', needed one of linen, nnx, maxtext, haliax"):
        FOUND.code("max-text")
