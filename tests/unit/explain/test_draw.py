"""Drawings: which device holds which block, as JAX draws it where JAX can."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from contextlib import redirect_stdout
from itertools import pairwise
from xml.etree import ElementTree

import jax
import numpy as np
import pytest
from jax.sharding import NamedSharding, PartitionSpec

import pyshardy
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import ShardyError
from pyshardy.explain.draw import Drawing, draw
from pyshardy.explain.draw_svg import picture
from pyshardy.explain.draw_text import BLOCK_COLOURS, colour_of, coloured_text
from pyshardy.explain.panels import Panels

P = PartitionSpec


def parts(drawing: pyshardy.Drawing) -> tuple[str, Panels]:
    """What the renderers of a drawing take."""
    return drawing.title, drawing.panels


def of_jax(*spec: object) -> NamedSharding:
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:8]).reshape(4, 2), ("data", "model"))
    return NamedSharding(mesh, P(*spec))


def cells(text: str) -> list[list[frozenset[int]]]:
    """The devices of every cell of a table of JAX's or ours, by row."""
    rows = []
    for line in text.splitlines():
        found = [re.sub(r"[A-Z]+", "", cell).strip() for cell in line.split("│")[1:-1]]
        if any(found):
            rows.append([frozenset(map(int, cell.split(","))) for cell in found])
    return rows


def drawn_by_jax(sharding: NamedSharding, shape: Sequence[int]) -> str:
    stream = io.StringIO()
    with redirect_stdout(stream):
        jax.debug.visualize_sharding(tuple(shape), sharding, use_color=False)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("spec", "shape"),
    [
        (("data", "model"), (16, 8)),
        (("model", "data"), (16, 8)),
        ((None, "data"), (16, 8)),
        (("model",), (16, 8)),
        ((("data", "model"),), (16, 8)),
        ((("model", "data"), None), (16, 8)),
        ((None, None), (16, 8)),
        (("data",), (16,)),
        ((("model", "data"),), (64,)),
    ],
)
def test_drawings_agree_with_those_of_jax(spec: tuple, shape: tuple[int, ...]) -> None:
    sharding = of_jax(*spec)
    expected = cells(drawn_by_jax(sharding, shape))
    assert expected
    assert cells(str(pyshardy.draw(sharding, shape))) == expected


def test_the_comparison_sees_a_difference() -> None:
    text = drawn_by_jax(of_jax("data", "model"), (16, 8))
    assert cells(text) != cells(str(pyshardy.draw(of_jax("model", "data"), (16, 8))))


MESHES = [[("x", 2)], [("x", 3)], [("x", 2), ("y", 4)], [("x", 8), ("y", 8)], [("x", 4), ("y", 4), ("z", 4)]]
SHARDINGS = [
    ('[{"x"}]', (16,)),
    ('[{"x"}, {}]', (16, 8)),
    ('[{}, {"x"}]', (16, 24)),
    ('[{}, {"x"}, {}]', (4, 24, 8)),
    ('[{"x"}, {}]', (7, 5)),
]


@pytest.mark.parametrize("axes", MESHES, ids=str)
@pytest.mark.parametrize(("text", "shape"), SHARDINGS)
def test_blocks_tile_the_tensor(axes: list[tuple[str, int]], text: str, shape: tuple[int, ...]) -> None:
    mesh = Mesh(axes)
    drawing = pyshardy.draw(parse_sharding(f"<@m, {text}>"), shape, mesh)
    covered = np.zeros(shape, int)
    for block in drawing.blocks:
        covered[tuple(slice(*one) for one in block.ranges)] += 1
    assert (covered == 1).all()
    devices = [device for block in drawing.blocks for device in block.devices]
    assert len(devices) == len(set(devices)) <= mesh.size
    assert sum(len(row) for _, rows in drawing.panels for row in rows) == len(drawing.blocks)
    assert len({len(line) for line in str(drawing).splitlines()[2:] if "│" in line or "─" in line}) == 1


def test_text_of_two_dimensions() -> None:
    drawing = pyshardy.draw(parse_sharding('<@m, [{"x"}, {"y"}]>'), (4, 6), Mesh([("x", 2), ("y", 2)]))
    assert str(drawing).splitlines() == [
        'shape [4, 6], sharding [{"x"}, {"y"}]',
        "      0:3   3:6",
        "    ┌─────┬─────┐",
        "0:2 │  0  │  1  │",
        "    ├─────┼─────┤",
        "2:4 │  2  │  3  │",
        "    └─────┴─────┘",
    ]


def test_text_of_three_dimensions_has_a_panel_per_range_of_the_first() -> None:
    drawing = pyshardy.draw(parse_sharding('<@m, [{"x"}, {}, {"y"}]>'), (4, 6, 8), Mesh([("x", 2), ("y", 2)]))
    assert str(drawing).count("of dimension 0") == 2


def test_many_devices_of_a_block_are_written_short() -> None:
    drawing = pyshardy.draw(parse_sharding("<@m, [{}]>"), (4,), Mesh([("x", 64)]))
    assert "│ 0-63 │" in str(drawing)


