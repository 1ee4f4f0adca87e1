"""The drawings on the pages of concepts, from pyshardy's own values: `python docs/generate.py` writes `docs/drawings`.

Each is SVG as text. Only the pure half is used, so a drawing is the same with every version of jaxlib. Text and lines
take the colour of the page (`currentColor`); the shards have colours that are seen on light and on dark.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from pyshardy.core.boxes import Box, device_boxes, local_shape
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_mesh, parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.propagation.projection import project
from pyshardy.rules.notation import parse_rule
from pyshardy.rules.rule import Rule, factor_symbol

FOLDER = Path(__file__).parent / "drawings"
COLOURS = ("#3b82f6", "#f59e0b", "#10b981", "#ef4444", "#8b5cf6", "#06b6d4", "#ec4899", "#84cc16")
PRODUCT_BEFORE = ('[{"data"}, {}]', '[{}, {"model"}]', "[{?}, {?}]")
PRODUCT_AFTER = ('[{"data"}, {}]', '[{}, {"model"}]', '[{"data", ?}, {"model", ?}]')
"""The shardings of a product's operands and result before and after a step; a test compares them with a real one."""
LETTER = 7.3
"""Width of a letter of the font, in pixels."""
LINE = 18
STYLE = (
    "<style>\n"
    "svg { color: #1f2328; } text { fill: currentColor; font-family: ui-monospace, monospace; }\n"
    "@media (prefers-color-scheme: dark) { svg { color: #e6edf3; } }\n"
    "</style>\n"
)


@dataclass(frozen=True)
class Picture:
    """A part of a drawing: its size, and SVG elements from its upper left corner on."""

    width: float
    height: float
    body: str


