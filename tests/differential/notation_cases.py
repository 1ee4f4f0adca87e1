"""Random texts of meshes, axes and shardings: valid ones, ones that break a rule, and ones with typing mistakes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_mesh
from pyshardy.core.text import unquote

from .draw import Draw

MESHES: dict[str, Mesh] = {
    "m": parse_mesh('<["x"=8, "y"=2, "z"=24, "b"=4, "a"=4, "one"=1]>'),
    "turned": parse_mesh('<["x"=2, "y"=2], device_ids=[3, 1, 2, 0]>'),
    "a b": parse_mesh(r'<["\C3\A9"=4, "x"=6, ""=2]>'),
    "device": parse_mesh("<[], device_ids=[3]>"),
    "empty": parse_mesh("<[]>"),
}
"""The meshes of the module that shardings are verified in."""

_SYMBOLS = {"m": ("@m", "@m", '@"m"', r'@"\6D"'), "a b": ('@"a b"', r'@"a\20b"')}
_NAMES = (*(f'"{name}"' for name in "xyzbawXé"), '"one"', '""', r'"\C3\A9"', r'"\n\\\"\t\7f"')
_WRONG_PRIORITIES = ("p01", "p00", "P1", "p", "p1.5", "p-1", "p_1", "p9223372036854775808", "px", "\np1")
_NO_TEXT = re.compile("[\ud800-\udfff]")
_SPACES = ("", "", "", " ", "  ", "\n", "\t", "\r\n", " // a comment\n", "//\r")
_TOKEN = re.compile(r'@?"(?:[^"\\]|\\.)*"|//[^\n]*|@?\w+|\s+|.', re.DOTALL)
_EXTRA_TOKENS = (
    *'<>[]{}(),:="?@#-+.|/\\\v\f$',
    *("p1", "p0", "p01", "p", "0", "1", "2", "3", "-1", "0x2", "0X2", "1.0", "2e1", "true", "none", "i32", "->", "::"),
    *('"x"', '"y":(1)2', "{}", "{?}", "[]", "@m", "@n", "mesh", "#sdy.mesh", "device_ids=[1, 0]", "٣", "é", "\u00a0"),
    *("replicated", 'replicated={"y"}', "unreduced", 'unreduced={"z"}', "max", "sum", "replicated={}"),
)


@dataclass(frozen=True)
class Case:
    """A text to be read as a `kind` of value, and the rank of the tensor it is verified for."""

    kind: str
    text: str
    rank: int = 1


class TextDraw(Draw):
    """A source of texts; with a small chance at every place the text breaks a rule."""

    wrong: float = 0.0
    mesh_name: str = "m"
    pool: list[str] = []
    used: str = ""

    def begin(self, mesh_name: str) -> None:
        """Start a value on that mesh: its axes, whole or cut in pieces, are mostly to be used once each."""
        self.mesh_name = mesh_name
        self.pool, self.used = [], ""
        axes = MESHES["m" if self.flag(self.wrong) else mesh_name].axes
        for name, size in axes:
            text = r'"\C3\A9"' if name == "é" else f'"{name}"'
            cuts = [cut for cut in range(2, size) if size % cut == 0]
            if cuts and self.flag(0.4):
                cut = self.choice(cuts)
                self.pool += [f"{text}:(1){cut}", f"{text}:({cut}){size // cut}"]
            else:
                self.pool.append(text)
        self.shuffle(self.pool)

    def space(self) -> str:
        """White space, mostly none."""
        return self.choice(_SPACES) if self.flag(0.1) else ""

    def joined(self, *parts: str) -> str:
        """The parts with white space between them."""
        return "".join(part + self.space() for part in parts)

    def comma(self, items: list[str]) -> str:
        """A list, with the separators as they are printed or otherwise."""
        return self.choice((", ", ", ", ",", " , ")).join(items)

    def integer(self, value: int) -> str:
        """A number, mostly as it is printed."""
        spellings = (hex(value) if value >= 0 else str(value), f"0{value}", f"- {value}", "-0", str(-value), "")
        return self.choice(spellings) if self.flag(self.wrong) else str(value)

    def name(self) -> str:
        """The name of an axis in quotes."""
        return self.choice(_NAMES)

    def axis(self) -> str:
        """An axis or a sub-axis of the mesh that was not used yet, mostly."""
        if self.used and self.flag(self.wrong):
            name = self.used.split(":")[0]
            return self.choice((self.used, name, *(f"{name}:{part}" for part in ("(1)2", "(1)4", "(2)2", "(1)12"))))
        if self.flag(self.wrong) or not self.pool:
            pre_size, size = self.choice((1, 1, 2, 3, 4, 0, -1)), self.choice((2, 2, 3, 4, 8, 24, 1, 0, -2))
            text = self.joined(self.name(), ":", "(", self.integer(pre_size), ")") + self.integer(size)
            return self.choice((text, self.name()))
        self.used = self.pool.pop()
        name, *part = re.split(r":\((\d+)\)", self.used)
        if not part:
            return name
        return self.joined(name, ":", "(", self.integer(int(part[0])), ")") + self.integer(int(part[1]))

    def axes(self, most: int, least: int = 0) -> list[str]:
        """Some axes, mostly as many as there are left."""
        count = self.choice(range(least, most + 1))
        return [self.axis() for _ in range(count) if self.pool or self.flag(self.wrong)]

    def dim(self) -> str:
        """The sharding of a dimension."""
        items = self.axes(3) + (["?"] if self.flag(0.4) else [])
        priority = ""
        if self.flag(self.wrong):
            priority = self.choice(_WRONG_PRIORITIES)
        elif self.flag(0.3 if items else self.wrong):
            priority = self.choice(("p0", "p1", "p12", " p3", "p9223372036854775807"))
        return self.joined("{", self.comma(items), "}") + priority

    def named_axes(self) -> list[str]:
        """Replicated and unreduced axes, mostly in their order."""
        found = []
        for keyword in ("replicated", "unreduced"):
            if self.flag(0.3) and self.pool:
                kind = self.choice(("", "", "sum", "max", "min")) if keyword == "unreduced" else ""
                equals = "" if self.flag(self.wrong) else "="
                axes = self.axes(3, least=0 if self.flag(self.wrong) else 1)
                if not self.flag(self.wrong):
                    axes.sort(key=self._mesh_order)
                found.append(self.joined(keyword, equals, kind, "{", self.comma(axes), "}"))
        if self.flag(0.15):
            found.reverse()
        return found + found[: self.flag(self.wrong)]

    def _mesh_order(self, axis: str) -> tuple[int, str]:
        names = [name for name in MESHES[self.mesh_name].axis_names if axis.startswith(f'"{name}"')]
        return MESHES[self.mesh_name].positions[names[0]] if names else 9, axis

    def mesh_reference(self) -> str:
        """A mesh for the value that begins: a symbol, or the mesh itself."""
        self.begin("m" if self.flag(0.6) else self.choice(list(MESHES)))
        if self.flag(self.wrong):
            return self.choice(("@nope", "@_$.0", '@""', "@ m", "m", self.joined("mesh", self.mesh())))
        if self.flag(0.2):
            return self.joined("mesh", str(MESHES[self.mesh_name]))
        return self.choice(_SYMBOLS.get(self.mesh_name, (f"@{self.mesh_name}",)))

    def sharding(self, rank: int) -> str:
        """The sharding of a tensor of mostly this rank."""
        reference = self.mesh_reference()
        if self.flag(self.wrong):
            rank = self.choice(range(4))
        elif self.mesh_name == "device":
            rank = 0
        dims = self.comma([self.dim() for _ in range(rank)])
        parts = self.joined("<", reference, ",", "[", dims, "]")
        for named in self.named_axes():
            parts += self.joined(",", named)
        return parts + ">"

    def shardings(self) -> str:
        """A list of shardings."""
        return self.joined("<", "[", self.comma([self.sharding(1) for _ in range(self.choice(range(3)))]), "]") + ">"

    def mesh(self) -> str:
        """A mesh."""
        axes = {self.name(): self.choice((1, 2, 2, 3, 4, 8)) for _ in range(self.choice((0, 1, 1, 2, 2, 3)))}
        total = 1
        for size in axes.values():
            total *= size
        items = [self.joined(name, "=") + self.integer(size) for name, size in axes.items()]
        if self.flag(self.wrong):
            items.append(f"{self.name()}={self.choice((0, -1, 2, 2**63 - 1, 2**63))}")
        ids = list(range(total)) if axes else [self.choice(range(9))]
        if self.flag(0.7):
            ids = self.shuffled(ids)
        has_order = self.flag(0.3)
        if self.flag(self.wrong):
            ids = self.choice(([], [0], [1, 0], [-1, 0], [*ids, total], [*ids[1:], ids[-1]]))
            has_order = True
        order = self.joined(",", "device_ids", "=", "[", self.comma([self.integer(device) for device in ids]), "]")
        return self.joined("<", "[", self.comma(items), "]", order if has_order else "") + ">"

    def mistyped(self, text: str) -> str:
        """The text with a mistake or two in it."""
        tokens = _TOKEN.findall(text) or [""]
        for _ in range(self.choice((1, 1, 1, 2, 3))):
            at = self.randrange(len(tokens))
            change = self.randrange(6)
            if change == 0:
                tokens[at] = ""
            elif change == 1:
                tokens[at] *= 2
            elif change == 2:
                tokens[at] = self.choice(_EXTRA_TOKENS)
            elif change == 3:
                tokens.insert(at, self.choice(_EXTRA_TOKENS))
            elif change == 4:
                other = self.randrange(len(tokens))
                tokens[at], tokens[other] = tokens[other], tokens[at]
            elif tokens[at]:
                place = self.randrange(len(tokens[at]))
                tokens[at] = tokens[at][:place] + tokens[at][place + 1 :]
        return "".join(tokens)


KINDS: dict[str, Callable[[TextDraw, int], str]] = {
    "mesh": lambda draw, rank: draw.mesh(),
    "axis": lambda draw, rank: draw.axis(),
    "dim": lambda draw, rank: draw.dim(),
    "sharding": TextDraw.sharding,
    "shardings": lambda draw, rank: draw.shardings(),
}


def cases(kind: str, count: int, seed: int) -> Iterator[Case]:
    """Texts of one kind, a third each valid, breaking rules, and mistyped; the same ones for the same seed."""
    draw = TextDraw(f"{kind} {seed}")
    for index in range(count):
        draw.wrong = (0.0, 0.1, 0.0)[index % 3]
        draw.begin("m")
        rank = draw.choice((0, 1, 2, 2, 3)) if kind == "sharding" else 1
        text = KINDS[kind](draw, rank)
        if index % 3 == 2:
            text = draw.mistyped(text)
        # A message of MLIR that quotes bytes which are no text ends the process, so there are no such bytes.
        yield Case(kind, "" if _NO_TEXT.search(unquote(text)) else text, rank)
