"""Collectives that are joined into one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest

from pyshardy.costing.compilers import XLA_ON_GPU
from pyshardy.costing.counting import count_kernels
from pyshardy.costing.flatten import flatten
from pyshardy.costing.fusion import fuse
from pyshardy.costing.kernels import Kernels

from .build import FIVE_ROUNDS, described

KIB = 1024
GPU = replace(XLA_ON_GPU, joined_bytes=64 * KIB)


def reduced(name: str, operand: str, elements: int, dtype: str = "f32", body: str = "add") -> str:
    """An all-reduce over two devices, of a value that is computed before."""
    type = f"tensor<{elements}x{dtype}>"
    return f"""%{name}_x = stablehlo.multiply {operand}, {operand} : {type}
    %{name} = "stablehlo.all_reduce"(%{name}_x) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> ({{
      ^bb0(%p: tensor<{dtype}>, %q: tensor<{dtype}>):
        %s = stablehlo.{body} %p, %q : tensor<{dtype}>
        stablehlo.return %s : tensor<{dtype}>
    }}) : ({type}) -> {type}
    """


def gathered(name: str, operand: str, elements: int, dtype: str = "f32") -> str:
    return f"""%{name} = "stablehlo.all_gather"({operand}) <{{all_gather_dim = 0 : i64,
      replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}}> : (tensor<{elements}x{dtype}>) -> tensor<{2 * elements}x{dtype}>
    """  # noqa: E501


def block(arguments: Sequence[str], body: str, results: Iterable[tuple[str, str]], compiler: object = GPU) -> Kernels:
    given = ", ".join(f"%a{place}: tensor<{type}>" for place, type in enumerate(arguments))
    names, types = zip(*results)
    text = (
        f"func.func @main({given}) -> ({', '.join(types)}) {{ {body} return {', '.join(names)} : {', '.join(types)} }}"
    )
    program = described(text)
    return fuse(flatten(program, compiler), compiler)  # type: ignore[arg-type]


def sums(sizes: Sequence[int], dtypes: Sequence[str] = (), bodies: Sequence[str] = ()) -> Kernels:
    """Independent all-reduces of so many elements."""
    dtypes, bodies = dtypes or ["f32"] * len(sizes), bodies or ["add"] * len(sizes)
    types = [f"{size}x{dtype}" for size, dtype in zip(sizes, dtypes)]
    body = "".join(
        reduced(f"r{at}", f"%a{at}", size, dtype, kind)
        for at, (size, dtype, kind) in enumerate(zip(sizes, dtypes, bodies))
    )
    return block(types, body, [(f"%r{at}", f"tensor<{type}>") for at, type in enumerate(types)])


def groups(found: Kernels) -> list[int]:
    """The number of values of each collective."""
    return [len(kernel.writes) for kernel in found.kernels if kernel.root.traffic is not None]


@pytest.mark.parametrize(
    ("sizes", "expected"),
    [
        ([4 * KIB] * 10, [4, 4, 2]),  # 16 KiB each, at most 64 together
        ([4 * KIB] * 4, [4]),
        ([4 * KIB, 32 * KIB, 4 * KIB], [2, 1]),  # one that is too large alone stays alone, and ends no group
        ([4 * KIB, 14 * KIB, 4 * KIB], [1, 1, 1]),  # the group that does not take the next one ends
    ],
)
def test_sums_are_joined_up_to_a_size(sizes: list[int], expected: list[int]) -> None:
    assert sorted(groups(sums(sizes)), reverse=True) == expected


def test_a_joined_collective_has_the_bytes_of_its_parts() -> None:
    (counted,) = count_kernels(sums([4 * KIB, 8 * KIB]))
    traffic = counted.op.traffic
    assert traffic is not None and traffic.bytes_before == traffic.bytes_after == 48 * KIB
    assert counted.sent_bytes == sum(one.sent_bytes for one in count_kernels(sums([4 * KIB])) * 3)


def test_sums_of_other_types_or_kinds_are_not_joined() -> None:
    assert groups(sums([8, 8, 8, 8], ["f32", "bf16", "f32", "bf16"])) == [2, 2]
    assert groups(sums([8, 8], bodies=["add", "maximum"])) == [1, 1]


def test_gathers_of_other_types_are_joined() -> None:
    body = gathered("g0", "%a0", 8) + gathered("g1", "%a1", 8, "bf16")
    found = block(["8xf32", "8xbf16"], body, [("%g0", "tensor<16xf32>"), ("%g1", "tensor<16xbf16>")])
    assert groups(found) == [2]


def test_one_that_waits_for_another_is_not_joined_to_it() -> None:
    body = reduced("r0", "%a0", 8) + reduced("r1", "%r0", 8) + reduced("r2", "%a0", 8)
    results = [(f"%r{at}", "tensor<8xf32>") for at in range(3)]
    found = block(["8xf32"], body, results)
    assert sorted(groups(found)) == [1, 2]
    assert_in_order(found)


def test_groups_do_not_wait_for_each_other() -> None:
    """Joined are r0 with r2, or g1 with g0; with both, each would wait for the other."""
    body = (
        reduced("r0", "%a0", 16)
        + gathered("g0", "%r0", 16)
        + gathered("g1", "%a1", 16)
        + "%h = stablehlo.slice %g1 [0:16] : (tensor<32xf32>) -> tensor<16xf32>\n"
        + reduced("r2", "%h", 16)
    )
    results = [("%g0", "tensor<32xf32>"), ("%r2", "tensor<16xf32>"), ("%g1", "tensor<32xf32>")]
    found = block(["16xf32", "16xf32"], body, results)
    assert sorted(groups(found)) == [1, 1, 2]
    assert_in_order(found)


def assert_in_order(found: Kernels) -> None:
    made = set(found.arguments)
    for kernel in found.kernels:
        assert made.issuperset(kernel.reads), "a kernel reads what is computed later"
        made.update(kernel.writes)


def test_the_check_of_the_order_can_fail() -> None:
    found = sums([8])
    with pytest.raises(AssertionError, match="later"):
        assert_in_order(found._replace(kernels=found.kernels[::-1]))


def test_loops_have_joined_collectives_too() -> None:
    body = (
        """%zero = stablehlo.constant dense<0> : tensor<i32>
        %l:3 = stablehlo.while(%i = %zero, %x = %a0, %y = %a1) : tensor<i32>, tensor<8xf32>, tensor<8xf32>
"""
        + FIVE_ROUNDS
        + reduced("r0", "%x", 8)
        + reduced("r1", "%y", 8)
        + "stablehlo.return %j, %r0, %r1 : tensor<i32>, tensor<8xf32>, tensor<8xf32> }\n"
    )
    found = block(["8xf32", "8xf32"], body, [("%l#1", "tensor<8xf32>"), ("%l#2", "tensor<8xf32>")])
    (counted,) = count_kernels(found)
    assert (counted.times, counted.is_exact, len(counted.op.results)) == (5, True, 2)
