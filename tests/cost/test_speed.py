"""How long estimates take; `python -m benchmarks.costing` holds the example with 24 and 96 layers to its targets."""

from __future__ import annotations

import pytest

from benchmarks import costing
from benchmarks.costing import Timing, example, least, missed, table
from pyshardy import cost, partition
from pyshardy.ir.mesh_sizes import with_mesh_sizes

pytestmark = pytest.mark.slow


def test_thousands_of_devices_take_no_longer_than_eight() -> None:
    module = example(4)
    few, many = (partition(with_mesh_sizes(module, mesh)) for mesh in costing.MESHES.values())
    first = least(lambda: cost(few, "v5p"), 5)
    assert least(lambda: cost(many, "v5p"), 5) <= 1.5 * first
    assert first < 1


def test_what_takes_too_long_is_said() -> None:
    fast = Timing(24, 8, 0.5, 1.0)
    assert missed([fast, fast._replace(devices=4096, estimate=0.51)]) == []
    assert missed([fast._replace(estimate=1.5)]) == ["24 layers on 8 devices take 1.50 s, more than 1"]
    slow = fast._replace(devices=4096, estimate=0.9)
    assert missed([fast, slow]) == ["24 layers on 4096 devices take 1.80 times as long as on 8"]
    assert "| 24 | 4,096 | 0.90 | 1 | 1.00 |" in table([fast, slow])
