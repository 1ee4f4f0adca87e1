"""Reading the collectives of per-device programs."""

from __future__ import annotations

import pytest

from pyshardy.core.mesh import Mesh
from pyshardy.ir.module import Module
from pyshardy.ir.traffic import collectives_of
from pyshardy.report.traffic import CollectiveRow

MESH = Mesh([("x", 2), ("y", 4)])
T = "tensor<4x8xf32>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>"
ADD = """({ ^bb0(%l: tensor<f32>, %m: tensor<f32>): %s = stablehlo.add %l, %m : tensor<f32>
  stablehlo.return %s : tensor<f32> })"""
ALONG_Y, ALONG_X = "dense<[[0, 1, 2, 3], [4, 5, 6, 7]]>", "dense<[[0, 4], [1, 5], [2, 6], [3, 7]]>"


def gather(groups: str = f"{ALONG_Y} : tensor<2x4xi64>", result: str = "tensor<16x8xf32>", operand: str = "%a") -> str:
    return f'"stablehlo.all_gather"({operand}) <{{all_gather_dim = 0 : i64, {CHANNEL}, replica_groups = {groups}, use_global_device_ids}}> : ({T}) -> {result}'


def permute(pairs: str) -> str:
    count = pairs.count("[") - 1
    return f'"stablehlo.collective_permute"(%a) <{{{CHANNEL}, source_target_pairs = dense<{pairs}> : tensor<{count}x2xi64>}}> : ({T}) -> {T}'


def rows(body: str, rest: str = "", mesh: Mesh | None = MESH) -> list[CollectiveRow]:
    module = Module.parse(f"func.func @main(%a: {T}) {{\n{body}\nreturn\n}}\n{rest}")
    return collectives_of(module.root, mesh)


def row(body: str, mesh: Mesh | None = MESH) -> CollectiveRow:
    (found,) = rows(f"%0 = {body}", mesh=mesh)
    return found


def test_a_gather() -> None:
    found = row(gather() + ' loc("jit(f)/dot/reshard of operand 1 of stablehlo.dot"("f.py":3:4))')
    assert (found.kind, found.axes, found.group_size, found.sent_bytes_per_device) == (
        "all_gather",
        ('"y"',),
        4,
        3 * 128,
    )
    assert (found.shape_before, found.shape_after, found.dtype) == ((4, 8), (16, 8), "f32")
    assert (found.op, found.cause, found.source) == (
        "jit(f)/dot",
        "reshard of operand 1 of stablehlo.dot",
        ("f.py", 3, 4),
    )
    assert (found.times, found.is_in_loop) == (1, False)


@pytest.mark.parametrize(
    ("op", "kind", "sent"),
    [
        (f'"stablehlo.all_reduce"(%a) <{{{CHANNEL}, replica_groups = {ALONG_X} : tensor<4x2xi64>, use_global_device_ids}}> {ADD} : ({T}) -> {T}',
         "all_reduce", 128),
        (f'"stablehlo.reduce_scatter"(%a) <{{{CHANNEL}, replica_groups = {ALONG_X} : tensor<4x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}}> {ADD} : ({T}) -> tensor<2x8xf32>',
         "reduce_scatter", 64),
        (f'"stablehlo.all_to_all"(%a) <{{{CHANNEL}, concat_dimension = 1 : i64, replica_groups = {ALONG_X} : tensor<4x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}}> : ({T}) -> tensor<2x16xf32>',
         "all_to_all", 64),
    ],
)  # fmt: skip
def test_kinds(op: str, kind: str, sent: int) -> None:
    found = row(op)
    assert (found.kind, found.axes, found.group_size, found.sent_bytes_per_device) == (kind, ('"x"',), 2, sent)


def test_a_permutation_moves_along_the_axes_in_which_its_ends_differ() -> None:
    found = row(permute("[[0, 1], [1, 0], [2, 3], [3, 2]]"))
    assert (found.kind, found.axes, found.group_size, found.sent_bytes_per_device) == (
        "collective_permute", ('"y":(2)2',), 2, 128,
    )  # fmt: skip
    assert row(permute("[[0, 7], [7, 0]]")).axes == ('"x"', '"y"')


def test_groups_of_no_axes_are_counted() -> None:
    found = row(gather("dense<[[0, 3], [1, 2], [4, 7], [5, 6]]> : tensor<4x2xi64>", "tensor<8x8xf32>"))
    assert (found.axes, found.group_size) == (None, 2)


def test_without_a_mesh_there_are_no_axes() -> None:
    found = row(gather("dense<[[0]]> : tensor<1x1xi64>", T), mesh=None)
    assert (found.axes, found.group_size, found.sent_bytes_per_device) == ((), 1, 0)


CALLS = f"""
  %0 = func.call @once(%a) : ({T}) -> {T}
  %1 = func.call @twice(%0) : ({T}) -> {T}
  %2 = func.call @twice(%1) : ({T}) -> {T}"""
FUNCTIONS = f"""
func.func private @twice(%a: {T}) -> {T} {{ %0 = {permute("[[0, 1]]")}
  return %0 : {T} }}
func.func private @once(%a: {T}) -> {T} {{ %0 = func.call @twice(%a) : ({T}) -> {T}
  return %0 : {T} }}
func.func private @never(%a: {T}) -> {T} {{ %0 = {permute("[[0, 2]]")}
  return %0 : {T} }}"""


def test_calls_are_counted_and_what_is_never_called_is_not() -> None:
    (found,) = rows(CALLS, FUNCTIONS)
    assert (found.times, found.is_in_loop, found.total_bytes) == (3, False, 3 * 128)


def loop(body: str) -> str:
    return f"""%n = stablehlo.constant dense<3> : tensor<i32>
    %q:2 = stablehlo.while(%i = %n, %v = %a) : tensor<i32>, {T} cond {{
      %p = stablehlo.compare GT, %i, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      {body}
      stablehlo.return %i, %v : tensor<i32>, {T}
    }}"""


@pytest.mark.parametrize("body", ["%0 = " + permute("[[0, 1]]"), f"%0 = func.call @once(%v) : ({T}) -> {T}"])
def test_loops_are_marked(body: str) -> None:
    (found,) = rows(loop(body), FUNCTIONS if "once" in body else "")
    assert (found.times, found.is_in_loop) == (1, True)
