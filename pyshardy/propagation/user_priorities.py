"""User priorities: dimensions of later priorities are hidden, and restored in their turn.

Source: docs/semantics/propagation.md#user-priorities
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pyshardy.core.axis_lists import sort_axes
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import DimSharding, TensorSharding
from pyshardy.core.sharding_on_mesh import mesh_of
from pyshardy.errors import InvalidShardingError
from pyshardy.propagation.engine import PropagationEngine
from pyshardy.propagation.step import StepError

_HIDDEN = DimSharding()


def user_priority_rounds(engine: PropagationEngine) -> Iterator[int]:
    """The user priorities of the program, 0 first; the shardings are prepared for each before it is yielded.

    Dimensions of later priorities are empty and closed, and their axes replicated, so that nothing can use them. In its
    turn, a dimension gets back the axes that the user gave.
    """
    originals = _mask_all(engine)
    yield 0
    restored: dict[tuple[TensorSharding, TensorSharding, int], TensorSharding] = {}
    priorities = {original: {dim.priority for dim in original.dims} for original in dict.fromkeys(originals.values())}
    for priority in sorted({priority for found in priorities.values() for priority in found if priority}):
        for value, original in originals.items():
            current = engine.shardings[value]
            if current is None or priority not in priorities[original]:
                continue
            key = current, original, priority
            if key not in restored:
                try:
                    restored[key] = restore(*key)
                except InvalidShardingError as error:
                    raise StepError(engine.program.owners[value], error) from error
            engine.set_sharding(value, restored[key])
        yield priority


def _mask_all(engine: PropagationEngine) -> dict[int, TensorSharding]:
    """Hide all dimensions of a priority above 0; return the original sharding of every value that has one."""
    originals = {}
    masked: dict[TensorSharding, tuple[TensorSharding, bool]] = {}
    for value, sharding in enumerate(engine.shardings):
        if sharding is None:
            continue
        known = masked.get(sharding)
        if known is None:
            priorities = {dim.priority for dim in sharding.dims}
            found = sharding if priorities <= {None} else mask(sharding, engine.program.meshes)
            known = masked[sharding] = found, any(priorities)
        found, is_hidden = known
        if is_hidden:
            originals[value] = sharding
        if found is not sharding:
            engine.set_sharding(value, found)
    return originals


def mask(sharding: TensorSharding, meshes: Mapping[str, Mesh]) -> TensorSharding:
    """The sharding in round 0: without priorities, later dimensions empty and closed and their axes replicated.

    >>> from pyshardy.core.notation import parse_sharding
    >>> mask(parse_sharding('<@m, [{"p"}p2, {"q", ?}p0]>'), {"m": Mesh([("p", 2), ("q", 2)])})
    TensorSharding(<@m, [{}, {"q", ?}], replicated={"p"}>)
    """
    hidden = [axis for dim in sharding.dims if dim.priority for axis in dim.axes]
    dims = [_HIDDEN if dim.priority else dim.without_priority() for dim in sharding.dims]
    replicated = sort_axes([*sharding.replicated, *hidden], mesh_of(sharding, meshes))
    return TensorSharding(sharding.mesh, dims, replicated, sharding.unreduced, sharding.reduction)


def up_to(sharding: TensorSharding, meshes: Mapping[str, Mesh], priority: int) -> TensorSharding:
    """The sharding with the dimensions of later priorities hidden, as during the round of `priority`.

    >>> from pyshardy.core.notation import parse_sharding
    >>> up_to(parse_sharding('<@m, [{"p"}p2, {"q", ?}p1]>'), {"m": Mesh([("p", 2), ("q", 2)])}, 1)
    TensorSharding(<@m, [{}, {"q", ?}p1], replicated={"p"}>)
    """
    later = [(dim.priority or 0) > priority for dim in sharding.dims]
    if not any(later):
        return sharding
    hidden = [axis for dim, is_later in zip(sharding.dims, later) if is_later for axis in dim.axes]
    dims = [_HIDDEN if is_later else dim for dim, is_later in zip(sharding.dims, later)]
    replicated = sort_axes([*sharding.replicated, *hidden], mesh_of(sharding, meshes))
    return TensorSharding(sharding.mesh, dims, replicated, sharding.unreduced, sharding.reduction)


def restore(current: TensorSharding, original: TensorSharding, priority: int) -> TensorSharding:
    """`current` with the dimensions of this priority as the user gave them."""
    restored = {axis for dim in original.dims if dim.priority == priority for axis in dim.axes}
    dims = [
        given.without_priority() if given.priority == priority else now
        for given, now in zip(original.dims, current.dims)
    ]
    return TensorSharding(
        current.mesh,
        dims,
        (axis for axis in current.replicated if axis not in restored),
        current.unreduced,
        current.reduction,
    )
