"""The summary of a propagated program, as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from pyshardy.core.mesh import Mesh, device_count
from pyshardy.core.notation import axis_to_json
from pyshardy.core.sharding import TensorSharding
from pyshardy.core.text import format_bytes as format_bytes
from pyshardy.report.specs import sharding_to_json

JSON_VERSION = 1
"""The version of `to_json`'s data. It grows when a key is removed or changes its meaning."""


class Undivided(NamedTuple):
    """A dimension that has fewer axes than propagation gave it: inputs and outputs have even shards.

    Attributes:
        dimension: The dimension.
        wanted: The axes that propagation gave it.
        kept: Those of them, from the first on, that divide it; the last may be a part of an axis.
    """

    dimension: int
    wanted: tuple[str, ...]
    kept: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """The dimension as JSON-ready data."""
        return {
            "dimension": self.dimension,
            "wanted": list(map(axis_to_json, self.wanted)),
            "kept": list(map(axis_to_json, self.kept)),
        }


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One input or output.

    Attributes:
        name: Its name in the user's program.
        shape: Global shape.
        dtype: Element type, such as "f32".
        sharding: Its sharding; None if it has none.
        local_shape: The shape of a shard.
        bytes_total: The bytes of the global tensor.
        bytes_per_device: The bytes of a shard.
        bytes_per_device_before: The bytes of a shard under the user's own annotation.
        is_inferred: Whether propagation gave the sharding, not the user.
        origins: The annotations that its axes come from, such as "params['w1']", if known.
        undivided: The dimensions that would have more axes if these divided them.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    sharding: TensorSharding | None
    local_shape: tuple[int, ...]
    bytes_total: int
    bytes_per_device: int
    bytes_per_device_before: int
    is_inferred: bool
    origins: tuple[str, ...] = ()
    undivided: tuple[Undivided, ...] = ()

    @property
    def is_split(self) -> bool:
        """Whether any dimension is sharded."""
        return self.sharding is not None and not self.sharding.is_fully_replicated

    @property
    def given_by(self) -> str:
        """The origin of the sharding: "user", "propagation", or none if there is no sharding."""
        if self.is_inferred:
            return "propagation"
        return "user" if self.sharding is not None and (self.is_split or self.sharding.unreduced) else ""

    def to_json(self) -> dict[str, Any]:
        """The row as JSON-ready data."""
        return {
            "name": self.name,
            "shape": list(self.shape),
            "dtype": self.dtype,
            **sharding_to_json(self.sharding),
            "local_shape": list(self.local_shape),
            "bytes_total": self.bytes_total,
            "bytes_per_device": self.bytes_per_device,
            "bytes_per_device_before": self.bytes_per_device_before,
            "given_by": self.given_by or None,
            "origins": list(self.origins),
            "undivided": [one.to_json() for one in self.undivided],
        }


@dataclass(frozen=True, slots=True)
class Summary:
    """The summary of a propagated program.

    Attributes:
        title: The title of the program.
        meshes: Name and mesh of every mesh with axes.
        inputs: The inputs of the main function.
        outputs: Its outputs.
        tensors_sharded: The number of tensors computed by ops, in all functions, that are sharded.
        tensors_replicated: The number of those that are not.
        stages: Name and seconds of every step taken.
        warnings: The warnings.
        compiler: The compiler that was asked, such as "libtpu 0.0.52 for 8 x v5e (2x4)"; empty for none.
        replicated: One line on the tensors that it replicates; empty if there are none.
        stand_in: Without one, whose shardings these are and how to ask; empty for programs of CPUs.
    """

    title: str
    meshes: tuple[tuple[str, Mesh], ...]
    inputs: tuple[TensorRow, ...]
    outputs: tuple[TensorRow, ...]
    tensors_sharded: int
    tensors_replicated: int
    stages: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()
    compiler: str = ""
    replicated: str = ""
    stand_in: str = ""

    @property
    def device_count(self) -> int:
        """The number of devices."""
        return device_count(dict(self.meshes))

    def with_origins(self, inputs: Sequence[tuple[str, ...]], outputs: Sequence[tuple[str, ...]]) -> Summary:
        """The summary with the origins of all inputs and outputs."""
        sides = [
            tuple(replace(row, origins=found) for row, found in zip(rows, origins, strict=True))
            for rows, origins in ((self.inputs, inputs), (self.outputs, outputs))
        ]
        return replace(self, inputs=sides[0], outputs=sides[1])

    def to_json(self, times: bool = False) -> dict[str, Any]:
        """The summary as JSON-ready data.

        Args:
            times: Whether to include the times of stages; without them, equal programs give equal data.
        """
        return {
            "version": JSON_VERSION,
            "title": self.title,
            "device_count": self.device_count,
            "meshes": [{"name": name, **mesh_to_json(mesh)} for name, mesh in self.meshes],
            "inputs": [row.to_json() for row in self.inputs],
            "outputs": [row.to_json() for row in self.outputs],
            "tensors_sharded": self.tensors_sharded,
            "tensors_replicated": self.tensors_replicated,
            "warnings": list(self.warnings),
            **({"compiler": self.compiler} if self.compiler else {}),
            **({"stages": stages_to_json(self.stages)} if times else {}),
        }


def mesh_to_json(mesh: Mesh) -> dict[str, Any]:
    """A mesh as JSON-ready data; `device_ids` is null for the natural order."""
    return {
        "axes": [{"name": name, "size": size} for name, size in mesh.axes],
        "device_ids": None if mesh.device_ids is None else list(mesh.device_ids),
    }


def stages_to_json(stages: Sequence[tuple[str, float]]) -> list[dict[str, Any]]:
    """Name and seconds of every step as JSON-ready data."""
    return [{"name": name, "seconds": seconds} for name, seconds in stages]


def format_seconds(seconds: float) -> str:
    """A duration in a unit that keeps the number short.

    >>> format_seconds(0.0123), format_seconds(2.5)
    ('12.3 ms', '2.50 s')
    """
    return f"{seconds * 1000:.1f} ms" if round(seconds, 4) < 1 else f"{seconds:.2f} s"
