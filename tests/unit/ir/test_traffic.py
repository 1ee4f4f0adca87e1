"""Reading the collectives of per-device programs."""

from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.devices import replica_groups
from pyshardy.core.mesh import Mesh
from pyshardy.costing.traffic import CollectiveRow
from pyshardy.ir import device_groups
from pyshardy.ir.module import Module
from pyshardy.ir.shardings import ModuleMeshes
from pyshardy.ir.traffic import collectives_of
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older StableHLO has no groups along axes")

MESHES = {"mesh": Mesh([("x", 2), ("y", 4)])}
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


def rows(body: str, rest: str = "", meshes: ModuleMeshes = MESHES) -> list[CollectiveRow]:
    module = Module.parse(f"func.func @main(%a: {T}) {{\n{body}\nreturn\n}}\n{rest}")
    return collectives_of(module.root, meshes)


def row(body: str, meshes: ModuleMeshes = MESHES, rest: str = "") -> CollectiveRow:
    (found,) = rows(f"%0 = {body}", rest, meshes)
    return found


@pytest.mark.parametrize(
    ("reader", "ops"),
    [("axes_of_groups", [gather(), gather(), gather(f"{ALONG_X} : tensor<4x2xi64>", "tensor<8x8xf32>"), gather()]),
     ("axes_moved", [permute("[[0, 1], [1, 0]]"), permute("[[0, 4], [4, 0]]"), permute("[[0, 1], [1, 0]]")])],
)  # fmt: skip
def test_groups_that_collectives_share_are_read_once(
    reader: str, ops: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    original = getattr(device_groups, reader)
    monkeypatch.setattr(device_groups, reader, lambda *args: read.append(args) or original(*args))
    found = rows("\n".join(f"%{number} = {op}" for number, op in enumerate(ops)))
    assert [one.axes for one in found] == [row(op).axes for op in ops]
    assert len(read) == 2 + len(ops)  # two distinct ones, and each op by itself


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


def test_a_ragged_all_to_all_counts_as_if_all_devices_got_alike() -> None:
    counts = ", ".join(["tensor<2xi32>"] * 4)
    (found,) = rows(
        f"""%n = stablehlo.constant dense<4> : tensor<2xi32>
        %0 = stablehlo.custom_call @ragged_all_to_all(%a, %a, %n, %n, %n, %n) {{api_version = 4 : i32,
          backend_config = {{channel_id = 1 : i64, replica_groups = {ALONG_X} : tensor<4x2xi64>}}}}
          : ({T}, {T}, {counts}) -> {T}"""
    )
    assert (found.kind, found.axes, found.group_size) == ("ragged_all_to_all", ('"x"',), 2)
    assert found.sent_bytes_per_device == 4 * 8 * 4 // 2


def test_another_custom_call_is_no_collective() -> None:
    assert rows(f"%0 = stablehlo.custom_call @mine(%a) : ({T}) -> {T}") == []


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
    found = row(gather("dense<[[0]]> : tensor<1x1xi64>", T), {})
    assert (found.mesh, found.axes, found.group_size, found.sent_bytes_per_device) == (None, None, 1, 0)


SEVERAL = {
    "empty": Mesh([]),
    "mesh": Mesh([("x", 2), ("y", 4)]),
    "n": Mesh([("x", 4), ("q", 2)]),
    "turned": Mesh([("x", 4), ("q", 2)], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]),
}


@pytest.mark.parametrize(
    ("groups", "mesh", "axes"),
    [
        ("[[0, 1, 2, 3], [4, 5, 6, 7]]", "@mesh", ('"y"',)),
        ("[[0, 2, 4, 6], [1, 3, 5, 7]]", "@n", ('"x"',)),
        ("[[0, 4, 1, 5], [2, 6, 3, 7]]", "@turned", ('"x"',)),
        ("[[0, 2, 1, 3], [4, 6, 5, 7]]", "@n", ('"q"', '"x":(2)2')),
        ("[[0, 3, 1, 2], [4, 5, 6, 7]]", None, None),
    ],
)
def test_lists_of_devices_are_groups_of_the_mesh_whose_axes_they_are(
    groups: str, mesh: str | None, axes: tuple[str, ...] | None
) -> None:
    if mesh == "@turned":
        groups = str([list(group) for group in replica_groups((AxisRef("x"),), SEVERAL["turned"])])
    found = row(gather(f"dense<{groups}> : tensor<2x4xi64>"), SEVERAL)
    assert (found.mesh, found.axes, found.group_size, found.sent_bytes_per_device) == (mesh, axes, 4, 3 * 128)


