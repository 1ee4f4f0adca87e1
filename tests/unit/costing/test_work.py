"""FLOPs of ops, against XLA's count on one device."""

from __future__ import annotations

from math import prod

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pyshardy
from pyshardy.costing.flat import BITCAST, KEPT_COPY
from pyshardy.costing.program import CostKind, CostTensor
from pyshardy.costing.work import CustomCall, Work, custom_call_of, work_of
from pyshardy.ir.cost_program import cost_program

X = np.ones((6, 10, 12, 4), np.float32)
K = np.ones((3, 3, 4, 8), np.float32)


def conv(strides, padding, lhs=(1, 1), rhs=(1, 1), groups=1):
    def run(x, k):
        return jax.lax.conv_general_dilated(
            x, k[:, :, : 4 // groups], strides, padding, lhs, rhs, ("NHWC", "HWIO", "NHWC"), groups
        )

    return run


PROGRAMS = {
    "dot": (lambda x, k: x.reshape(-1, 4) @ k[0, 0], 0.01),
    "batched": (lambda x, k: jnp.einsum("bhwc,bhvc->bhwv", x, x), 0.01),
    "same": (conv((1, 1), "SAME"), 0.01),
    "valid": (conv((1, 1), "VALID"), 0.01),
    "strided": (conv((2, 2), "SAME"), 0.01),
    "base_dilated": (conv((1, 1), [(1, 1), (1, 1)], lhs=(2, 2)), 0.01),
    "window_dilated": (conv((1, 1), "SAME", rhs=(2, 2)), 0.01),
    "grouped": (conv((1, 1), "SAME", groups=2), 0.01),
    "reduced": (lambda x, k: x.sum((1, 2)), 0.01),
    "elementwise": (lambda x, k: x * x + x, 0.01),
    "pooled": (lambda x, k: jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), 0.01),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_flops_are_those_of_xla(name: str) -> None:
    run, tolerance = PROGRAMS[name]
    lowered = jax.jit(run).lower(X, K)
    root = pyshardy.load(lowered).copy_root()
    program = cost_program(root, {})
    found = sum(work_of(op.kind).flops for op in program.body.ops)
    wanted = lowered.compile().cost_analysis()["flops"]
    assert found == pytest.approx(wanted, rel=tolerance)


def test_transcendentals_are_counted_apart() -> None:
    x = CostTensor((4, 8), "f32", 128)
    assert work_of(CostKind("stablehlo.tanh", (x,), (x,))) == Work(transcendentals=32.0)


def test_copies_that_xla_adds_have_a_price() -> None:
    x = CostTensor((4, 8), "f32", 128)
    assert all(work_of(CostKind(name, (x,), (x,))) == Work() for name in (KEPT_COPY, BITCAST))


def test_what_is_not_known_is_said_to_be() -> None:
    x = CostTensor((4, 8), "f32", 128)
    found = work_of(CostKind("stablehlo.custom_call", (x,), (x,), (("call_target_name", "mystery"),)))
    assert not found.is_known and found.flops == 0


def kernel(name: str, *shapes: tuple[int, ...], target: str = "tpu_custom_call", cost: object = None) -> CostKind:
    tensors = tuple(CostTensor(shape, "bf16", 2 * prod(shape)) for shape in shapes)
    facts = [("call_target_name", target), ("kernel_name", name), *([("kernel_cost", cost)] if cost else [])]
    return CostKind("stablehlo.custom_call", tensors, tensors[:1], tuple(facts))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "target", "products"),
    [("_flash_attention_kernel", "tpu_custom_call", 2), ("_flash_attention_dkv_kernel", "tpu_custom_call", 4),
     ("_flash_attention_dq_kernel", "tpu_custom_call", 3), ("flash_attention_bwd", "tpu_custom_call", 5),
     ("", "__cudnn$fmhaSoftmaxBackward", 5)],
)  # fmt: skip
def test_kernels_of_attention_by_their_shapes(name: str, target: str, products: int) -> None:
    """Keys have another length than queries, and fewer heads; where heads are depends on the target."""
    heads_first = target == "tpu_custom_call"
    query, keys = ((2, 8, 16, 4), (2, 2, 32, 4)) if heads_first else ((2, 16, 8, 4), (2, 32, 2, 4))
    found = work_of(kernel(name, query, keys, keys, target=target))
    assert (found.flops, found.is_matrix) == (products * 2.0 * 2 * 8 * 16 * 32 * 4, True)