def test_neighbours_have_different_colours_and_a_terminal_sees_them() -> None:
    for columns in range(1, 17):
        for row in range(4):
            colours = [colour_of(row, column, columns) for column in range(columns)]
            assert all(one != other for one, other in pairwise(colours))
            assert all(colours[column] != colour_of(row + 1, column, columns) for column in range(columns))
    text = coloured_text(*parts(pyshardy.draw(of_jax("data"), (16,))))
    red, green, blue = (int(BLOCK_COLOURS[0][place : place + 2], 16) for place in (1, 3, 5))
    assert f"48;2;{red};{green};{blue}m" in text
    assert re.sub(r"\x1b\[[\d;]*m", "", text) == str(pyshardy.draw(of_jax("data"), (16,)))


@pytest.mark.parametrize("shape", [(16,), (16, 8), (16, 8, 4)])
def test_svg_has_every_block_once_and_none_overlap(shape: tuple[int, ...]) -> None:
    drawing = pyshardy.draw(of_jax("data", *[None] * (len(shape) - 2), *["model"] * (len(shape) > 1)), shape)
    root = ElementTree.fromstring(drawing._repr_svg_())
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        tuple(float(one.attrib[name]) for name in ("x", "y", "width", "height")) for one in root.iter(f"{space}rect")
    ]
    assert len(boxes) == len(drawing.blocks)
    _, _, width, height = map(float, root.attrib["viewBox"].split())
    for number, (x, y, wide, high) in enumerate(boxes):
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height
        for left, top, other_wide, other_high in boxes[:number]:
            apart = x >= left + other_wide - 0.2 or left >= x + wide - 0.2
            assert apart or y >= top + other_high - 0.2 or top >= y + high - 0.2
    assert "script" not in drawing._repr_svg_()


def test_svg_escapes_names() -> None:
    drawing = Drawing("<b>&", (4,), pyshardy.draw(of_jax(), (4,)).blocks)
    assert "<b>" not in drawing._repr_svg_()


@pytest.mark.parametrize(
    ("sharding", "shape", "message"),
    [
        ("data", (4,), "got a str, needed a TensorSharding, or a sharding of JAX"),
        (parse_sharding("<@m, [{}]>"), (4,), "got a sharding on the mesh 'm', needed that mesh as `mesh`"),
        (parse_sharding("<@m, [{}]>").with_mesh(Mesh([("x", 2)])), (4, 4), "needed 2 dimensions in both"),
        (parse_sharding("<@m, [{}]>").with_mesh(Mesh([("x", 128)])), (4,), "got 128 devices, needed at most 64"),
        (parse_sharding("<@m, [{}]>"), "x", "got 'x', needed a shape, such as (8, 4)"),
        (parse_sharding("<@m, [{}]>"), (), "got the shape (), needed one to 3 dimensions"),
        (parse_sharding("<@m, [{}]>"), (0,), "got the shape (0,), needed one to 3 dimensions"),
    ],
)
def test_what_cannot_be_drawn_is_refused(sharding: object, shape: tuple[int, ...], message: str) -> None:
    with pytest.raises(ShardyError, match=re.escape(message)):
        pyshardy.draw(sharding, shape)


def places_of_texts(drawing: Drawing) -> list[tuple[str, float, float, float, float]]:
    """The texts of a picture with the rectangles that they take: left, top, right, bottom."""
    found = []
    for one in picture(*parts(drawing)).texts:
        width = len(one.text) * 6.8
        left = one.x - {"start": 0, "middle": width / 2, "end": width}[one.anchor]
        found.append((one.text, left, one.y - 10, left + width, one.y + 2))
    return found


def unreadable(texts: list[tuple[str, float, float, float, float]]) -> list[str]:
    """Texts that are cut at the left or the top, or that another one covers."""
    found = [text for text, left, top, _, _ in texts if left < 0 or top < 0]
    for at, (text, left, top, right, bottom) in enumerate(texts):
        for other, its_left, its_top, its_right, its_bottom in texts[:at]:
            if left < its_right and its_left < right and top < its_bottom and its_top < bottom:
                found.append(f"{text} over {other}")
    return found


@pytest.mark.parametrize("shape", [(4096,), (2048, 16384), (1000, 2048, 131072), (8, 8, 8)])
def test_texts_of_a_picture_are_whole_and_apart(shape: tuple[int, ...]) -> None:
    mesh = Mesh([("x", 2), ("y", 4), ("z", 2)])
    sharding = TensorSharding(mesh, [DimSharding([axis]) for axis in ("x", "y", "z")[: len(shape)]])
    assert unreadable(places_of_texts(draw(sharding, shape))) == []


def test_a_text_over_another_is_noticed() -> None:
    assert unreadable([("a", 0, 0, 10, 10), ("b", 5, 5, 15, 15), ("c", -1, 50, 5, 60)]) == ["c", "b over a"]


def test_a_value_of_a_result_is_drawn_by_its_name() -> None:
    result = pyshardy.propagate("""
    sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<2xf32>)
        -> (tensor<8x4xf32>, tensor<2xf32>) {
      %0 = stablehlo.tanh %a : tensor<8x4xf32>
      return %0, %b : tensor<8x4xf32>, tensor<2xf32>
    }""")
    sharding = parse_sharding('<@mesh, [{"x"}, {}]>')
    assert str(draw(result, "tanh")) == str(draw(sharding, (8, 4), Mesh([("x", 2)])))
    assert "0,1" in str(draw(result, "arg1"))
    with pytest.raises(ShardyError, match="no value|nothing|needed"):
        draw(result, "nobody")
    with pytest.raises(ShardyError, match="got 'x', needed a shape"):
        draw(3, "x")