def test_a_permutation_moves_along_the_axes_of_the_mesh_that_needs_fewest() -> None:
    meshes = {"mesh": Mesh([("x", 2), ("y", 4)]), "n": Mesh([("p", 4), ("q", 2)])}
    assert [row(permute(pairs), meshes).mesh for pairs in ("[[0, 2], [2, 4]]", "[[0, 1]]")] == ["@n", "@n"]
    found = row(permute("[[0, 4]]"), meshes)
    assert (found.mesh, found.axes) == ("@mesh", ('"x"',))


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
      %r = stablehlo.slice %v [0:1, 0:1] : ({T}) -> tensor<1x1xf32>
      %x = stablehlo.reshape %r : (tensor<1x1xf32>) -> tensor<f32>
      %y = stablehlo.convert %x : (tensor<f32>) -> tensor<i32>
      %p = stablehlo.compare GT, %i, %y : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }} do {{
      {body}
      stablehlo.return %i, %v : tensor<i32>, {T}
    }}"""


@pytest.mark.parametrize("body", ["%0 = " + permute("[[0, 1]]"), f"%0 = func.call @once(%v) : ({T}) -> {T}"])
def test_a_loop_of_unknown_length_counts_as_one_round(body: str) -> None:
    (found,) = rows(loop(body), FUNCTIONS if "once" in body else "")
    assert (found.times, found.is_in_loop, found.is_lower_bound, found.total_bytes) == (1, True, True, 128)


def test_rounds_of_a_loop_multiply() -> None:
    counting = loop("%0 = func.call @once(%v) : " + f"({T}) -> {T}").replace("GT, %i, %y", "LT, %i, %n")
    counting = counting.replace(
        "stablehlo.return %i, %v", "%j = stablehlo.add %i, %n : tensor<i32>\nstablehlo.return %j, %v"
    )
    counting = counting.replace("%i = %n", "%i = %z").replace(
        "%q:2", "%z = stablehlo.constant dense<-7> : tensor<i32>\n%q:2"
    )
    (found,) = rows(counting, FUNCTIONS)
    assert (found.times, found.is_in_loop, found.is_lower_bound, found.total_bytes) == (4, True, False, 4 * 128)


def test_of_the_branches_of_a_conditional_the_one_that_sends_most_counts() -> None:
    found = rows(
        f"""%p = stablehlo.constant dense<true> : tensor<i1>
    %0 = "stablehlo.if"(%p) ({{
      %1 = {permute("[[0, 1]]")}
      stablehlo.return %1 : {T}
    }}, {{
      %1 = {gather(f"{ALONG_X} : tensor<4x2xi64>", "tensor<8x8xf32>")}
      %2 = func.call @twice(%a) : ({T}) -> {T}
      stablehlo.return %2 : {T}
    }}) : (tensor<i1>) -> {T}""",
        FUNCTIONS,
    )
    assert [(row.kind, row.times, row.is_counted) for row in found] == [
        ("collective_permute", 1, False), ("all_gather", 1, True), ("collective_permute", 1, True),
    ]  # fmt: skip


DECLARED = """sdy.mesh @"a b" = <["x"=3]>
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @n = <["x"=4, "q"=2]>
sdy.mesh @turned = <["x"=4, "q"=2], device_ids=[0, 2, 4, 6, 1, 3, 5, 7]>"""


@needs_newest
@pytest.mark.parametrize(
    ("mesh", "axes", "size"), [("@n", ["x"], 4), ("@turned", ["q"], 2), ("@mesh", ["x", "y"], 8), ('@"a b"', ["x"], 3)]
)
def test_groups_along_axes_are_those_of_the_mesh_they_name(mesh: str, axes: list[str], size: int) -> None:
    """One that shardings are on, or one that stands in the module alone."""
    listed = ", ".join(f'#stablehlo.axis_ref<name = "{axis}">' for axis in axes)
    groups = f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{listed}]>"
    found = row(gather(groups, f"tensor<{4 * size}x8xf32>"), SEVERAL, DECLARED)
    assert (found.mesh, found.axes, found.group_size) == (mesh, tuple(f'"{axis}"' for axis in axes), size)
    assert found.sent_bytes_per_device == (size - 1) * 128
