"""`name-causes` of `sdy-insert-explicit-reshards`: a reshard says which op needs it."""

from __future__ import annotations

from pyshardy.ir.causes import cause_of, scope_of
from pyshardy.ir.functions import main_function
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import walk
from pyshardy.passes.pipeline import run_pipeline

PRODUCT = """sdy.mesh @m = <["a"=2, "b"=2]>
func.func @main(%l: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {"b"}]>},
                %r: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}, {}]>}) {
  %given = sdy.reshard %r <@m, [{"b"}, {"a"}]> : tensor<8x8xf32> loc("f.py":1:1)
  %0 = stablehlo.dot %l, %given {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}, {}]>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32> loc("jit(f)/dot"("f.py":3:4))
  return %0 : tensor<8x8xf32>
}"""


def causes(options: str) -> list[tuple[str, str | None]]:
    """What every op that moves data says that it is for."""
    module = run_pipeline(Module.parse(PRODUCT), f"sdy-insert-explicit-reshards{{enable-full-version=true{options}}}")
    moving = ("sdy.reshard", "sdy.all_reduce")
    return [(op.name, cause_of(op.location)) for op in walk(main_function(module.root)) if op.name in moving]


def test_new_reshards_say_what_they_are_for_and_old_ones_stay() -> None:
    assert causes(" name-causes=true") == [
        ("sdy.reshard", None),
        ("sdy.reshard", "reshard of operand 1 of stablehlo.dot"),
        ("sdy.all_reduce", "sum of result of stablehlo.dot"),
    ]


def test_the_scope_is_that_of_the_op() -> None:
    text = "sdy-insert-explicit-reshards{enable-full-version=true name-causes=true}"
    root = run_pipeline(Module.parse(PRODUCT), text).root
    (total,) = [op for op in walk(main_function(root)) if op.name == "sdy.all_reduce"]
    assert scope_of(total.location) == "jit(f)/dot"


def test_nobody_says_anything_unless_asked() -> None:
    assert [cause for _, cause in causes("")] == [None] * len(causes(""))
