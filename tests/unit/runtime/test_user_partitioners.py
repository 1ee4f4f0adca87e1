"""What the partitioners of users make of their ops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from jaxlib.mlir.dialects import stablehlo

import pyshardy
from pyshardy.ir.diagnostics import PassError
from support.reference import jaxlib_version

A = np.random.default_rng(0).integers(-9, 9, (8, 16)).astype(np.float32)
B = np.random.default_rng(1).integers(-9, 9, (16, 8)).astype(np.float32)
OLD = jaxlib_version() < (0, 12)
ENGINES = (
    "local",
    pytest.param("interpreter", marks=pytest.mark.skipif(OLD, reason="it needs a thread of the machine per device")),
)


def mesh() -> Mesh:
    return Mesh(np.array(jax.devices()).reshape(4, 2), ("x", "y"))


def spec(*axes: Any) -> NamedSharding:
    return NamedSharding(mesh(), P(*axes))


def partitioned(function: Any, *args: Any, in_shardings: Any = None) -> pyshardy.Partition:
    return pyshardy.partition(pyshardy.load(function, *args, in_shardings=in_shardings))


def product(asked: list[Any], answer: Callable[..., Any] | None = None) -> Any:
    """A matrix product whose partitioner splits the dimension that is summed over, and notes what it is asked."""

    @custom_partitioning
    def multiply(a: jax.Array, b: jax.Array) -> jax.Array:
        return a @ b

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        asked.append((*(arg.sharding.spec for arg in args), result.sharding.spec))
        if answer is not None:
            return answer(mesh, args, result)
        shardings = NamedSharding(mesh, P(None, "x")), NamedSharding(mesh, P("x", None))
        return mesh, lambda a, b: lax.psum(jax.jit(jnp.matmul)(a, b), "x"), NamedSharding(mesh, P()), shardings

    multiply.def_partition(partition=partition, sharding_rule="i k, k j -> i j", infer_sharding_from_operands=None)
    return multiply


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_collectives_functions_and_several_ops(engine: str) -> None:
    asked: list[Any] = []
    multiply = product(asked)

    def program(a: jax.Array, b: jax.Array) -> Any:
        return multiply(multiply(a, b), a) - jax.jit(jnp.matmul)(a @ b, a)

    made = partitioned(program, A, B, in_shardings=(spec("x", "y"), spec(None, "y")))
    sums = [row for row in made.traffic.collectives if row.kind == "all_reduce" and row.axes == ('"x"',)]
    assert len(sums) == 2
    assert asked[0] == (P("x", "y"), P(None, "y"), P("x", "y"))
    assert not made.warnings
    (found,) = made.run_flat((A, B), engine=engine)
    np.testing.assert_array_equal(np.asarray(found), np.zeros((8, 16)))


def test_the_partitioner_says_how_tensors_are_sharded() -> None:
    asked: list[Any] = []
    made = partitioned(lambda a, b: product(asked)(a, b), A, B, in_shardings=(spec("x"), spec()))
    (found,) = made.run_flat((A, B))
    np.testing.assert_array_equal(np.asarray(found), A @ B)
    assert [row.kind for row in made.traffic.collectives][:2] == ["all_to_all", "all_reduce"]


def test_trees_static_arguments_and_uneven_tensors() -> None:
    shapes: list[Any] = []

    def compute(values: Any, factor: float) -> Any:
        return {"times": values["a"] * factor, "plus": values["b"] + factor}

    both = custom_partitioning(compute, static_argnums=(1,))

    def partition(factor: float, mesh: Any, args: Any, result: Any) -> Any:
        (values,) = args
        shapes.append({name: value.sharding.spec for name, value in values.items()})
        shardings = {name: value.sharding for name, value in values.items()}
        out = {"times": shardings["a"], "plus": shardings["b"]}
        return mesh, lambda values: compute(values, factor), out, (shardings,)

    both.def_partition(partition=partition, sharding_rule="i j, k l -> k l, i j")
    b = B[:7]

    def program(a: jax.Array, b: jax.Array) -> Any:
        b = lax.with_sharding_constraint(b, spec("x", "y"))
        return both({"a": a, "b": b}, 3.0)

    made = partitioned(program, A, b, in_shardings=(spec("x", "y"), None))
    assert shapes == [{"a": P("x", "y"), "b": P()}]
    plus, times = made.run_flat((A, b))
    np.testing.assert_array_equal(np.asarray(plus), b + 3)
    np.testing.assert_array_equal(np.asarray(times), A * 3)


def refusal(answer: Callable[..., Any]) -> str:
    with pytest.raises(PassError) as caught:
        partitioned(product([], answer), A, B, in_shardings=(spec("x"), spec()))
    return str(caught.value).partition("\n")[0]


def test_a_partitioner_that_fails_is_refused() -> None:
    def fail(*_: Any) -> None:
        raise ValueError("no idea")

    assert refusal(fail) == ("'stablehlo.custom_call' op calls a custom partitioner, which fails: ValueError: no idea")


def test_an_answer_that_cannot_be_used_is_refused() -> None:
    def other_mesh(*_: Any) -> Any:
        other = Mesh(np.array(jax.devices()), ("z",))
        whole = NamedSharding(other, P())
        return other, jnp.matmul, whole, (whole, whole)

    assert refusal(other_mesh).endswith('which returned another mesh, <["z"=8]>')

    def no_names(mesh: Any, *_: Any) -> Any:
        return mesh, jnp.matmul, NamedSharding(mesh, P()), (jax.sharding.SingleDeviceSharding(jax.devices()[0]),) * 2

    assert "TypeError: it gives a SingleDeviceSharding where a NamedSharding is needed" in refusal(no_names)

    def uneven(mesh: Any, *_: Any) -> Any:
        whole = NamedSharding(mesh, P())
        return mesh, jnp.matmul, whole, (NamedSharding(mesh, P(None, ("x", "y"))), NamedSharding(mesh, P()))

    assert "which fails" in refusal(uneven)

    def too_long(mesh: Any, *_: Any) -> Any:
        whole = NamedSharding(mesh, P())
        return mesh, jnp.matmul, NamedSharding(mesh, P(None, None, "y")), (whole, whole)

    answer = "it gives PartitionSpec(None, None, 'y') to a tensor of rank 2, which has no dimension 2"
    assert answer in refusal(too_long).replace("P(None", "PartitionSpec(None")


def test_entries_past_the_last_dimension_that_shard_nothing_are_ignored() -> None:
    """As JAX does: partitioners give a result the spec of an operand of higher rank."""

    def answer(mesh: Any, args: Any, _: Any) -> Any:
        rows = NamedSharding(mesh, P("x", None, None, None))
        return mesh, jnp.matmul, rows, (rows, NamedSharding(mesh, P(None, None, None)))

    made = partitioned(lambda a, b: product([], answer)(a, b), A, B, in_shardings=(spec("x"), spec()))
    (found,) = made.run_flat((A, B))
    np.testing.assert_array_equal(np.asarray(found), A @ B)
    assert made.traffic.collectives == ()


def test_the_gradient_of_attention_by_cudnn(monkeypatch: pytest.MonkeyPatch) -> None:
    library = pytest.importorskip("jax._src.cudnn.fused_attention_stablehlo")
    for name in ("check_cudnn_version", "get_cudnn_version"):
        monkeypatch.setattr(library, name, lambda *_, **__: 91200, raising=False)
    monkeypatch.setattr(library, "check_compute_capability", lambda *_, **__: True)

    def loss(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        found = jax.nn.dot_product_attention(q, k, v, implementation="cudnn")
        return jnp.sum(found.astype(jnp.float32))

    shape = jax.ShapeDtypeStruct((8, 64, 8, 64), "bfloat16")
    step = jax.jit(jax.grad(loss, (0, 1, 2)), in_shardings=(spec("x", None, "y"),) * 3)
    made = pyshardy.partition(pyshardy.load(step.trace(*(shape,) * 3).lower(lowering_platforms=("cuda",))))
    assert made.traffic.collectives == ()
    assert [row.local_shape for row in made.propagated.summary.outputs] == [(2, 64, 4, 64)] * 3
    found = pyshardy.cost(made, "h100").estimate
    assert found.flops_per_device >= 2 * (2 + 5) * 2 * 4 * 64 * 64 * 64
    places = {one.source[0] for one in found.memory.live if one.source is not None}
    assert places == {__file__}  # and not the file that calls the partitioner


def test_a_module_from_text_has_no_partitioners() -> None:
    module = pyshardy.load(product([]), A, B, in_shardings=(spec("x"), spec()))
    with pytest.raises(PassError, match="a custom partitioner in Python"):
        pyshardy.partition(pyshardy.load(module.text()))


def test_nothing_is_asked_inside_manual_computations() -> None:
    multiply = product([])

    def program(a: jax.Array, b: jax.Array) -> Any:
        return jax.shard_map(
            multiply,
            mesh=mesh(),
            axis_names={"y"},
            in_specs=(P(), P(None, "y")),
            out_specs=P(None, "y"),
            check_vma=False,
        )(a, b)

    with pytest.raises(PassError, match="inside a manual computation"):
        partitioned(program, A, B, in_shardings=(spec("x"), spec()))


def test_a_body_is_lowered_for_the_platform_of_the_program() -> None:
    only_cuda = Primitive("only_cuda")
    only_cuda.def_abstract_eval(lambda x: x)
    mlir.register_lowering(only_cuda, lambda ctx, x: [stablehlo.negate(x)], platform="cuda")

    @custom_partitioning
    def op(x: jax.Array) -> jax.Array:
        return only_cuda.bind(x)

    def partition(mesh: Any, args: Any, result: Any) -> Any:
        return mesh, only_cuda.bind, args[0].sharding, (args[0].sharding,)

    op.def_partition(partition=partition, sharding_rule="i j -> i j")
    shape = jax.ShapeDtypeStruct((8, 16), "float32")
    traced = jax.jit(lambda x: op(x) * 2, in_shardings=spec("x")).trace(shape)
    module = pyshardy.load(traced.lower(lowering_platforms=("cuda",)))
    assert "stablehlo.negate" in pyshardy.partition(module).module.text()
    named = pyshardy.load(lambda x: op(x) * 2, shape, mesh={"x": 4, "y": 2}, in_shardings=(P("x"),), platform="cuda")
    assert pyshardy.partition(named).traffic.collectives == ()


def test_what_moves_before_a_partitioner_has_the_line_of_the_call() -> None:
    multiply = product([])

    def step(a: jax.Array, b: jax.Array) -> jax.Array:
        return multiply(a, b)

    rows = partitioned(step, A, B, in_shardings=(spec("x"), spec())).traffic.collectives
    line = step.__code__.co_firstlineno + 1
    assert {row.kind for row in rows} >= {"all_to_all"}
    moved = [row for row in rows if row.kind == "all_to_all"]
    assert [(row.place[0], row.place[1]) for row in moved if row.place] == [(__file__, line)] * len(moved)