def text(x: float, y: float, said: str, anchor: str = "start", size: int = 12) -> str:
    """A line of text."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">{escape(said, quote=False)}</text>\n'


def box(x: float, y: float, width: float, height: float, colour: str = "", opacity: float = 0.45) -> str:
    """A rectangle, filled with a colour if there is one."""
    fill = f'fill="{colour}" fill-opacity="{opacity:g}"' if colour else 'fill="none"'
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" {fill} '
        'stroke="currentColor" stroke-opacity="0.55"/>\n'
    )


def titled(title: str, picture: Picture) -> Picture:
    """A picture with a line above it."""
    width = max(picture.width, len(title) * LETTER)
    return Picture(width, picture.height + LINE, text(0, 12, title) + moved(picture, 0, LINE))


def moved(picture: Picture, x: float, y: float) -> str:
    """A picture somewhere else."""
    return f'<g transform="translate({x:g} {y:g})">\n{picture.body}</g>\n'


def beside(pictures: Sequence[Picture], gap: float = 28) -> Picture:
    """Pictures from left to right."""
    body, x = "", 0.0
    for picture in pictures:
        body += moved(picture, x, 0)
        x += picture.width + gap
    return Picture(x - gap, max(picture.height for picture in pictures), body)


def below(pictures: Sequence[Picture], gap: float = 22) -> Picture:
    """Pictures from top to bottom."""
    body, y = "", 0.0
    for picture in pictures:
        body += moved(picture, 0, y)
        y += picture.height + gap
    return Picture(max(picture.width for picture in pictures), y - gap, body)


def svg(picture: Picture) -> str:
    """A whole drawing."""
    width, height = picture.width + 16, picture.height + 16
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}">\n'
    return head + STYLE + moved(picture, 8, 8) + "</svg>\n"


# Meshes and shards


def mesh_grid(mesh: Mesh) -> Picture:
    """The devices of a mesh of two axes, the first axis downwards."""
    (row_name, rows), (column_name, columns) = mesh.axes
    left, size, body = len(row_name) * LETTER + 34, 54, ""
    for position, device in enumerate(mesh.device_order):
        row, column = mesh.coordinates(position)
        x, y = left + column * size, LINE + 16 + row * size
        body += box(x, y, size, size, COLOURS[device % len(COLOURS)]) + text(
            x + size / 2, y + size / 2 + 4, str(device), "middle", 14
        )
    for column in range(columns):
        body += text(left + (column + 0.5) * size, LINE + 10, str(column), "middle")
    for row in range(rows):
        body += text(left - 10, LINE + 16 + (row + 0.5) * size + 4, str(row), "end")
    body += text(left, 12, f'"{column_name}"') + text(0, LINE + 16 + rows * size / 2 + 4, f'"{row_name}"')
    return Picture(left + columns * size, LINE + 16 + rows * size, body)


def parts(sharding: TensorSharding, mesh: Mesh, shape: tuple[int, ...], unit: float = 16) -> Picture:
    """A tensor cut into its shards; each says which devices hold it."""
    holders: dict[Box, list[int]] = {}
    for device, part in device_boxes(sharding, mesh, shape).items():
        holders.setdefault(part, []).append(device)
    rows, columns = plane(shape)
    unit_x = max(unit, *(widest(part, devices) for part, devices in holders.items()))
    body = ""
    for part, devices in holders.items():
        (top, bottom), (left, right) = spans(part)
        x, y, width, height = left * unit_x, top * unit, (right - left) * unit_x, (bottom - top) * unit
        body += box(x, y, width, height, COLOURS[min(devices) % len(COLOURS)])
        body += text(x + width / 2, y + height / 2 + 4, named(devices), "middle")
    return Picture(columns * unit_x, rows * unit, body)


def held(sharding: TensorSharding, mesh: Mesh, shape: tuple[int, ...], unit: float = 9) -> Picture:
    """For every device the whole tensor, with the part filled that it holds."""
    rows, columns = plane(shape)
    pictures = []
    for device, part in device_boxes(sharding, mesh, shape).items():
        (top, bottom), (left, right) = spans(part)
        body = box(0, 0, columns * unit, rows * unit)
        body += box(left * unit, top * unit, (right - left) * unit, (bottom - top) * unit, COLOURS[device], 0.7)
        pictures.append(titled(f"{device}", Picture(columns * unit, rows * unit, body)))
    return beside(pictures, 14)


def plane(shape: tuple[int, ...]) -> tuple[int, int]:
    """Rows and columns of a tensor of one or two dimensions."""
    return (1, shape[0]) if len(shape) == 1 else (shape[0], shape[1])


def spans(part: Box) -> tuple[tuple[int, int], tuple[int, int]]:
    """Where a part lies: its rows and its columns."""
    found = [*zip(part.starts, part.stops)]
    return ((0, 1), found[0]) if len(found) == 1 else (found[0], found[1])


def named(devices: Sequence[int]) -> str:
    """The devices that hold a shard."""
    return " ".join(map(str, devices))


def widest(part: Box, devices: Sequence[int]) -> float:
    """The width that a column needs, so that the text fits into the shard."""
    left, right = spans(part)[1]
    return (len(named(devices)) * LETTER + 12) / max(right - left, 1)


def sharded(mesh: str, sharding: str, shape: tuple[int, ...]) -> Picture:
    """A tensor cut into its shards, under its sharding."""
    return titled(sharding, parts(parse_sharding(f"<@mesh, {sharding}>"), parse_mesh(mesh), shape))


def on_devices(mesh: str, sharding: str, shape: tuple[int, ...]) -> Picture:
    """What every device holds, under the sharding."""
    return titled(sharding, held(parse_sharding(f"<@mesh, {sharding}>"), parse_mesh(mesh), shape))


# Factors


def factor_table(rule: Rule, mesh: Mesh, names: Sequence[str], shardings: Sequence[TensorSharding]) -> Picture:
    """Tensors as rows, factors as columns, axes in the cells; a dash where a tensor does not have the factor."""
    heads = [f"{factor_symbol(number)} = {size}" for number, size in enumerate(rule.factor_sizes)]
    rows = [["", *heads]]
    for name, mapping, sharding in zip(names, rule.tensors, shardings):
        factors = project(sharding, mapping, rule.factor_sizes, mesh).factors
        found = [factors.get(number) for number in range(len(heads))]
        cells = ["-" if state is None else axes_text(state.axes) for state in found]
        rows.append([name, *cells])
    widths = [max(len(row[column]) for row in rows) * LETTER + 18 for column in range(len(heads) + 1)]
    body, y = "", 0.0
    for number, row in enumerate(rows):
        x = 0.0
        for column, cell in enumerate(row):
            filled = COLOURS[column - 1] if number and column and cell not in ("", "-") else ""
            body += box(x, y, widths[column], 26, filled) + text(x + widths[column] / 2, y + 17, cell, "middle")
            x += widths[column]
        y += 26
    return Picture(sum(widths), y, body)


def axes_text(axes: Sequence[object]) -> str:
    """The axes of a cell."""
    return ", ".join(map(str, axes))


def product_before_and_after() -> Picture:
    """A matrix product before and after one step."""
    rule = parse_rule("<([i, k], [k, j])->([i, j]) {i=32, j=256, k=64} reduction={k}>")
    mesh = parse_mesh('<["data"=4, "model"=2]>')
    tables = [
        factor_table(rule, mesh, ("x", "w", "result"), [parse_sharding(f"<@mesh, {each}>") for each in shardings])
        for shardings in (PRODUCT_BEFORE, PRODUCT_AFTER)
    ]
    return below([titled("before", tables[0]), titled("after", tables[1])])


# Processes


def levels() -> Picture:
    """The four levels of propagation, each inside the next."""
    said = (
        "user priorities: one round for each priority",
        "op priorities: five rounds, elementwise ops first",
        "aggressive strategy: factors compete for an axis",
        "basic strategy: only what nothing contradicts",
    )
    body, width, height = "", 480.0, len(said) * 58.0
    for depth, line in enumerate(said):
        inset = depth * 20
        body += box(inset, depth * 34, width - 2 * inset, height - depth * 54, COLOURS[depth], 0.18)
        body += text(inset + 12, depth * 34 + 21, line)
    return Picture(width, height, body)


def padded(mesh: str, sharding: str, size: int, unit: float = 26) -> Picture:
    """The elements of the buffers of all devices; dashes stand for padding."""
    parsed, devices = parse_sharding(f"<@mesh, {sharding}>"), parse_mesh(mesh)
    pictures = []
    for device, part in device_boxes(parsed, devices, (size,)).items():
        (width,) = local_shape(parsed, devices, (size,))
        held_here = range(part.starts[0], part.stops[0])
        body = ""
        for place in range(width):
            is_padding = place >= len(held_here)
            body += box(place * unit, 0, unit, unit, "" if is_padding else COLOURS[device])
            body += text((place + 0.5) * unit, 17, "-" if is_padding else str(held_here[place]), "middle")
        pictures.append(titled(f"device {device}", Picture(width * unit, unit, body)))
    return beside(pictures)


def halos(size: int, count: int, reach: int, unit: float = 22) -> Picture:
    """What every device needs for windows that reach so far to both sides; what comes from neighbours is paler."""
    mesh = Mesh([("x", count)])
    sharding = parse_sharding('<@mesh, [{"x"}]>')
    assert shard_counts(sharding, mesh) == (count,)
    owner = {
        place: device
        for device, part in device_boxes(sharding, mesh, (size,)).items()
        for place in range(part.starts[0], part.stops[0])
    }
    pictures = []
    for device, part in device_boxes(sharding, mesh, (size,)).items():
        body = ""
        needed = range(max(part.starts[0] - reach, 0), min(part.stops[0] + reach, size))
        for place in needed:
            own = owner[place] == device
            body += box(place * unit, 0, unit, unit, COLOURS[owner[place]], 0.6 if own else 0.2)
            body += text((place + 0.5) * unit, 15, str(place), "middle", 11)
        pictures.append(Picture(size * unit, unit, body + text(size * unit + 10, 15, f"device {device}")))
    whole = below(pictures, 6)
    return Picture(whole.width + 80, whole.height, whole.body)


def stages() -> Picture:
    """From a jitted function to the program of one device."""
    steps = (
        ("your function", "jax.jit(f).lower(...)"),
        ("StableHLO", "pyshardy.load"),
        ("a sharding for every tensor", "pyshardy.propagate"),
        ("the program of one device", "pyshardy.partition"),
        ("outputs on all devices", "pyshardy.run"),
    )
    body, y, width = "", 0.0, 300.0
    for number, (what, how) in enumerate(steps):
        if number:
            body += f'<path d="M{width / 2:g} {y:g}v26m-4 -6l4 6l4 -6" fill="none" stroke="currentColor"/>\n'
            body += text(width / 2 + 12, y + 17, how, size=11)
            y += 28
        body += box(0, y, width, 30, COLOURS[number], 0.25) + text(width / 2, y + 19, what, "middle")
        y += 30
    return Picture(width + 30, y, body)


_FOUR, _EIGHT = '<["x"=4]>', '<["data"=4, "model"=2]>'
_SQUARE = '<["x"=2, "y"=2]>'

DRAWINGS: dict[str, Callable[[], Picture]] = {
    "stages": stages,
    "mesh": lambda: mesh_grid(parse_mesh(_EIGHT)),
    "mesh-order": lambda: mesh_grid(parse_mesh('<["x"=2, "y"=2], device_ids=[0, 2, 1, 3]>')),
    "shardings": lambda: below(
        [
            beside([sharded(_EIGHT, each, (8, 8)) for each in row])
            for row in (('[{"data"}, {}]', '[{}, {"model"}]'), ('[{"data"}, {"model"}]', '[{"model", "data"}, {}]'))
        ]
    ),
    "sub-axes": lambda: beside([sharded(_FOUR, '[{"x"}]', (8,)), sharded(_FOUR, '[{"x":(1)2}, {"x":(2)2}]', (2, 4))]),
    "held": lambda: below(
        [
            on_devices(_SQUARE, each, (4, 4))
            for each in ("[{}, {}]", '[{"x"}, {}]', '[{"x"}, {"y"}]', '[{}, {"y", "x"}]')
        ]
    ),
    "factors": product_before_and_after,
    "levels": levels,
    "all-gather": lambda: beside([on_devices(_FOUR, '[{"x"}, {}]', (4, 4)), on_devices(_FOUR, "[{}, {}]", (4, 4))], 60),
    "all-to-all": lambda: beside(
        [on_devices(_FOUR, '[{"x"}, {}]', (4, 4)), on_devices(_FOUR, '[{}, {"x"}]', (4, 4))], 60
    ),
    "padding": lambda: padded(_FOUR, '[{"x"}]', 10),
    "halos": lambda: halos(16, 4, 1),
}


def drawings() -> dict[Path, str]:
    """The file of every drawing, and what is in it."""
    return {FOLDER / f"{name}.svg": svg(make()) for name, make in DRAWINGS.items()}
