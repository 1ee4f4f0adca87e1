"""`pyshardy cost` from its command line."""

from __future__ import annotations

import json

import pytest

from .command_line import Cli
from .opt_command_line import Put

PROGRAM = """
sdy.mesh @mesh = <["data"=4, "model"=2]>
func.func @main(%x: tensor<512x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<256x256xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}) -> tensor<512x256xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<512x256xf32>, tensor<256x256xf32>) -> tensor<512x256xf32>
  return %0 : tensor<512x256xf32>
}
"""


def test_the_tables_say_that_figures_are_estimates(cli: Cli, put: Put) -> None:
    found = cli("cost", put(PROGRAM), "--hardware", "h100")
    assert found.status == 0
    assert "estimated cost on 8 x NVIDIA H100 SXM" in found.out
    for title in ("time per step (estimated)", "peak memory per device (estimated)", "alive at the peak (estimated)"):
        assert title in found.out
    assert "axis data over nvlink 4" in found.out


def test_json_and_another_mesh(cli: Cli, put: Put) -> None:
    path = put(PROGRAM)
    small = json.loads(cli("cost", path, "--json", "--hardware", "v5p").out)
    large = json.loads(cli("cost", path, "--json", "--hardware", "v5p", "--mesh", "data=64,model=2").out)
    assert (small["devices"], large["devices"]) == (8, 128)
    assert large["estimated"]["flops_per_device"] < small["estimated"]["flops_per_device"]
    assert large["topology"]["data"].startswith("ici")


@pytest.mark.parametrize(
    "options, message",
    [
        (("--hardware", "h1000"), "looking up hardware: got 'h1000', needed one of"),
        (("--hardware", "nothing.toml"), "reading a hardware file"),
        (("--mesh", "rows=4"), "giving the mesh other sizes: got rows=4, needed sizes for the axes of data=4, model=2"),
        (("--mesh", "data"), "got --mesh data, needed axes with sizes"),
        (("--mesh", "data=0,model=2"), "needed axes with sizes"),
        (("--networks", "data=ether"), "the network 'ether' for the axis 'data'"),
        (("--networks", "data"), "needed axes with networks"),
        (("--shape", "3x"), "needed dimensions like 16x16"),
        (("--shape", "3x3"), "the shape 3x3"),
        (("--hardware", "h100", "--shape", "2x4"), "needed a chip with a torus"),
        (("--collectives", "magic"), "invalid choice: 'magic'"),
    ],
)
def test_what_makes_no_sense_is_refused(cli: Cli, put: Put, options: tuple[str, ...], message: str) -> None:
    found = cli("cost", put(PROGRAM), *options)
    assert found.status == 2 and found.out == ""
    assert message in found.err and "Traceback" not in found.err
