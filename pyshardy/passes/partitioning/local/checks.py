"""Whether an op gives the right result when every device runs it on its own shards."""

from __future__ import annotations

from pyshardy.ir.nodes import Op
from pyshardy.passes.partitioning.local.localizer import Localizer


def check_runs_locally(op: Op, local: Localizer) -> None:
    """Raise `PassError` if an op cannot run on shards alone."""
