"""Other annotations, as they are tried."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.core.notation import parse_sharding
from pyshardy.frontend.hints import Edit, edited, spec_text
from pyshardy.frontend.interface import InterfaceTensor, input_tensors, output_tensors

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def test_an_edit_changes_a_copy() -> None:
    module = pyshardy.load(TEXT)
    before = module.text()
    whole = parse_sharding("<@mesh, [{}]>")
    assert input_tensors(edited(module, Edit(True, (0,), whole)).root)[0].sharding is whole
    assert output_tensors(edited(module, Edit(False, (0,), whole)).root)[0].sharding is whole
    assert module.text() == before


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        (None, "P(None, None)"),
        ('<@m, [{"a"}, {}]>', 'P("a", None)'),
        ('<@m, [{"a", "b"}, {"c"}]>', 'P(("a", "b"), "c")'),
        ('<@m, [{"a":(1)2}, {}]>', '<@m, [{"a":(1)2}, {}]>'),
    ],
)
def test_annotations_are_written_as_jax_has_them(sharding: str | None, expected: str) -> None:
    tensor = InterfaceTensor("x", 0, (8, 8), "f32", None if sharding is None else parse_sharding(sharding))
    assert spec_text(tensor) == expected
