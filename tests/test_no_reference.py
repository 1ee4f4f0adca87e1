"""The package never calls the reference's passes: it gives the same results when they cannot run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from jaxlib.mlir import passmanager

import pyshardy
from programs import PROGRAMS
from support.programs import module_text

PACKAGE = Path(pyshardy.__file__).parent


def test_no_source_mentions_the_pass_manager() -> None:
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        assert not re.search(r"\b(passmanager|PassManager)\b", text), path


NAMES = ("mlp_training", "transformer_scan_remat", "manual_collectives", "nested_jit")


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Lowered programs; lowering is JAX's business, and JAX itself runs a pass of the reference at its end."""
    return {name: module_text(PROGRAMS[name]) for name in NAMES}


@pytest.fixture
def without_reference(texts: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("the reference was called")

    class Unusable:
        parse = staticmethod(refuse)
        __init__ = refuse

    monkeypatch.setattr(passmanager, "PassManager", Unusable)
    monkeypatch.setattr("jaxlib.mlir._mlir_libs._mlir.passmanager.PassManager", Unusable)


@pytest.mark.usefixtures("without_reference")
@pytest.mark.parametrize("name", NAMES)
def test_pipeline_without_reference(name: str, texts: dict[str, str]) -> None:
    result = pyshardy.propagate(pyshardy.load(texts[name]))
    assert "sdy.sharding" in result.module.text()


@pytest.mark.usefixtures("without_reference")
def test_unusable_reference_is_noticed() -> None:
    with pytest.raises(AssertionError, match="the reference was called"):
        passmanager.PassManager.parse("builtin.module(sdy-close-shardings)")
