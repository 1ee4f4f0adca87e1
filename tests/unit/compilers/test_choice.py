"""The compiler that is asked where none is named, and the line on whose answer it is."""

from __future__ import annotations

import pytest

from pyshardy.compilers import choice
from pyshardy.compilers.choice import compiler_for, stand_in


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    platforms: set[str] = set()
    monkeypatch.setattr(choice, "is_installed", platforms.__contains__)
    return platforms


def test_an_installed_compiler_of_the_platform_is_chosen(installed: set[str]) -> None:
    assert compiler_for("tpu", 8) == ""
    installed |= {"tpu", "cuda"}
    assert compiler_for("tpu", 8) == "tpu:v5e"
    assert compiler_for("cuda", 8) == "cuda:h100"
    assert compiler_for("cpu", 8) == compiler_for("rocm", 8) == compiler_for("", 8) == ""


def test_the_chip_counts_if_it_is_of_the_platform(installed: set[str]) -> None:
    installed.add("tpu")
    assert compiler_for("tpu", 8, "v5p") == "tpu:v5p"
    assert compiler_for("tpu", 8, "h100") == "tpu:v5e"


@pytest.mark.parametrize("devices", [0, 1])
def test_a_program_for_one_device_asks_nobody(installed: set[str], devices: int) -> None:
    installed.add("tpu")
    assert compiler_for("tpu", devices) == stand_in("tpu", devices) == ""


@pytest.mark.parametrize("devices", [6, 10])
def test_devices_without_a_topology_ask_no_compiler(installed: set[str], devices: int) -> None:
    installed.add("tpu")
    assert compiler_for("tpu", devices) == ""
    assert stand_in("tpu", devices) == "as XLA for CPUs; what it does for your TPU may differ"


def test_the_line_says_how_to_ask(installed: set[str]) -> None:
    assert stand_in("tpu", 8) == "as XLA for CPUs; for your TPU: pip install 'pyshardy[tpu]'"
    assert stand_in("cuda", 8) == "as XLA for CPUs; for your GPU: pip install 'pyshardy[cuda]'"
    installed.add("tpu")
    assert stand_in("tpu", 8) == "as XLA for CPUs; for your TPU: --compiler tpu:v5e"
