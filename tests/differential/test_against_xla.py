"""What the partitioned programs send, beside what XLA's own partitioner makes of the same shardings."""

from __future__ import annotations

import jax
import pytest
from end_to_end.real_programs import usable

import pyshardy
from programs import PROGRAMS
from pyshardy.partitioning import compiled_collectives
from support.reference import jaxlib_version

pytestmark = pytest.mark.skipif(
    jaxlib_version() < (0, 12), reason="what is sent depends on XLA: counted for the newest"
)
MORE = {
    "spatial_convolution": "a convolution gathers the dimensions that its windows go along",
    "gan_training": "a convolution gathers the dimensions that its windows go along",
    "uneven": "a reshape that splits shards unevenly gathers",
    "stencil": "a dimension of which one element is taken is gathered, not sent from one device",
    "number_types": "a dimension of which one element is taken is gathered, not sent from one device",
    "distributions": "a dimension of which one element is taken is gathered, not sent from one device",
    "state_space": "a dimension of which one element is taken is gathered, not sent from one device",
    "linear_solve": "a linear solver runs on whole matrices, each of which is gathered on its own",
}
"""Programs for which more bytes are sent than by XLA's partitioner, and why."""


def sent(partition: pyshardy.Partition, engine: str) -> int:
    """Bytes that every device sends in the compiled program."""
    return sum(total.sent_bytes_per_device for total in compiled_collectives(partition, engine))


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_more_is_sent_than_by_xla(name: str) -> None:
    partition = pyshardy.partition(pyshardy.load(usable(name).lower()))
    ours, theirs = sent(partition, "local"), sent(partition, "xla")
    if name not in MORE:
        assert ours <= theirs


def test_something_is_compared() -> None:
    """Both sides find the collectives of a program that has some."""
    partition = pyshardy.partition(pyshardy.load(usable("mlp_training").lower()))
    ours, theirs = (compiled_collectives(partition, engine) for engine in ("local", "xla"))
    assert {total.kind for total in ours} == {total.kind for total in theirs} == {"all_reduce"}
    assert sent(partition, "local") == partition.traffic.sent_bytes_per_device > 0
    assert len(jax.devices()) == 8
