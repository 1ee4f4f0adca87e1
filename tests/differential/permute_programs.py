"""Random modules of permutations with all-to-alls behind them, and of matrix products between collectives, by seed."""

from __future__ import annotations

from random import Random

from pyshardy.core.axes import Axes, AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.reshard.pieces import merge_neighbours

_MESHES = (
    Mesh([("a", 2), ("b", 2), ("c", 2), ("d", 2)]),
    Mesh([("a", 2), ("b", 4), ("c", 2)]),
    Mesh([("a", 8), ("b", 2)]),
    Mesh([("a", 3), ("b", 2), ("c", 2)]),
)


class PermuteWriter:
    """Writes a function in which one dimension is permuted and then taken apart.

    Args:
        seed: Where all choices come from.
    """

    def __init__(self, seed: int) -> None:
        self.random = random = Random(f"permute {seed}")
        self.mesh = random.choice(_MESHES)
        self.rank = random.randint(2, 4)
        pieces = self._pieces()
        self.dims: list[list[AxisRef]] = [[] for _ in range(self.rank)]
        for piece in pieces:
            self.dims[0 if random.random() < 0.8 else random.randrange(self.rank)].append(piece)
        random.shuffle(self.dims)
        count = self.mesh.size
        sizes = random.choices((count, 3 * count, 12), (0.5, 0.4, 0.1), k=self.rank)
        self.type = f"tensor<{'x'.join(map(str, sizes))}xf32>"
        self.lines: list[str] = []
        self.value = "%x"

    def _pieces(self) -> list[AxisRef]:
        found: list[AxisRef] = []
        for name, size in self.mesh.axes:
            if size > 3 and self.random.random() < 0.6:
                found += [AxisRef(name, 1, 2), AxisRef(name, 2, size // 2)]
            else:
                found.append(AxisRef(name))
        return self.random.sample(found, len(found))

    def sharding(self) -> TensorSharding:
        """The sharding as it is now."""
        return TensorSharding("m", (DimSharding(merge_neighbours(axes, self.mesh)) for axes in self.dims))

    def _emit(self, op: str) -> None:
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {op} {self.value} out_sharding={self.sharding()} : {self.type}")
        if self.random.random() < 0.1:
            used = self.random.choice((self.value, name))
            self.lines.append(
                f"  %{len(self.lines)} = stablehlo.custom_call @use({used}) : ({self.type}) -> {self.type}"
            )
        self.value = name

    def _permute(self) -> None:
        for axes in self.dims if self.random.random() < 0.1 else [max(self.dims, key=len)]:
            self.random.shuffle(axes)
        if self.random.random() < 0.05:
            self.random.shuffle(self.dims)
        self._emit("sdy.collective_permute")

    def _all_to_all(self) -> None:
        random = self.random
        sources = [dim for dim in range(self.rank) if self.dims[dim]]
        longest = max(sources, key=lambda dim: len(self.dims[dim]))
        source = longest if random.random() < 0.9 else random.choice(sources)
        target = random.choice([dim for dim in range(self.rank) if dim != source])
        count = random.choice((1, 1, 1, 2))
        moved = self.dims[source][-count:]
        del self.dims[source][-count:]
        self.dims[target] += moved
        self._emit(f"sdy.all_to_all [{{{_text(merge_neighbours(moved, self.mesh))}}}: {source}->{target}]")

    def text(self) -> str:
        """The module."""
        given = self.sharding()
        self._permute()
        for _ in range(self.random.randint(1, 4)):
            self._all_to_all()
        head = f"func.func @main(%x: {self.type} {{sdy.sharding = #sdy.sharding{given}}}) -> {self.type} {{"
        return "\n".join([f"sdy.mesh @m = {self.mesh}", head, *self.lines, f"  return {self.value} : {self.type}", "}"])


def _text(axes: Axes) -> str:
    return ", ".join(map(str, axes))


_TYPE = "tensor<16x16xf32>"
_SPLITS = ('[{"a"}, {}]', '[{}, {"a"}]', '[{"a"}, {"b"}]', '[{}, {"b"}]')


def communicating_product(seed: int) -> str:
    """Products of what is gathered or not, and then scattered or not; some values have two uses."""
    random = Random(f"product {seed}")
    lines: list[str] = []

    def emit(text: str) -> str:
        lines.append(f"  %{len(lines)} = {text}")
        return f"%{len(lines) - 1}"

    def given() -> str:
        if random.random() < 0.4:
            return random.choice(("%x", "%y"))
        return emit(f'sdy.all_gather [{{"b"}}, {{}}] %z out_sharding=<@m, [{{}}, {{}}]> : {_TYPE}')

    values = []
    for _ in range(random.randint(1, 3)):
        left, right = given(), given()
        if random.random() < 0.2:
            right = left
        if random.random() < 0.15:
            emit(f"stablehlo.custom_call @use({left}) : ({_TYPE}) -> {_TYPE}")
        unreduced = random.choice(("", "", "", ', unreduced={"c"}'))
        attrs = f"{{sdy.sharding = #sdy.sharding_per_value<[<@m, [{{}}, {{}}]{unreduced}>]>}}"
        dims = ", contracting_dims = [1] x [0]" if random.random() < 0.5 else ""
        op = "dot_general" if dims else "dot"
        attrs = random.choice((attrs, "")) if not unreduced else attrs
        value = emit(f"stablehlo.{op} {left}, {right}{dims} {attrs} : ({_TYPE}, {_TYPE}) -> {_TYPE}")
        if random.random() < 0.15:
            emit(f"stablehlo.custom_call @use({value}) : ({_TYPE}) -> {_TYPE}")
        if attrs and random.random() < 0.6:
            value = emit(
                f'sdy.reduce_scatter [{{}}, {{"a"}}] {value} out_sharding=<@m, [{{}}, {{"a"}}]{unreduced}> : {_TYPE}'
            )
        values.append(value)
    value = random.choice(values)
    shardings = [
        f"{{sdy.sharding = #sdy.sharding<@m, {text}>}}" for text in (*random.choices(_SPLITS, k=2), '[{"b"}, {}]')
    ]
    args = ", ".join(f"%{name}: {_TYPE} {sharding}" for name, sharding in zip("xyz", shardings))
    head = f'sdy.mesh @m = <["a"=2, "b"=2, "c"=2]>\nfunc.func @main({args}) -> {_TYPE} {{'
    return "\n".join([head, *lines, f"  return {value} : {_TYPE}", "}"])
