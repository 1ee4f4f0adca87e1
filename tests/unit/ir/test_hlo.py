from __future__ import annotations

import pytest

from pyshardy.errors import UnsupportedVersionError
from pyshardy.ir import hlo
from pyshardy.ir.module import Module


def test_portable_artifacts_are_told_apart() -> None:
    assert hlo.is_portable(b"ML\xefR\rStableHLO_v1.18.0\x00")
    assert not hlo.is_portable(Module.parse("module {}").bytecode())


def test_a_jaxlib_without_the_converters_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("jaxlib._hlo.hlo_module_from_text")
    with pytest.raises(UnsupportedVersionError) as caught:
        hlo.bytecode_of_hlo_text("HloModule f", "f.txt")
    needed = "got a jaxlib without _hlo.hlo_module_from_text, needed jaxlib 0.10 or newer"
    assert str(caught.value) == f"converting between StableHLO and HLO: {needed}"
