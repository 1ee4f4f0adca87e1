from __future__ import annotations

import pytest

from pyshardy.core.notation import parse_sharding
from pyshardy.ir.diagnostics import PassError
from pyshardy.ir.module import Module
from pyshardy.ir.nodes import Op, walk
from pyshardy.ir.shardings import module_meshes
from pyshardy.transforms.reshards.single_device import (
    global_mesh,
    is_on_single_device,
    reshard_to_device,
    single_device_of,
)
from support.after_pass import on, tensor_args
from support.programs_8x8 import MESHES, T, two_results

D0, D1, MINE = "<@d0, []>", "<@d1, []>", '[{"a"}, {}]'
ROOT = Module.parse(f"{MESHES}sdy.mesh @empty = <[]>").root
ALL_MESHES = module_meshes(ROOT)


def call_with(*shardings: str, given: str | None = None) -> Op:
    root = Module.parse(
        f"{MESHES}func.func @main({tensor_args(x=given)}) -> {T} {{\n  {two_results(*shardings)}\n"
        f"  %1 = stablehlo.add %0#0, %0#1 : {T}\n  return %1 : {T}\n}}"
    ).copy_root()
    return next(op for op in walk(root) if op.name == "stablehlo.custom_call")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, False),
        (D0, True),
        ("<@empty, []>", False),
        ("<@m, []>", False),
        ('<@m, [{"a"}]>', False),
        ("<mesh<[], device_ids=[5]>, []>", True),
    ],
)
def test_shardings_on_one_device(text: str | None, expected: bool) -> None:
    assert is_on_single_device(None if text is None else parse_sharding(text), ALL_MESHES) is expected


@pytest.mark.parametrize(
    ("names", "expected"), [((), None), (("d0", "empty"), None), (("d0", "n", "m"), "n"), (("m", "n"), "m")]
)
def test_the_global_mesh_is_the_first_with_axes(names: tuple[str, ...], expected: str | None) -> None:
    assert global_mesh({name: ALL_MESHES[name] for name in names}) == expected


@pytest.mark.parametrize(
    ("shardings", "device"), [((MINE, MINE), None), ((D0, D0), D0), ((D0, MINE), D0), ((MINE, D1), D1)]
)
def test_the_device_of_an_op_is_that_of_its_results(shardings: tuple[str, str], device: str | None) -> None:
    expected = None if device is None else parse_sharding(device)
    assert single_device_of(call_with(*shardings), ALL_MESHES) is expected


def test_results_on_different_devices_are_refused() -> None:
    with pytest.raises(PassError) as caught:
        single_device_of(call_with(D0, D1), ALL_MESHES)
    assert caught.value.diagnostic.message == "'stablehlo.custom_call' op has results on different single devices"


def _chain(op: Op) -> list[str]:
    block = op.block
    assert block is not None
    return [
        f"reshard {inner.attrs['sharding']}" if inner.name == "sdy.reshard" else inner.name.partition(".")[2]
        for inner in block
    ][:-1]


TO_MESH, TO_D0, TO_MINE = "reshard <@m, [{}, {}]>", f"reshard {D0}", 'reshard <@m, [{"a"}, {}]>'


@pytest.mark.parametrize(
    ("given", "shardings", "body"),
    [
        (MINE, (D0, D0), [TO_MESH, TO_D0, "custom_call", TO_MESH, TO_MESH, "add"]),
        ("[{}, {}]", (D0, D0), [TO_D0, "custom_call", TO_MESH, TO_MESH, "add"]),
        (None, (D0, D0), [TO_D0, "custom_call", TO_MESH, TO_MESH, "add"]),
        (D0, (D0, D0), ["custom_call", TO_MESH, TO_MESH, "add"]),
        (D1, (D0, D0), [TO_MESH, TO_D0, "custom_call", TO_MESH, TO_MESH, "add"]),
        (
            "<@n, [{}, {}]>",
            (D0, D0),
            [TO_MESH, TO_D0, "custom_call", TO_MESH, TO_MESH, "add"],
        ),
        (D0, (D0, MINE), ["custom_call", TO_MESH, TO_MESH, TO_MINE, "add"]),
        (D0, (MINE, D0), ["custom_call", TO_MESH, TO_MINE, TO_MESH, "add"]),
    ],
)
def test_operands_and_results_go_by_way_of_the_global_mesh(
    given: str | None, shardings: tuple[str, str], body: list[str]
) -> None:
    op = call_with(*shardings, given=given)
    reshard_to_device(op, parse_sharding(D0), ALL_MESHES)
    assert _chain(op) == body
    assert op.attrs["sdy.sharding"] == (parse_sharding(D0),) * 2
    assert {user.name for result in op.results for user in result.users()} == {"sdy.reshard"}


def test_without_a_global_mesh_nothing_changes() -> None:
    op = call_with(D0, D0, given=D0)
    meshes = {name: mesh for name, mesh in ALL_MESHES.items() if name.startswith("d")}
    reshard_to_device(op, parse_sharding(D0), meshes)
    assert _chain(op) == ["custom_call", "add"]


def test_values_that_are_no_tensors_stay() -> None:
    text = f"%0:2 = stablehlo.custom_call @f(%t) {on(D0, D0)} : (!stablehlo.token) -> ({T}, !stablehlo.token)"
    root = Module.parse(f"{MESHES}func.func @main(%t: !stablehlo.token) {{\n  {text}\n  return\n}}").copy_root()
    op = next(op for op in walk(root) if op.name == "stablehlo.custom_call")
    reshard_to_device(op, parse_sharding(D0), ALL_MESHES)
    assert _chain(op) == ["custom_call", TO_MESH]
