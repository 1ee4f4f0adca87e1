"""Programs that are equal but for constraints without effect have equal keys."""

from __future__ import annotations

from pyshardy.checkup.pricing import Pricer
from pyshardy.core.notation import parse_sharding
from pyshardy.costing.chips import find_hardware
from pyshardy.costing.collectives import CollectiveModel
from pyshardy.costing.topology import make_topology
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op
from pyshardy.ir.op_lists import ops_named
from pyshardy.ir.program_keys import ProgramKeys
from pyshardy.propagation.origins import CONSTRAINT

PROGRAM = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8192x4096xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8192x4096xf32> {
  %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : tensor<8192x4096xf32>
  %1 = stablehlo.sine %0 : tensor<8192x4096xf32>
  return %1 : tensor<8192x4096xf32>
}"""
AS_IT_IS, WHOLE = (parse_sharding(f"<@mesh, [{axes}, {{}}]>") for axes in ('{"x"}', "{}"))


def constrained(module: Module, sharding: object) -> Module:
    root = module.copy_root()
    (tanh,), (sine,) = (ops_named(root, (f"stablehlo.{name}",)) for name in ("tanh", "sine"))
    constraint = Op(CONSTRAINT, [tanh.result], [tanh.result.type], {"sharding": sharding}, location=tanh.place)
    constraint.insert_after(tanh)
    sine.set_operand(0, constraint.result)
    return module.with_root(root)


def test_a_constraint_to_what_a_value_has_makes_no_difference() -> None:
    module, keys = Module.parse(PROGRAM), ProgramKeys()
    assert keys.key(constrained(module, AS_IT_IS).root) == keys.key(module.root) == keys.key(module.copy_root())


def test_other_programs_have_other_keys() -> None:
    module, keys = Module.parse(PROGRAM), ProgramKeys()
    other, twice = module.copy_root(), module.copy_root()
    ops_named(other, ("stablehlo.tanh",))[0].set_attr("sdy.sharding", (WHOLE,))
    (sine,) = ops_named(twice, ("stablehlo.sine",))
    sine.set_operand(0, ops_named(twice, ("func.func",))[0].region.blocks[0].args[0])
    roots = [module.root, constrained(module, WHOLE).root, other, twice]
    assert len({keys.key(root) for root in roots}) == 4


def test_equal_programs_are_priced_once() -> None:
    module = Module.parse(PROGRAM)
    pricer = Pricer(make_topology(find_hardware("h100"), (("x", 4),)), CollectiveModel.FORMULA)
    first, same, other = map(pricer.price, (module, constrained(module, AS_IT_IS), constrained(module, WHOLE)))
    assert first is not None and same is first and pricer.tries == 3
    assert other is not None and other.seconds > first.seconds
