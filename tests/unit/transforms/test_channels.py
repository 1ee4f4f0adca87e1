"""Numbers of channels continue those that a module has."""

from __future__ import annotations

import pytest

from pyshardy.ir.module import Module
from pyshardy.transforms.channels import Channels

USED = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>,
    channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@pytest.mark.parametrize(("text", "first"), [("", 1), (USED, 8)])
def test_channels_continue_those_of_the_module(text: str, first: int) -> None:
    module = Module.parse(text)
    with module.context:
        channels = Channels(module.copy_root(), module.attrs)
        found = [str(channels.next()) for _ in range(2)]
    assert found == [f"#stablehlo.channel_handle<handle = {first + step}, type = 1>" for step in range(2)]
