"""How far a plan is, in short notation."""

from __future__ import annotations

from collections.abc import Sequence

from pyshardy.core.axes import AxisRef
from pyshardy.core.mesh import Mesh
from pyshardy.core.notation import parse_sharding
from pyshardy.core.sharding import TensorSharding
from pyshardy.reshard.pieces import State

ABCD = Mesh([("a", 2), ("b", 2), ("c", 2), ("d", 2)])


def sharding(text: str, mesh: str = "m") -> TensorSharding:
    """A sharding from its axes with bars between dimensions, `a b|x:(1)2|`."""
    dims = []
    for dim in text.split("|"):
        axes = [axis.partition(":") for axis in dim.split()]
        dims.append("{" + ", ".join(f'"{name}"{colon}{part}' for name, colon, part in axes) + "}")
    return parse_sharding(f"<@{mesh}, [{', '.join(dims)}]>")


def state(before: str, after: str, mesh: Mesh = ABCD, shape: tuple[int, ...] | None = None) -> State:
    """The beginning of a plan."""
    one = sharding(before)
    return State(one, sharding(after), mesh, shape or (16,) * one.rank)


def written(dims: Sequence[Sequence[AxisRef]]) -> str:
    """Axes per dimension, with bars between."""
    return "|".join(" ".join(map(str, axes)) for axes in dims).replace('"', "")


def lists(found: State) -> tuple[str, str, str]:
    """What is settled, what there is behind it, and what is wanted."""
    return written(found.settled), written(found.current), written(found.wanted)


def steps(found: State) -> list[str]:
    """The steps so far: what is done along which axes, and the axes behind it."""
    texts = []
    for step in found.plan:
        what = written(step.axes) if step.axes else ", ".join(map(str, step.params)).replace('"', "")
        texts.append(f"{step.kind.value} {what} -> {written(step.after.dim_axes)}".replace("  ", " "))
    return texts
