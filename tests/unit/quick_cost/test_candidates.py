"""`Candidates`: pricing under other shardings is as propagating and partitioning the program with them."""

from __future__ import annotations

from random import Random

import pytest
from cost.quick_compare import Figures

import pyshardy
from programs import PROGRAMS
from pyshardy.core.axes import AxisRef
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import UsageError
from pyshardy.ir.cost_program import cost_program
from pyshardy.ir.functions import arg_sharding, main_function, set_arg_sharding
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import module_meshes
from pyshardy.quick_cost.candidates import Candidates

NAMES = ("mlp_training", "embedding_training", "cnn_training", "einsum_many_dims", "transformer_scan_remat", "uneven")

WITH_CAPTURED = ("transformer_scan_remat",)
"""Programs whose loops use arguments from outside."""


def all_given(module: Module) -> Module:
    """The module with a sharding for every argument, as `Candidates` asks for where loops use arguments."""
    root = module.copy_root()
    main = main_function(root)
    mesh = next(name for name, mesh in module_meshes(root).items() if mesh.axes)
    for arg in main.region.blocks[0].args:
        if arg_sharding(main, arg.index) is None and arg.type.rank:
            set_arg_sharding(main, arg.index, TensorSharding.fully_replicated(mesh, arg.type.rank))
    return module.with_root(root)


def draw(candidates: Candidates, seed: str) -> dict[int, TensorSharding | None]:
    """Random shardings of some arguments, by index."""
    random, found = Random(seed), dict[int, TensorSharding | None]()
    ((name, mesh),) = [(name, mesh) for name, mesh in candidates.meshes.items() if mesh.axes]
    for index, number in enumerate(candidates.inputs):
        shape = candidates.program.shapes[number]
        if shape and random.random() < 0.5:
            dims: list[list[AxisRef]] = [[] for _ in shape]
            for axis in mesh.axis_names:
                if random.random() < 0.6:
                    dims[random.randrange(len(dims))].append(AxisRef(axis))
            found[index] = TensorSharding(name, [DimSharding(axes) for axes in dims])
    return found


def whole(module: Module, given: dict[int, TensorSharding | None]) -> Figures:
    """The figures of the program that is propagated and partitioned with these shardings."""
    root = module.copy_root()
    for index, sharding in given.items():
        set_arg_sharding(main_function(root), index, sharding)
    part = pyshardy.partition(module.with_root(root))
    return Figures.of(cost_program(part.module.root, part.meshes, part.before.name))


@pytest.mark.parametrize("name", NAMES)
def test_prices_are_those_of_partitioned_programs(name: str) -> None:
    module = pyshardy.load(PROGRAMS[name].lower())
    if name in WITH_CAPTURED:
        module = all_given(module)
    candidates = Candidates(module)
    seen = set()
    for seed in range(4):
        given = draw(candidates, f"{name} {seed}")
        numbers = {candidates.inputs[index]: sharding for index, sharding in given.items()}
        found = Figures.of(candidates.price(candidates.propagated(numbers)))
        assert whole(module, given).differences(found) == []
        seen.add(found.peak)
    assert len(seen) > 1  # they are different candidates


def test_what_it_cannot_price_is_refused() -> None:
    with pytest.raises(UsageError, match="pricing candidates: got a program with no mesh or several"):
        Candidates(pyshardy.load("func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"))


_ISLAND = """
sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%x: tensor<4096x1024xf32>, %w: tensor<1024x4096xf32>) -> tensor<4096x4096xf32> {
  %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{?}, {?}]>, <@mesh, [{?}, {"model", ?}]>]
      out_shardings=[<@mesh, [{?}, {"model", ?}]>] manual_axes={"model"}
      (%a: tensor<4096x1024xf32>, %b: tensor<1024x2048xf32>) {
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<4096x1024xf32>, tensor<1024x2048xf32>) -> tensor<4096x2048xf32>
    sdy.return %1 : tensor<4096x2048xf32>
  } : (tensor<4096x1024xf32>, tensor<1024x4096xf32>) -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}"""


def test_an_island_with_free_axes_is_refused_and_searched_all_the_same() -> None:
    """Its body is sharded by propagation, as each candidate says."""
    module = pyshardy.load(_ISLAND)
    with pytest.raises(UsageError, match="axes that are not manual"):
        Candidates(module)
    plan = pyshardy.search(module, hardware="v5e", candidates=40)
    sharded = pyshardy.cost(module.annotate({"arg0": pyshardy.PartitionSpec("data")}), "v5e")
    assert plan.step_seconds <= sharded.step_seconds < 0.7 * pyshardy.cost(module, "v5e").step_seconds


def test_an_island_without_free_axes_is_priced_as_a_whole_program_is() -> None:
    text = _ISLAND.replace('"model"=2', '"model"=2, "one"=1').replace('"data"=2, ', "")
    module = pyshardy.load(text)
    candidates = Candidates(module)
    given = {0: TensorSharding("mesh", [["model"], []])}
    numbers = {candidates.inputs[index]: sharding for index, sharding in given.items()}
    found = Figures.of(candidates.price(candidates.propagated(numbers)))
    assert whole(module, given).differences(found) == []
