from __future__ import annotations

import pytest

from pyshardy.core.axes import AxisRef
from pyshardy.core.hlo_sharding import HloKind, is_named, parse_hlo_shardings, transposed_iota
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import ReductionKind
from pyshardy.errors import NotationError


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{replicated}", HloKind.REPLICATED),
        ("{manual}", HloKind.MANUAL),
        ("{unknown}", HloKind.UNKNOWN),
        ("{maximal device=3}", HloKind.ONE_DEVICE),
        ("{single_device[device_id=3]}", HloKind.ONE_DEVICE),
        ("{devices=[2]<=[2]}", HloKind.TILED),
        ("{mesh['x'=2], [{'x'}]}", HloKind.NAMED),
        ("{mesh['x'=2], replicated}", HloKind.REPLICATED),
        ("{mesh['x'=2], manual}", HloKind.MANUAL),
        ('{replicated metadata={op_name="a}b"}}', HloKind.REPLICATED),
    ],
)
def test_forms(text: str, kind: HloKind) -> None:
    (found,) = parse_hlo_shardings(text)
    assert found.kind is kind
    assert found.device == (3 if kind is HloKind.ONE_DEVICE else 0)
    assert found.mesh == (Mesh([("x", 2)]) if "mesh" in text else None)
    assert is_named(text) == ("mesh[" in text or "single" in text)


@pytest.mark.parametrize(
    ("text", "tiles", "subgroups", "devices"),
    [
        ("{devices=[2,2]<=[4]}", (2, 2), (), (0, 1, 2, 3)),
        ("{devices=[2,2]0,3,1,2}", (2, 2), (), (0, 3, 1, 2)),
        ("{devices=[2,1,2]<=[2,2]T(1,0) last_tile_dim_replicate}", (2, 1), (("replicated", 2),), (0, 2, 1, 3)),
        ("{devices=[1,2,2]<=[4] last_tile_dims={manual, replicated}}", (1,), (("manual", 2), ("replicated", 2)),
         (0, 1, 2, 3)),
        ("{devices=[1,2,2]<=[4] last_tile_dims={replicated, unreduced}}", (1,), (("replicated", 2), ("unreduced", 2)),
         (0, 1, 2, 3)),
        ("{devices=[1]0}", (1,), (), (0,)),
    ],
)  # fmt: skip
def test_tilings(
    text: str, tiles: tuple[int, ...], subgroups: tuple[tuple[str, int], ...], devices: tuple[int, ...]
) -> None:
    (found,) = parse_hlo_shardings(text)
    assert (found.tiles, found.subgroups, found.devices) == (tiles, subgroups, devices)
    assert found.subgroup_size("manual") == dict(subgroups).get("manual", 1)


def test_named_axes() -> None:
    text = "{mesh['data'=4,'it\\'s'=2], [{'data':(2)2, 'it\\'s'}, {?}], replicated={'data':(1)2}}"
    (found,) = parse_hlo_shardings(text)
    expected = """<mesh<["data"=4, "it's"=2]>, [{"data":(2)2, "it's"}, {?}], replicated={"data":(1)2}>"""
    assert found.named is parse_sharding(expected)
    (other,) = parse_hlo_shardings("{mesh['x'=4,'y'=2], [{}], unreduced={'x'}, manual={'y'}}")
    assert other.named is not None
    assert (other.named.unreduced, other.manual) == ((AxisRef("x"),), (AxisRef("y"),))


@pytest.mark.parametrize("order", ["(3,2,1,0)", "([2,2]T(1,0))"])
def test_the_order_of_devices_of_a_mesh(order: str) -> None:
    (found,) = parse_hlo_shardings("{mesh['x'=4], device_ids=" + order + ", [{'x'}]}")
    assert found.mesh == Mesh([("x", 4)], (3, 2, 1, 0) if "3" in order else (0, 2, 1, 3))


def test_lists_of_many_values() -> None:
    one = "{mesh['x'=2], manual}"
    found = parse_hlo_shardings("{" + ", ".join([one] * 5 + ["/*index=5*/" + one, "{replicated}"]) + "}")
    assert [sharding.mesh is None for sharding in found] == [False] * 6 + [True]
    assert parse_hlo_shardings("{}") == ()


def test_groups_and_reductions() -> None:
    assert parse_hlo_shardings("{unknown shard_as 7}")[0].group == 7
    text = '{devices=[1,2]<=[2] last_tile_dims={unreduced} metadata={op_type="sdy::reduction_op" op_name="MAX"}}'
    assert parse_hlo_shardings(text)[0].reduction is ReductionKind.MAX


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("replicated", "needed '{'"),
        ("{replicated", "needed '}'"),
        ("{replicated} x", "needed the end of the text"),
        ("{nothing}", "needed 'replicated', 'manual', 'unknown', 'maximal', 'devices=' or 'mesh['"),
        ("{unreduced}", "got unreduced alone, needed a sharding that says on which devices it is unreduced"),
        ("{devices=[2,2]<=[5]}", "needed a grid of as many tiles as there are devices, each once"),
        ("{devices=[2,2]0,1,2,2}", "needed a grid of as many tiles as there are devices, each once"),
        ("{devices=[0]<=[1]}", "got [0], needed sizes of at least 1"),
        ("{devices=[2]<=[2] last_tile_dims={replicated, manual}}", "needed a grid of as many tiles"),
        ("{devices=[2]<=[2] last_tile_dims={open}}", "needed 'replicated', 'manual' or 'unreduced'"),
        ("{devices=[4]<=[2,2]T(0,0)}", "needed sizes of at least 1 and an order of their dimensions"),
        ("{mesh[x=2], replicated}", "needed an axis name in single quotes"),
        ("{mesh['x'=2], [{'x'}], open={'x'}}", "needed 'replicated', 'unreduced' or 'manual', each at most once"),
        ("{mesh['x'=2], [{'x'}, {'x'}]}", 'got axis "x" twice, needed every axis at most once'),
        ("{mesh['x'=2,'x'=2], [{'x'}]}", "needed unique axis names"),
        ("{replicated metadata={", "needed '}'"),
        (f"{{devices=[{2**62},1]<=[{2**62}]}}", f"got {2**62} devices, needed at most 1048576 devices"),
        (
            f"{{mesh['x'={2**62}],device_ids=([{2**62}]), [{{'x'}}]}}",
            f"got {2**62} devices, needed at most 1048576 devices",
        ),
    ],
)
def test_what_is_no_sharding(text: str, message: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_hlo_shardings(text)
    assert str(caught.value).startswith("reading an HLO sharding: ")
    assert message in str(caught.value)


def test_transposed_iota() -> None:
    assert transposed_iota((2, 3), (0, 1)) == tuple(range(6))
    assert transposed_iota((2, 2, 2), (2, 0, 1)) == (0, 2, 4, 6, 1, 3, 5, 7)
