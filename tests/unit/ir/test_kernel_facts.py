"""The names and costs of kernels in custom calls."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.ir.kernel_facts import kernel_facts
from pyshardy.ir.op_lists import ops_named

COST = r"{\0A\22bytes_accessed\22:64,\0A\22flops\22:1000,\0A\22transcendentals\22:8\0A}"


def facts(attributes: str) -> dict[str, object]:
    module = pyshardy.load(f"""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
      %0 = stablehlo.custom_call @run(%a) {{{attributes}}} : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}""")
    (call,) = ops_named(module.root, ("stablehlo.custom_call",))
    with module.context:
        return dict(kernel_facts(call))


@pytest.mark.parametrize(
    ("attributes", "name", "cost"),
    [
        (rf'kernel_name = "k", backend_config = "{{\22config\22: {{\22body\22: \22x\22, \22cost_estimate\22: {COST}}}}}"',
         "k", (1000.0, 8.0, 64.0)),
        (rf'api_version = 4 : i32, backend_config = {{cost_estimate_json = "{COST}", name = "t"}}',
         "t", (1000.0, 8.0, 64.0)),
        (r'backend_config = "{\22cost_estimate\22: {\22flops\22: -1}}"', None, None),
        (r'backend_config = "{\22cost_estimate\22: {oh}}"', None, None),
        ('backend_config = "else"', None, None),
        ("", None, None),
    ],
    ids=["tpu", "gpu", "incomplete", "broken", "other", "none"],
)  # fmt: skip
def test_names_and_stated_costs(attributes: str, name: str | None, cost: object) -> None:
    found = facts(attributes)
    assert (found.get("kernel_name"), found.get("kernel_cost")) == (name, cost)


@pytest.mark.parametrize(("mask", "found"), [("CAUSAL", True), ("PADDING_CAUSAL", True), ("NO_MASK", None)])
def test_cudnn_says_whether_its_mask_is_causal(mask: str, found: object) -> None:
    assert facts(rf'backend_config = "{{\22mask_type\22: \22{mask}\22}}"').get("kernel_causal") is found


@pytest.mark.parametrize(
    ("attributes", "placement"),
    [
        ('call_target_name = "annotate_device_placement", mhlo.frontend_attributes = {_xla_buffer_placement = "MEMORY"}'
         .replace("MEMORY", memory), where)
        for memory, where in (("pinned_host", "host"), ("unpinned_host", "host"), ("device", "device"))
    ] + [('call_target_name = "annotate_device_placement"', None)],
)  # fmt: skip
def test_moves_between_memories(attributes: str, placement: str | None) -> None:
    text = f"""func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
      %0 = "stablehlo.custom_call"(%a) {{{attributes}}} : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }}"""
    module = pyshardy.load(text)
    (call,) = ops_named(module.root, ("stablehlo.custom_call",))
    with module.context:
        assert dict(kernel_facts(call)).get("placement") == placement
