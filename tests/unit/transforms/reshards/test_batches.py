"""Custom calls that declare a batch run on shards of it, and on nothing else's."""

from __future__ import annotations

import pytest
from end_to_end.hard_programs import cholesky

import pyshardy

BATCHED, ROWS = '[{"a"}, {}, {}]', '[{}, {"a"}, {}]'


def test_a_batch_stays_sharded() -> None:
    found = pyshardy.partition(pyshardy.load(cholesky(4, BATCHED, BATCHED)), view="stablehlo")
    assert found.traffic.sent_bytes_per_device == 0
    assert not found.warnings
    assert "@lapack_spotrf_ffi" in found.module.text()
    assert "-> (tensor<2x6x6xf32>, tensor<2xi32>)" in found.module.text()


def test_what_is_not_the_batch_is_gathered_first() -> None:
    found = pyshardy.partition(pyshardy.load(cholesky(4, ROWS, BATCHED)), view="stablehlo")
    assert "all_to_all" in [row.kind for row in found.traffic.collectives]
    assert "-> (tensor<2x6x6xf32>, tensor<2xi32>)" in found.module.text()


@pytest.mark.parametrize(
    "attribute",
    ["", 'num_batch_dims = "0"', 'num_batch_dims = "2"', 'num_batch_dims = "x"', "num_batch_dims = 1 : i64"],
)
def test_without_a_batch_that_all_tensors_have_matrices_are_whole(attribute: str) -> None:
    found = pyshardy.partition(pyshardy.load(cholesky(4, BATCHED, BATCHED, attribute)), view="stablehlo")
    assert "-> (tensor<4x6x6xf32>, tensor<4xi32>)" in found.module.text()
    assert any("runs on whole tensors instead" in warning for warning in found.warnings)
