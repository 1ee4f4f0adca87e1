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
