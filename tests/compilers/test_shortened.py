"""Versions with a few layers tell what the compilers for TPUs and GPUs make of the whole program."""

from __future__ import annotations

import pytest

import pyshardy
from pyshardy.compilers.plugins import is_installed
from tests.unit.api.test_confirm import layers


@pytest.mark.parametrize("compiler", ["tpu:v5e", "cuda:h100"])
def test_a_few_layers_tell_of_all(compiler: str) -> None:
    if not is_installed(compiler.partition(":")[0]):
        pytest.skip(f"the compiler {compiler} is not installed beside this Python")
    text = layers(16)
    whole, short = (pyshardy.confirm(text, compiler, shortened=shortened) for shortened in (False, True))
    assert [row.compiled for row in short.rows] == [row.compiled for row in whole.rows]
    assert short.collectives == whole.collectives and sum(total.count for total in whole.collectives) >= 16
    assert short.peak_bytes == pytest.approx(whole.peak_bytes, rel=0.03)
    assert (short.layers, short.versions) == (16, (2, 5, 7))
