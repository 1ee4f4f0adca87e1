"""What a partitioned program looks like from outside, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyshardy.report.traffic import Traffic


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """A program of one device.

    Attributes:
        title: What the program is called.
        device_count: Number of devices that it is for.
        meshes: Name and notation of every mesh with axes.
        traffic: What the devices send to each other.
        stages: Name and seconds of every stage.
        passes: Name and seconds of every pass.
        warnings: What the user should know.
    """

    title: str
    device_count: int
    meshes: tuple[tuple[str, str], ...]
    traffic: Traffic
    stages: tuple[tuple[str, float], ...] = ()
    passes: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The summary as JSON-ready data; the keys are the names of the attributes."""
        return {
            "title": self.title,
            "device_count": self.device_count,
            "meshes": [{"name": name, "mesh": mesh} for name, mesh in self.meshes],
            "traffic": self.traffic.to_json(),
            "stages": [{"name": name, "seconds": seconds} for name, seconds in self.stages],
            "passes": [{"name": name, "seconds": seconds} for name, seconds in self.passes],
            "warnings": list(self.warnings),
        }
