"""What a compiler decided and replicated, along the meshes of the user's program."""

from __future__ import annotations

from collections.abc import Mapping

from pyshardy.compilers.answer import CompilerAnswer, Rematerialization
from pyshardy.core.gspmd import from_gspmd
from pyshardy.core.hlo_sharding import is_named, parse_hlo_shardings
from pyshardy.core.mesh import Mesh
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.sharding_on_mesh import shard_counts
from pyshardy.errors import ShardyError
from pyshardy.ir.dtypes import element_of_hlo, tensor_bytes
from pyshardy.ir.hlo_proto import hlo_module_proto, stack_places
from pyshardy.ir.module import Module
from pyshardy.report.replications import Replication
from pyshardy.results.decided import Comparison, compare, decided_by
from pyshardy.source.places import SourcePlace, user_place


def check_with_compiler(propagated: Module, answer: CompilerAnswer) -> Comparison:
    """List the values that are sharded differently than a compiler decided; there should be none.

    Args:
        propagated: The result of propagation.
        answer: The compiler's answer for the same program.
    """
    return compare(propagated, decided_by(Module.parse(answer.decided, name=str(answer)), str(answer)))


def replications_of(answer: CompilerAnswer, meshes: Mapping[str, Mesh]) -> tuple[Replication, ...]:
    """The tensors that a compiler replicates, the largest first.

    Args:
        answer: The compiler's answer.
        meshes: The meshes of the program by name.
    """
    warned = answer.rematerializations
    if not warned:
        return ()
    content = None if answer.partitioned is None else hlo_module_proto(answer.partitioned)
    places = [[]] if content is None else stack_places(content)
    found = [_replication(one, places, meshes) for one in warned]
    return tuple(sorted(found, key=lambda one: -one.bytes))


def _replication(warned: Rematerialization, places: list[list[SourcePlace]], meshes: Mapping[str, Mesh]) -> Replication:
    name, mesh = next((name, mesh) for name, mesh in meshes.items() if mesh.axes)
    local = tuple(int(size) for size in warned.type.partition("[")[2].rstrip("]").split(",") if size)
    dtype = element_of_hlo(warned.type.partition("[")[0])
    before, after = (_sharding(text, name, mesh, len(local)) for text in (warned.before, warned.after))
    ways = (1,) * len(local) if before is None else shard_counts(before, mesh)
    shape = tuple(size * way for size, way in zip(local, ways))
    frame = warned.frame or 0
    place = user_place(places[frame]) if frame < len(places) else None
    size = tensor_bytes(shape, dtype)
    return Replication(warned.scope, place, dtype, shape, before, after, size, warned.instruction)


def _sharding(text: str, name: str, mesh: Mesh, rank: int) -> TensorSharding | None:
    """A sharding in HLO's notation, along the axes of a mesh; None if it does not follow them."""
    try:
        if is_named(text):
            named = parse_hlo_shardings(text)[0].named
            return TensorSharding.fully_replicated(name, rank) if named is None else named.with_mesh(name)
        return from_gspmd(text, mesh, rank, name)
    except ShardyError:
        return None
