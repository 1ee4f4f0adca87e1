"""What a propagated program looks like from outside, as plain data."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from pyshardy.core.text import format_bytes as format_bytes


@dataclass(frozen=True, slots=True)
class TensorRow:
    """One input or output.

    Attributes:
        name: As the user wrote it.
        shape: Global shape.
        dtype: Element type, such as "f32".
        sharding: Its sharding in words: `[{"data"}, {}]`, or "replicated".
        local_shape: Shape of the part that one device holds.
        bytes_total: Bytes of the whole tensor.
        bytes_per_device: Bytes that one device holds.
        bytes_per_device_before: The same under the user's own annotations alone.
        is_inferred: Whether propagation gave the sharding, not the user.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    sharding: str
    local_shape: tuple[int, ...]
    bytes_total: int
    bytes_per_device: int
    bytes_per_device_before: int
    is_inferred: bool


@dataclass(frozen=True, slots=True)
class Summary:
    """A propagated program.

    Attributes:
        title: What the program is called.
        meshes: Name and notation of every mesh with axes.
        inputs: The inputs of the main function.
        outputs: Its outputs.
        tensors_sharded: How many of the tensors that ops compute, in all functions, are split over some axis.
        tensors_replicated: How many are not.
        stages: Name and seconds of every step taken.
        warnings: What the user should know.
    """

    title: str
    meshes: tuple[tuple[str, str], ...]
    inputs: tuple[TensorRow, ...]
    outputs: tuple[TensorRow, ...]
    tensors_sharded: int
    tensors_replicated: int
    stages: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()

    def with_stage(self, name: str, seconds: float) -> Summary:
        """The same with one more step taken."""
        return replace(self, stages=(*self.stages, (name, seconds)))

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON-ready data; the keys are the names of the attributes."""
        data = asdict(self)
        data["meshes"] = [{"name": name, "mesh": mesh} for name, mesh in self.meshes]
        data["stages"] = [{"name": name, "seconds": seconds} for name, seconds in self.stages]
        return data


def format_seconds(seconds: float) -> str:
    """A duration in a unit that keeps the number short.

    >>> format_seconds(0.0123), format_seconds(2.5)
    ('12.3 ms', '2.50 s')
    """
    return f"{seconds * 1000:.1f} ms" if round(seconds, 4) < 1 else f"{seconds:.2f} s"


def format_shape(shape: tuple[int, ...], dtype: str) -> str:
    """A shape with its element type.

    >>> format_shape((8, 16), "f32"), format_shape((), "i32")
    ('f32[8, 16]', 'i32[]')
    """
    return f"{dtype}[{', '.join('?' if size < 0 else str(size) for size in shape)}]"
