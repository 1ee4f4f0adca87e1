"""Reading the devices that work together."""

from __future__ import annotations

import pytest
from jaxlib.mlir import ir

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.errors import InvalidModuleError, InvalidShardingError
from pyshardy.ir.context import make_context
from pyshardy.ir.device_groups import Grouping, grouping, is_along_axes, mesh_and_axes, moves
from support.reference import jaxlib_version

needs_newest = pytest.mark.skipif(jaxlib_version() < (0, 12), reason="older StableHLO has no groups along axes")
MESH = Mesh([("x", 2), ("y", 4)])


def groups(mesh: str = "@m", axes: str = '#stablehlo.axis_ref<name = "y">') -> str:
    return f"#stablehlo.replica_group_mesh_axes<mesh = {mesh}, axes = [{axes}]>"


def test_the_mesh_is_named() -> None:
    assert mesh_and_axes(groups(), {"m": MESH}) == ("m", MESH, (AxisRef("y"),))
    assert mesh_and_axes(groups('@"a\\22 b"'), {'a" b': MESH})[0] == 'a" b'


def test_parts_of_axes() -> None:
    part = '#stablehlo.axis_ref<name = "y", sub_axis_info = (2)2>'
    assert mesh_and_axes(groups(axes=part), {"m": MESH})[2] == (AxisRef("y", 2, 2),)


def test_the_mesh_stands_there() -> None:
    text = groups('#stablehlo.mesh<axes=[<name = "y", size = 3>]>')
    assert mesh_and_axes(text, {}) == (None, Mesh([("y", 3)]), (AxisRef("y"),))


@needs_newest
def test_the_mesh_stands_there_with_the_order_of_its_devices() -> None:
    ids = [*range(1, 200), 0]
    text = groups(
        '#stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 50>, #stablehlo.mesh_axis<name = "y", size = 4>],'
        f" device_ids = dense<{ids}> : tensor<200xi64>>"
    )
    with make_context():
        attr = ir.Attribute.parse(text)
        assert is_along_axes(attr)
        assert mesh_and_axes(attr, {})[1] == Mesh([("x", 50), ("y", 4)], ids)
        assert grouping(attr, {}) == Grouping((AxisRef("y"),), None, 4)


def with_ids(type: str) -> str:
    axis = '#stablehlo.mesh_axis<name = "x", size = 2>'
    return groups(f"#stablehlo.mesh<axes = [{axis}], device_ids = dense<[1, 0]> : tensor<2x{type}>>", "")


@pytest.mark.parametrize("type", ["i8", "ui32", "si64", "index"])
def test_device_ids_of_any_type(type: str) -> None:
    with make_context():
        assert mesh_and_axes(ir.Attribute.parse(with_ids(type)), {})[1] == Mesh([("x", 2)], [1, 0])


def test_device_ids_of_an_unusual_width_are_refused() -> None:
    with make_context(), pytest.raises(InvalidModuleError) as caught:
        mesh_and_axes(ir.Attribute.parse(with_ids("i5")), {})
    message = "reading a mesh of StableHLO: got device ids of type i5, needed integers of 8, 16, 32 or 64 bits"
    assert str(caught.value) == message


def test_unknown_meshes_and_axes_are_refused() -> None:
    with pytest.raises(InvalidModuleError) as caught:
        mesh_and_axes(groups("@other"), {"m": MESH})
    assert str(caught.value) == (
        "reading the groups of devices of a collective: got axes of the unknown mesh @other, needed one of @m"
    )
    with pytest.raises(InvalidShardingError) as unknown:
        mesh_and_axes(groups(axes='#stablehlo.axis_ref<name = "z">'), {"m": MESH})
    assert str(unknown.value) == (
        "reading the groups of devices of a collective: got unknown axis name \"z\", needed one of 'x', 'y'"
    )


def test_lists_of_devices() -> None:
    with make_context():
        attr = ir.Attribute.parse("dense<[[0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>")
        assert not is_along_axes(attr)
        assert grouping(attr, {"small": Mesh([("a", 2)]), "m": MESH}) == Grouping((AxisRef("x"),), "m", 2)
        assert grouping(attr, {}) == Grouping(None, None, 2)
        assert moves(attr, {"small": Mesh([("a", 2)]), "m": MESH}) == Grouping((AxisRef("x"),), "m", 2)
        assert moves(attr, {}) == Grouping(None, None, 2)