def test_tables_of_blocks_come_before_the_queries() -> None:
    query, keys = CostTensor((8, 16, 4), "bf16", 1024), CostTensor((2, 32, 4), "bf16", 512)
    table = CostTensor((8, 2, 2), "i8", 32)
    facts = (("call_target_name", "tpu_custom_call"), ("kernel_name", "splash_mha_fwd_residuals"))
    found = work_of(CostKind("stablehlo.custom_call", (table, table, query, keys, keys), (query,), facts))
    assert found.flops == 2 * 2.0 * 8 * 16 * 32 * 4


def test_a_causal_mask_halves_the_products() -> None:
    shapes = (2, 16, 8, 4), (2, 32, 8, 4), (2, 32, 8, 4)
    whole = kernel("", *shapes, target="__cudnn$fmhaSoftmax")
    half = CostKind(whole.name, whole.operands, whole.results, (*whole.facts, ("kernel_causal", True)))
    assert work_of(half).flops == work_of(whole).flops / 2 > 0


def test_what_an_author_states_comes_first() -> None:
    kind = kernel("flash_attention", (2, 8, 16, 4), (2, 8, 16, 4), (2, 8, 16, 4), cost=(7.0, 5.0, 3.0))
    found = work_of(kind)
    assert (found.flops, found.transcendentals, found.bytes, found.is_known) == (7.0, 5.0, 3.0, True)
    assert custom_call_of(kind) == CustomCall("flash_attention", "tpu_custom_call", "its author")


def test_calls_that_compute_nothing_are_not_listed() -> None:
    mark = CostKind("stablehlo.custom_call", (), (), (("call_target_name", "Sharding"),))
    assert custom_call_of(mark) is None and custom_call_of(CostKind("stablehlo.add", (), ())) is None
    assert custom_call_of(kernel("mine", (8,))) == CustomCall("mine", "tpu_custom_call", None)


ROWS, DEPTH, WIDTH, GROUPS = 64, 32, 16, 4


def works_of(function, *shapes) -> dict[str, list[Work]]:
    module = pyshardy.load(function, *shapes, platform="tpu")
    part = pyshardy.partition(module)
    found: dict[str, list[Work]] = {}
    for op in cost_program(part.module.root, part.meshes).body.ops:
        found.setdefault(op.kind.name, []).append(work_of(op.kind))
    return found


def test_ragged_products_and_their_gradients_count_every_row_once() -> None:
    def loss(x, w, sizes):
        return (jax.lax.ragged_dot(x, w, sizes) ** 2).sum()

    array = jax.ShapeDtypeStruct
    shapes = array((ROWS, DEPTH), "float32"), array((GROUPS, DEPTH, WIDTH), "float32"), array((GROUPS,), "int32")
    found = works_of(jax.grad(loss, (0, 1)), *shapes)
    (products,) = (works for name, works in found.items() if name.endswith(".ragged_dot"))
    assert products == [Work(2.0 * ROWS * DEPTH * WIDTH, is_matrix=True)] * 3


@pytest.mark.parametrize("find", [jax.lax.top_k, jax.lax.approx_max_k], ids=["exact", "approximate"])
def test_the_largest_elements_are_found_by_reading_all(find) -> None:
    found = works_of(lambda x: find(x, 4), jax.ShapeDtypeStruct((8, 128), "float32"))
    assert Work(8.0 * 128) in [work for works in found.values() for work in works]
    assert all(work.is_known for works in found.values() for work in works)


def test_a_ragged_product_without_dimensions_has_no_price() -> None:
    x = CostTensor((4, 4), "f32", 64)
    assert not work_of(CostKind("mhlo.ragged_dot", (x, x, CostTensor((2,), "i32", 8)), (x,))).is_known
