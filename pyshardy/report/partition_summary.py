"""What a partitioned program looks like from outside, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.report.summary import JSON_VERSION, mesh_to_json, stages_to_json
from pyshardy.report.traffic import Traffic


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """A program of one device.

    Attributes:
        title: What the program is called.
        device_count: Number of devices that it is for.
        meshes: Name and mesh of every mesh with axes.
        traffic: What the devices send to each other.
        stages: Name and seconds of every stage.
        passes: Name and seconds of every pass.
        warnings: What the user should know.
    """

    title: str
    device_count: int
    meshes: tuple[tuple[str, Mesh], ...]
    traffic: Traffic
    stages: tuple[tuple[str, float], ...] = ()
    passes: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()

    def to_json(self, times: bool = False) -> dict[str, Any]:
        """The summary as JSON-ready data.

        Args:
            times: Whether to say how long every stage and pass took; without, equal programs give equal data.
        """
        timed = {"stages": stages_to_json(self.stages), "passes": stages_to_json(self.passes)}
        return {
            "version": JSON_VERSION,
            "title": self.title,
            "device_count": self.device_count,
            "meshes": [{"name": name, **mesh_to_json(mesh)} for name, mesh in self.meshes],
            "traffic": self.traffic.to_json(),
            "warnings": list(self.warnings),
            **(timed if times else {}),
        }
