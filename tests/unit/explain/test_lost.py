"""Dimensions whose axis was lost at a value before."""

from __future__ import annotations

import pyshardy

PROGRAM = """
sdy.mesh @mesh = <["data"=2]>
func.func @main(%x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>},
                %w: tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}]>}) -> tensor<8x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x64xf32>) -> tensor<8x64xf32>
  %1 = stablehlo.tanh %0 : tensor<8x64xf32>
  %2 = stablehlo.negate %1 : tensor<8x64xf32>
  return %2 : tensor<8x64xf32>
}"""


def reasons(program: str, value: str, dim: int) -> list[tuple[str, str]]:
    """The kinds and texts of the reasons why a dimension of a value stayed whole."""
    (story,) = pyshardy.propagate(program).explain(value).values
    return [(reason.kind, reason.text) for reason in story.dims[dim].reasons]


def test_the_value_that_lost_the_axis_is_named_with_its_reason_however_far_before() -> None:
    ((own, why),) = reasons(PROGRAM, "dot_general", 0)
    assert own == "taken"
    for value in ("tanh", "negate"):
        ((kind, text),) = reasons(PROGRAM, value, 0)
        assert kind == "lost before"
        assert text.startswith('because "data" was lost before: dimension 0 of the result of `dot_general`')
        assert text.endswith(why)


def test_where_no_axis_ever_was_nobody_asked() -> None:
    program = PROGRAM.replace('[{"data"}, {}]', "[{}, {}]", 1)
    for value in ("dot_general", "tanh", "negate"):
        ((kind, _),) = reasons(program, value, 0)
        assert kind == "nobody asked"
