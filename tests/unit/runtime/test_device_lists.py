"""Groups of devices as numbers."""

from __future__ import annotations

import pytest

from pyshardy.errors import InvalidModuleError
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.runtime.device_lists import list_devices
from support.reference import jaxlib_version

pytestmark = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older StableHLO has no groups along axes")
GATHER = """sdy.mesh @m = <["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>
func.func @main(%a: tensor<4xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64,
    channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = GROUPS, use_global_device_ids}>
    : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


def listed(groups: str) -> str:
    module = Module.parse(GATHER.replace("GROUPS", groups))
    with module.context:
        list_devices(module.root, module)
    (gather,) = [op for op in walk(module.root) if op.name == "stablehlo.all_gather"]
    return str(gather.attrs["replica_groups"])


def along(mesh: str, axis: str) -> str:
    return f'#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [#stablehlo.axis_ref<name = "{axis}">]>'


INLINED = (
    '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "z", size = 2>], device_ids = dense<[1, 0]> : tensor<2xi64>>'
)


@pytest.mark.parametrize(
    ("groups", "found"),
    [
        (along("@m", "x"), "dense<[[3, 2], [1, 0]]> : tensor<2x2xi64>"),
        (along("@m", "y"), "dense<[[3, 1], [2, 0]]> : tensor<2x2xi64>"),
        (along(INLINED, "z"), "dense<[[1, 0]]> : tensor<1x2xi64>"),
        ("dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>", "dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>"),
    ],
)
def test_the_order_of_devices_is_kept(groups: str, found: str) -> None:
    assert listed(groups) == found


def test_a_mesh_that_is_gone_is_refused() -> None:
    module = Module.parse(GATHER.replace("GROUPS", along("@m", "x")))
    next(op for op in walk(module.root) if op.name == "sdy.mesh").erase()
    with module.context, pytest.raises(InvalidModuleError) as caught:
        list_devices(module.root, module)
    assert str(caught.value) == (
        "reading the groups of devices of a collective: got axes of the unknown mesh @m, needed a mesh in the module"
    )
