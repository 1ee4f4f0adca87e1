"""The summary of a partitioned program, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyshardy.core.mesh import Mesh
from pyshardy.costing.traffic import Traffic
from pyshardy.report.replications import Replication
from pyshardy.report.summary import JSON_VERSION, mesh_to_json, stages_to_json


@dataclass(frozen=True, slots=True)
class PartitionSummary:
    """The summary of a per-device program.

    Attributes:
        title: The title of the program.
        device_count: The number of devices.
        meshes: Name and mesh of every mesh with axes.
        traffic: The collectives.
        stages: Name and seconds of every stage.
        passes: Name and seconds of every pass.
        warnings: The warnings.
        compiler: The compiler that partitioned it; empty for pyshardy's own partitioner.
        replications: The tensors that the compiler replicates.
    """

    title: str
    device_count: int
    meshes: tuple[tuple[str, Mesh], ...]
    traffic: Traffic
    stages: tuple[tuple[str, float], ...] = ()
    passes: tuple[tuple[str, float], ...] = ()
    warnings: tuple[str, ...] = ()
    compiler: str = ""
    replications: tuple[Replication, ...] = ()

    def to_json(self, times: bool = False) -> dict[str, Any]:
        """The summary as JSON-ready data.

        Args:
            times: Whether to include the times of stages and passes; without them, equal programs give equal data.
        """
        timed = {"stages": stages_to_json(self.stages), "passes": stages_to_json(self.passes)}
        return {
            "version": JSON_VERSION,
            "title": self.title,
            "device_count": self.device_count,
            "meshes": [{"name": name, **mesh_to_json(mesh)} for name, mesh in self.meshes],
            "traffic": self.traffic.to_json(),
            "warnings": list(self.warnings),
            **(self._of_compiler() if self.compiler else {}),
            **(timed if times else {}),
        }

    def _of_compiler(self) -> dict[str, Any]:
        return {"compiler": self.compiler, "replications": [one.to_json() for one in self.replications]}
