"""Random reshards, for comparing the collectives that do them with the reference's, by seed."""

from __future__ import annotations

from contextlib import suppress
from random import Random

from pyshardy.core.axes import AxisRef
from pyshardy.core.axis_lists import append_or_merge, sort_and_merge
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.errors import InvalidShardingError

POWERS = (
    (("a", 2), ("b", 2), ("c", 2), ("d", 2)),
    (("a", 2), ("b", 4), ("c", 2)),
    (("a", 8), ("b", 2)),
    (("b", 4), ("a", 4)),
    (("a", 2), ("b", 2), ("c", 4), ("d", 2)),
    (("a", 16), ("b", 2)),
    (("a", 2), ("b", 1), ("c", 4)),
)
OTHERS = (
    (("a", 3), ("b", 2), ("c", 2)),
    (("a", 6), ("b", 2)),
    (("a", 6), ("b", 4)),
    (("a", 12), ("b", 3)),
    (("a", 5), ("b", 2), ("c", 3)),
    (("a", 6), ("b", 6), ("c", 2)),
)


class ReshardWriter:
    """Writes one module of reshards.

    Args:
        seed: Where all choices come from.
        powers: Whether all sizes of axes are powers of two.
    """

    def __init__(self, seed: int, powers: bool) -> None:
        self.random = random = Random(f"reshard {seed} {powers}")
        axes = random.choice(POWERS if powers else OTHERS)
        mesh = Mesh(axes)
        order = list(range(mesh.size))
        random.shuffle(order)
        self.meshes = {"m": mesh, "backwards": Mesh(axes, range(mesh.size)[::-1]), "shuffled": Mesh(axes, order)}
        if random.random() < 0.2:
            self.meshes |= {"same": mesh, "other": Mesh(random.choice(POWERS)), "device": Mesh((), [1])}
        self.shape = [self._size(powers) for _ in range(random.choice((0, 1, 2, 2, 2, 3, 3, 3, 4, 5)))]
        self.density = random.choice((0.5, 0.7, 0.9, 1.0))
        self.cutting = random.choice((0.0, 0.2, 0.6))
        self.pieces = self._cut(mesh)

    def _size(self, powers: bool) -> int:
        if self.random.random() < 0.05:
            return -1
        if self.random.random() < (0.8 if powers else 0.5):
            return self.random.choice((2, 4, 8, 16, 32, 64))
        return self.random.choice((0, 1, 3, 5, 6, 12, 24, 36, 60, 72))

    def _cut(self, mesh: Mesh) -> list[AxisRef]:
        found: list[AxisRef] = []
        for name, size in mesh.axes:
            borders = [1, size]
            for factor in range(2, size):
                if size % factor == 0 and factor % borders[-2] == 0 and self.random.random() < self.cutting:
                    borders.insert(-1, factor)
            pairs = zip(borders, borders[1:])
            found += [AxisRef(name)] if len(borders) == 2 else [AxisRef(name, low, end // low) for low, end in pairs]
        return found

    def _sharding(self, name: str, unreduced: bool) -> TensorSharding:
        random, mesh = self.random, self.meshes[name]
        if mesh.is_single_device:
            return TensorSharding(name)
        pieces = self.pieces if name != "other" and random.random() < 0.7 else self._cut(mesh)
        dims: list[list[AxisRef]] = [[] for _ in self.shape]
        free = []
        for piece in random.sample(pieces, len(pieces)):
            if dims and random.random() < self.density:
                append_or_merge(random.choice(dims), piece, mesh)
            else:
                free.append(piece)
        left = sort_and_merge(free, mesh) if unreduced else ()
        return TensorSharding(name, map(DimSharding, dims), unreduced=left)

    def sharding(self, name: str, unreduced: float) -> TensorSharding:
        """A random sharding on one of the meshes."""
        wanted = self.random.random() < unreduced
        while True:
            with suppress(InvalidShardingError):
                return self._sharding(name, wanted)

    def text(self) -> str:
        """The module: a chain of reshards, mostly of one, now and then with a barrier in between."""
        random = self.random
        sizes = "".join("?x" if size < 0 else f"{size}x" for size in self.shape)
        type = f"tensor<{sizes}f32>"
        lines, value = [], "%x"
        given = f" {{sdy.sharding = #sdy.sharding{self.sharding(self._mesh(), 0.1)}}}" if random.random() < 0.95 else ""
        may_bar = given and ("b", 1) not in self.meshes["m"].axes  # a listed difference
        for _ in range(random.choice((1, 1, 1, 2, 3))):
            if random.random() < 0.1 and may_bar:
                lines.append(f"%{len(lines)} = sdy.propagation_barrier {value} allowed_direction=NONE : {type}")
                value = f"%{len(lines) - 1}"
            lines.append(f"%{len(lines)} = sdy.reshard {value} {self.sharding(self._mesh(), 0.1)} : {type}")
            value = f"%{len(lines) - 1}"
        declared = [f"sdy.mesh @{name} = {mesh}" for name, mesh in self.meshes.items()]
        head = f"func.func @main(%x: {type}{given}) -> {type} {{"
        return "\n".join([*declared, head, *lines, f"return {value} : {type}", "}", ""])

    def _mesh(self) -> str:
        return self.random.choice(list(self.meshes)) if self.random.random() < 0.15 else "m"
