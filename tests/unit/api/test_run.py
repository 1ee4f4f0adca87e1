"""`pyshardy.run` and `pyshardy.compiled_collectives`: what each kind of argument gives."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import pyshardy
from pyshardy.errors import UsageError
from support.reference import jaxlib_version

CONTRACTED = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<2x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, %b: tensor<8x2xf32>)
    -> (tensor<2x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<2x8xf32>, tensor<8x2xf32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}"""
A = np.arange(16, dtype=np.float32).reshape(2, 8)
B = np.arange(16, dtype=np.float32).reshape(8, 2)


BY_INTERPRETER = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="the interpreter needs a thread of the machine for every device"
)


@pytest.mark.parametrize("engine", ["local", "xla", pytest.param("interpreter", marks=BY_INTERPRETER)])
def test_every_engine_gives_the_product(engine: str) -> None:
    (found,) = pyshardy.run(CONTRACTED, A, B, engine=engine)
    np.testing.assert_array_equal(np.asarray(found), A @ B)


def test_results_and_their_program_give_the_same() -> None:
    propagated = pyshardy.propagate(CONTRACTED)
    for program in (propagated, pyshardy.partition(propagated), pyshardy.load(CONTRACTED)):
        np.testing.assert_array_equal(np.asarray(pyshardy.run(program, A, B)[0]), A @ B)


def test_a_function_gets_and_gives_its_trees() -> None:
    found = pyshardy.run(lambda pair, scale: {"product": scale * (pair[0] @ pair[1])}, (A, B), scale=2)
    assert list(found) == ["product"]
    np.testing.assert_array_equal(np.asarray(found["product"]), 2 * (A @ B))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="interpreter"):
        pyshardy.run(CONTRACTED, A, B, engine="gpu")


@pytest.mark.parametrize("engine", ["local", "xla"])
def test_xla_compiles_the_all_reduce_of_the_partition(engine: str) -> None:
    partition = pyshardy.partition(CONTRACTED)
    (sent,) = partition.traffic.kinds
    (compiled,) = pyshardy.compiled_collectives(partition, engine)
    assert (compiled.kind, compiled.count) == (sent.kind, sent.count) == ("all_reduce", 1)


def test_a_program_that_is_only_loaded_has_no_compiled_collectives() -> None:
    with pytest.raises(UsageError, match="needed the result of partition or propagate"):
        pyshardy.compiled_collectives(pyshardy.load(CONTRACTED))


def test_the_collectives_of_what_jax_compiled(tmp_path: Path) -> None:
    mesh = jax.make_mesh((8,), ("x",))
    rows = NamedSharding(mesh, P("x"))
    compiled = jax.jit(lambda a: a.sum(), in_shardings=rows).lower(np.ones((16, 4), np.float32)).compile()
    (found,) = pyshardy.compiled_collectives(compiled)
    assert (found.kind, found.count) == ("all_reduce", 1)
    path = tmp_path / "compiled.txt"
    path.write_text(compiled.as_text())
    assert pyshardy.compiled_collectives(path) == pyshardy.compiled_collectives(str(path)) == (found,)
    path.write_text("module {}")
    with pytest.raises(UsageError, match="got no HLO, needed HLO as text, which begins with HloModule"):
        pyshardy.compiled_collectives(path)
